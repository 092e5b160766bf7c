// SPDX-License-Identifier: Apache-2.0

#include "src/txn/write_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "src/txn/columns.h"
#include "tests/testing/status_matchers.h"
#include "tests/txn/damage.h"

namespace percolator {
namespace {

std::string Hex(const WriteRecord& record) { return absl::BytesToHexString(EncodeWriteRecord(record)); }

std::vector<WriteRecord> AllRecords() {
  const Timestamp start(0x0102030405060708);
  return {{.kind = WriteKind::kPut, .start_ts = start},
          {.kind = WriteKind::kPut, .start_ts = start, .value = ""},
          {.kind = WriteKind::kPut, .start_ts = start, .value = std::string("\0\xff", 2)},
          {.kind = WriteKind::kDelete, .start_ts = start},
          {.kind = WriteKind::kVerify, .start_ts = start},
          {.kind = WriteKind::kVerify, .start_ts = start, .verified = Timestamp(6)},
          {.kind = WriteKind::kRollback, .start_ts = start}};
}

// These bytes are on users' disks: see docs/format.md.
TEST(WriteRecordTest, GoldenBytes) {
  const Timestamp start(7);
  EXPECT_EQ(Hex({.kind = WriteKind::kPut, .start_ts = start, .value = "$3"}),
            "01"
            "01"
            "01"
            "0000000000000007"
            "2433");
  EXPECT_EQ(Hex({.kind = WriteKind::kPut, .start_ts = start}),
            "01"
            "01"
            "00"
            "0000000000000007");
  EXPECT_EQ(Hex({.kind = WriteKind::kDelete, .start_ts = start}),
            "01"
            "02"
            "00"
            "0000000000000007");
  EXPECT_EQ(Hex({.kind = WriteKind::kVerify, .start_ts = start, .verified = Timestamp(6)}),
            "01"
            "03"
            "00"
            "0000000000000007"
            "0000000000000006");
}

// The marker: its column is part of the format, too.
TEST(WriteRecordTest, GoldenBytesOfTheMarker) {
  EXPECT_EQ(absl::BytesToHexString(RollbackColumn()), "00726f6c6c6261636b");
  EXPECT_EQ(Hex({.kind = WriteKind::kRollback, .start_ts = Timestamp(7)}),
            "01"
            "04"
            "00"
            "0000000000000007");
}

TEST(WriteRecordTest, OnlyTheColumnOfTheMarkerIsReserved) {
  EXPECT_TRUE(IsReservedColumn(RollbackColumn()));
  EXPECT_TRUE(IsReservedColumn(std::string(1, '\0')));
  EXPECT_FALSE(IsReservedColumn(""));
  EXPECT_FALSE(IsReservedColumn("rollback"));
  EXPECT_FALSE(IsReservedColumn(std::string("a\0rollback", 10)));
}

TEST(WriteRecordTest, DecodeReturnsTheEncodedRecord) {
  for (const WriteRecord& record : AllRecords()) {
    const absl::StatusOr<WriteRecord> decoded = DecodeWriteRecord(EncodeWriteRecord(record));
    ASSERT_THAT(decoded, IsOk()) << Hex(record);
    EXPECT_EQ(*decoded, record) << Hex(record);
  }
}

TEST(WriteRecordTest, DamagedBytesAreRefusedOrDecodeToAnotherRecord) {
  for (const WriteRecord& record : AllRecords()) {
    CheckDamagedForms(EncodeWriteRecord(record), DecodeWriteRecord,
                      [](const WriteRecord& decoded) { return EncodeWriteRecord(decoded); });
  }
}

TEST(WriteRecordTest, ANewerFormatIsRefusedAsSuch) {
  std::string bytes = EncodeWriteRecord({.kind = WriteKind::kPut, .start_ts = Timestamp(7)});
  for (int version = 2; version <= 15; ++version) {
    bytes[0] = static_cast<char>(version);
    const absl::Status status = DecodeWriteRecord(bytes).status();
    ASSERT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition)) << version;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("newer"));
  }
  for (int version = 16; version < 256; ++version) {  // text of another program, for example
    bytes[0] = static_cast<char>(version);
    ASSERT_THAT(DecodeWriteRecord(bytes), StatusIs(absl::StatusCode::kDataLoss)) << version;
  }
}

TEST(WriteRecordTest, KindsHaveNames) {
  EXPECT_EQ(WriteKindName(WriteKind::kPut), "put");
  EXPECT_EQ(WriteKindName(WriteKind::kDelete), "delete");
  EXPECT_EQ(WriteKindName(WriteKind::kVerify), "verify");
  EXPECT_EQ(WriteKindName(WriteKind::kRollback), "rollback");
}

}  // namespace
}  // namespace percolator
