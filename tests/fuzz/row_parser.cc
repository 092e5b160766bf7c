// SPDX-License-Identifier: Apache-2.0

// Answers to ReadRows: rows ascend, and none is empty. The input is one message after another, each behind a byte with its length.
#include "src/store/bigtable/row_parser.h"

#include <algorithm>

#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace percolator;
  RowParser parser;
  std::vector<WireRow> rows;
  absl::Status status;
  while (status.ok() && size > 0) {
    const size_t bytes = std::min<size_t>(data[0], size - 1);
    RowParser::Response response;
    if (!response.ParseFromArray(data + 1, static_cast<int>(bytes))) break;
    status = parser.Consume(&response, &rows);
    data += 1 + bytes;
    size -= 1 + bytes;
  }
  FUZZ_CHECK(status.ok() || absl::IsInternal(status));
  (void)parser.Finish();
  for (size_t i = 0; i < rows.size(); ++i) {
    FUZZ_CHECK(!rows[i].cells.empty() && !rows[i].key.empty());
    FUZZ_CHECK(i == 0 || rows[i - 1].key < rows[i].key);
    FUZZ_CHECK(rows[i].key <= parser.done());
  }
  return 0;
}
