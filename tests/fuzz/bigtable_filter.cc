// SPDX-License-Identifier: Apache-2.0

// Bigtable's filters: any message is refused or compiled, and gives the same cells each time, unless it draws a sample of rows.
#include "src/server/bigtable/filter.h"
#include "tests/fuzz/check.h"

namespace percolator {
namespace {

BigtableCells SomeCells() {
  BigtableCells cells;
  for (const char* family : {"f", "g"}) {
    for (const char* qualifier : {"a", "b", ""}) {
      for (const int64_t ts : {3000, 1000}) cells.push_back({family, qualifier, ts, "value", {}, cells.size()});
    }
  }
  return cells;
}

}  // namespace
}  // namespace percolator

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace percolator;
  google::bigtable::v2::RowFilter filter;
  if (!filter.ParseFromArray(data, static_cast<int>(size))) return 0;
  const absl::StatusOr<BigtableFilter> compiled = BigtableFilter::Compile(filter);
  if (!compiled.ok()) {
    FUZZ_CHECK(absl::IsInvalidArgument(compiled.status()));
    return 0;
  }
  const absl::StatusOr<BigtableCells> cells = compiled->Apply("row", SomeCells());
  if (!cells.ok()) return 0;
  for (size_t i = 1; i < cells->size(); ++i) FUZZ_CHECK((*cells)[i - 1].position <= (*cells)[i].position);
  const bool samples = filter.ShortDebugString().find("row_sample_filter") != std::string::npos;  // by chance
  if (!samples) FUZZ_CHECK(compiled->Apply("row", SomeCells())->size() == cells->size());
  FUZZ_CHECK(BigtableFilter::CompileRest(filter, 1).ok());
  return 0;
}
