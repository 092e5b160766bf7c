// SPDX-License-Identifier: Apache-2.0

#include "src/server/grpc_settings.h"

#include <dlfcn.h>
#include <grpcpp/version_info.h>

#include <cstdint>
#include <cstring>
#include <iterator>

// As grpc_chttp2_setting_parameters of gRPC 1.51 (src/core/ext/transport/chttp2/transport/http2_settings.h).
struct PercolatorGrpcSetting {
  const char* name;
  uint32_t default_value;
  uint32_t min_value;
  uint32_t max_value;
  int invalid_value_behavior;
  uint32_t error_value;
};

#if GRPC_CPP_VERSION_MAJOR == 1 && GRPC_CPP_VERSION_MINOR == 51

// Both differ from what the server sets (listen.cc): gRPC does not send a setting that is its default. Weak, so that a
// program that is linked to gRPC statically has one table, that of gRPC.
extern const PercolatorGrpcSetting grpc_chttp2_settings_parameters[7] __attribute__((weak, visibility("default")));
const PercolatorGrpcSetting grpc_chttp2_settings_parameters[7] = {
    {"HEADER_TABLE_SIZE", 4096, 0, UINT32_MAX, 0, 1},     {"ENABLE_PUSH", 1, 0, 1, 1, 1},
    {"MAX_CONCURRENT_STREAMS", 101, 0, UINT32_MAX, 1, 1}, {"INITIAL_WINDOW_SIZE", 65'535, 0, INT32_MAX, 1, 3},
    {"MAX_FRAME_SIZE", 16'384, 16'384, 16'777'215, 1, 1}, {"MAX_HEADER_LIST_SIZE", 8'191, 0, 16'777'216, 0, 1},
    {"GRPC_ALLOW_TRUE_BINARY_METADATA", 0, 0, 1, 0, 1},
};

namespace percolator {
namespace {

constexpr char kTable[] = "grpc_chttp2_settings_parameters";

bool IsSame(const PercolatorGrpcSetting& own, const PercolatorGrpcSetting& other) {
  return std::strcmp(own.name, other.name) == 0 && own.default_value <= other.default_value &&
         own.min_value == other.min_value && own.max_value == other.max_value &&
         own.invalid_value_behavior == other.invalid_value_behavior && own.error_value == other.error_value;
}

}  // namespace

bool HasSmallGrpcDefaults() {
  const auto* const own = grpc_chttp2_settings_parameters;
  if (dlsym(RTLD_DEFAULT, kTable) != own) return false;
  const auto* const other = static_cast<const PercolatorGrpcSetting*>(dlsym(RTLD_NEXT, kTable));
  if (other == nullptr || other == own) return false;
  for (size_t i = 0; i < std::size(grpc_chttp2_settings_parameters); ++i) {
    if (!IsSame(own[i], other[i])) return false;
  }
  return true;
}

}  // namespace percolator

#else

namespace percolator {

bool HasSmallGrpcDefaults() { return false; }

}  // namespace percolator

#endif
