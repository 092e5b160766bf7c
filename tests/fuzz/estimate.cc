// SPDX-License-Identifier: Apache-2.0

// Requests of every method of the server: the first byte chooses the method, the rest is the request. The estimate of
// its memory does not fail, and what the request takes once it is parsed stays near the estimate.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/slice.h>

#include <limits>
#include <memory>
#include <vector>

#include "src/server/requests.h"
#include "src/wire/proto/bigtable.pb.h"
#include "src/wire/proto/bigtable_admin.pb.h"
#include "src/wire/proto/percolator.pb.h"
#include "tests/fuzz/check.h"

namespace percolator {
namespace {

using google::protobuf::Message;

std::vector<const Message*> RequestTypes() {
  grpc_init();
  std::vector<const Message*> types;
  for (const google::protobuf::FileDescriptor* file :
       {v1::ReadRequest::descriptor()->file(), google::bigtable::v2::ReadRowsRequest::descriptor()->file(),
        google::bigtable::admin::v2::CreateTableRequest::descriptor()->file()}) {
    for (int s = 0; s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m) {
        types.push_back(google::protobuf::MessageFactory::generated_factory()->GetPrototype(
            file->service(s)->method(m)->input_type()));
      }
    }
  }
  return types;
}

// A vector that grows reserves up to twice what it holds, and the server takes requests below 1 KiB unseen.
constexpr size_t kFactor = 3;
constexpr size_t kUnseen = 4 << 10;

void Check(const Message& prototype, std::string_view bytes) {
  const grpc_slice slice = grpc_slice_from_copied_buffer(bytes.data(), bytes.size());
  grpc_slice parts[] = {slice};
  grpc_byte_buffer* const buffer = grpc_raw_byte_buffer_create(parts, 1);
  const size_t estimate = EstimateParsedBytes(buffer, prototype, std::numeric_limits<size_t>::max());
  grpc_byte_buffer_destroy(buffer);
  grpc_slice_unref(slice);
  const std::unique_ptr<Message> parsed(prototype.New());
  if (!parsed->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  FUZZ_CHECK(parsed->SpaceUsedLong() <= kFactor * estimate + kUnseen);
}

}  // namespace
}  // namespace percolator

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto* const kTypes = new std::vector<const google::protobuf::Message*>(percolator::RequestTypes());
  if (size == 0) return 0;
  percolator::Check(*(*kTypes)[data[0] % kTypes->size()], percolator::ToText(data + 1, size - 1));
  return 0;
}
