// SPDX-License-Identifier: Apache-2.0

// Messages of the wire: a message that is accepted converts back to itself.
#include "src/wire/convert.h"

#include "tests/fuzz/check.h"

namespace percolator {
namespace {

template <typename Type, typename Message>
void ThereAndBack(std::string_view bytes) {
  Message message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  absl::StatusOr<Type> type = FromMessage(&message);
  if (!type.ok()) {
    FUZZ_CHECK(absl::IsInvalidArgument(type.status()));
    return;
  }
  Message first;
  ToMessage(*type, &first);
  Message taken = first;
  const absl::StatusOr<Type> again = FromMessage(&taken);
  FUZZ_CHECK(again.ok());
  Message second;
  ToMessage(*again, &second);
  FUZZ_CHECK(first.SerializeAsString() == second.SerializeAsString());
}

}  // namespace
}  // namespace percolator

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace percolator;
  const std::string_view bytes = ToText(data, size);
  ThereAndBack<RowRead, v1::RowRead>(bytes);
  ThereAndBack<ScanRequest, v1::ScanRequest>(bytes);
  ThereAndBack<RowMutation, v1::RowMutation>(bytes);
  ThereAndBack<Row, v1::Row>(bytes);
  return 0;
}
