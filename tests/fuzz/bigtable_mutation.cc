// SPDX-License-Identifier: Apache-2.0

// Bigtable's changes of a row: any message is refused as a whole or applied as a whole. The first byte chooses the request.
#include "tests/fuzz/bigtable_world.h"

namespace percolator {
namespace {

namespace bt = google::bigtable::v2;

template <typename Request>
bool ParseFor(bool native, const uint8_t* data, size_t size, Request* request) {
  if (!request->ParseFromArray(data, static_cast<int>(size))) return false;
  request->set_table_name(BigtableWorld::TableName(native));
  return true;
}

void Run(uint8_t kind, const uint8_t* data, size_t size) {
  BigtableWorld world;
  const bool native = (kind & 1) != 0;
  bt::MutateRowRequest mutate;
  bt::MutateRowsRequest many;
  bt::CheckAndMutateRowRequest check;
  bt::CheckAndMutateRowResponse checked;
  bt::ReadModifyWriteRowRequest modify;
  bt::ReadModifyWriteRowResponse modified;
  switch (kind / 2 % 4) {
    case 0:
      if (ParseFor(native, data, size, &mutate)) (void)world.mutator()->MutateRow(mutate);
      break;
    case 1:
      if (ParseFor(native, data, size, &many)) (void)world.mutator()->MutateRows(many);
      break;
    case 2:
      if (ParseFor(native, data, size, &check)) (void)world.mutator()->CheckAndMutateRow(check, &checked);
      break;
    default:
      if (ParseFor(native, data, size, &modify)) (void)world.mutator()->ReadModifyWriteRow(modify, &modified);
  }
}

}  // namespace
}  // namespace percolator

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 0) percolator::Run(data[0], data + 1, size - 1);
  return 0;
}
