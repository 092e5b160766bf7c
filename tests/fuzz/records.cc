// SPDX-License-Identifier: Apache-2.0

// Locks, write records, marks, acknowledgements and schemas: a record that is decoded encodes to the same bytes or to
// the same record. The first byte chooses the kind.
#include "src/observe/ack.h"
#include "src/txn/lock.h"
#include "src/txn/mark.h"
#include "src/txn/tables.h"
#include "src/txn/write_record.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace percolator;
  if (size == 0) return 0;
  const std::string_view bytes = ToText(data + 1, size - 1);
  switch (data[0] % 5) {
    case 0:
      if (const auto lock = DecodeLock(bytes); lock.ok()) {
        FUZZ_CHECK(*DecodeLock(EncodeLock(*lock)) == *lock);
        FUZZ_CHECK(DecodeWriteRecord(EncodeRecordOf(*lock, Timestamp(7))).ok());
      }
      break;
    case 1:
      if (const auto record = DecodeWriteRecord(bytes); record.ok()) {
        FUZZ_CHECK(EncodeWriteRecord(*record) == bytes);
        FUZZ_CHECK(*TakeWriteRecord(std::string(bytes)) == *record);
      }
      break;
    case 2:
      if (const auto mark = DecodeMark(bytes); mark.ok()) FUZZ_CHECK(EncodeMark(*mark) == bytes);
      break;
    case 3: {
      const Version ack{.commit_ts = Timestamp(9), .value = std::string(bytes)};
      const auto dirty = IsDirty({.commit_ts = Timestamp(8), .value = "x"}, ack);
      FUZZ_CHECK(dirty.ok() == (bytes.empty() || bytes.size() == 8));
      break;
    }
    default:
      if (const auto schema = DecodeSchema("t", bytes); schema.ok()) {
        FUZZ_CHECK(DecodeSchema("t", EncodeSchema(*schema))->notify_only_columns == schema->notify_only_columns);
      }
  }
  return 0;
}
