// SPDX-License-Identifier: Apache-2.0

// Keys of RocksDB: a key that is parsed encodes to the same bytes.
#include "src/store/rocks/cell_key.h"

#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace percolator;
  const std::string_view key = ToText(data, size);
  ParsedKey parsed;
  if (!ParseCellKey(key, &parsed)) return 0;
  const std::string row = RowPrefix(parsed.table, parsed.row);
  FUZZ_CHECK(row.size() == parsed.row_prefix_bytes);
  FUZZ_CHECK(CellKey(CellPrefix(row, parsed.column), parsed.timestamp) == key);
  FUZZ_CHECK(TimestampOf(key) == parsed.timestamp);
  return 0;
}
