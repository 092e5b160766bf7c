// SPDX-License-Identifier: Apache-2.0

#include "src/base/coding.h"

#include <bit>
#include <cstring>

namespace percolator {
namespace {

static_assert(std::endian::native == std::endian::little, "written for little-endian machines");

constexpr char kEscape = '\x00';
constexpr char kEscapedZero = '\xff';
constexpr char kTerminator = '\x01';

}  // namespace

void AppendFixed32(std::string* out, uint32_t value) {
  value = __builtin_bswap32(value);
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void AppendFixed64(std::string* out, uint64_t value) {
  value = __builtin_bswap64(value);
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void AppendOrderedString(std::string* out, std::string_view value) {
  while (true) {
    const void* zero = value.empty() ? nullptr : std::memchr(value.data(), kEscape, value.size());
    if (zero == nullptr) break;
    const size_t n = static_cast<const char*>(zero) - value.data() + 1;
    out->append(value.data(), n);
    out->push_back(kEscapedZero);
    value.remove_prefix(n);
  }
  out->append(value.data(), value.size());
  out->push_back(kEscape);
  out->push_back(kTerminator);
}

uint64_t DecodeFixed64(const char* in) {
  uint64_t value;
  std::memcpy(&value, in, sizeof(value));
  return __builtin_bswap64(value);
}

bool ConsumeFixed32(std::string_view* in, uint32_t* value) {
  if (in->size() < sizeof(*value)) return false;
  std::memcpy(value, in->data(), sizeof(*value));
  *value = __builtin_bswap32(*value);
  in->remove_prefix(sizeof(*value));
  return true;
}

bool ConsumeFixed64(std::string_view* in, uint64_t* value) {
  if (in->size() < sizeof(*value)) return false;
  *value = DecodeFixed64(in->data());
  in->remove_prefix(sizeof(*value));
  return true;
}

bool ConsumeOrderedString(std::string_view* in, std::string* value) {
  value->clear();
  while (true) {
    const void* zero = in->empty() ? nullptr : std::memchr(in->data(), kEscape, in->size());
    if (zero == nullptr) return false;
    const size_t n = static_cast<const char*>(zero) - in->data();
    if (n + 1 == in->size()) return false;
    value->append(in->data(), n);
    const char next = (*in)[n + 1];
    in->remove_prefix(n + 2);
    if (next == kTerminator) return true;
    if (next != kEscapedZero) return false;
    value->push_back(kEscape);
  }
}

}  // namespace percolator
