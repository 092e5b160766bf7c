// SPDX-License-Identifier: Apache-2.0

// Tests the encoding of a table's schema. tests/txn/tables_test.cc tests Tables, on a store.

#include "src/txn/tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "tests/testing/status_matchers.h"
#include "tests/txn/damage.h"

namespace percolator {
namespace {

using ::testing::IsEmpty;

std::string SchemaHex(const TableSchema& schema) { return absl::BytesToHexString(EncodeSchema(schema)); }

// These bytes are on users' disks: see docs/format.md.
TEST(SchemaTest, GoldenBytes) {
  EXPECT_EQ(SchemaHex({}), "01");
  EXPECT_EQ(SchemaHex({.notify_only_columns = {"hot", std::string("a\0", 2)}}),
            "01"
            "686f74"
            "0001"
            "6100ff"
            "0001");
}

TEST(SchemaTest, DecodeReturnsTheEncodedSchema) {
  const std::vector<std::string> columns = {"hot", "", std::string("\0\xff", 2)};
  const absl::StatusOr<TableSchema> decoded = DecodeSchema("t", EncodeSchema({.notify_only_columns = columns}));
  ASSERT_THAT(decoded, IsOk());
  EXPECT_EQ(decoded->notify_only_columns, columns);
}

// A table that was made by Store::CreateTable without a schema.
TEST(SchemaTest, AnEmptySchemaHasNoColumns) {
  const absl::StatusOr<TableSchema> decoded = DecodeSchema("t", "");
  ASSERT_THAT(decoded, IsOk());
  EXPECT_THAT(decoded->notify_only_columns, IsEmpty());
}

TEST(SchemaTest, DamagedBytesAreRefusedOrDecodeToAnotherSchema) {
  for (const std::string& form : DamagedForms(EncodeSchema({.notify_only_columns = {"hot", std::string("a\0", 2)}}))) {
    if (form.empty()) continue;  // see above
    const absl::StatusOr<TableSchema> decoded = DecodeSchema("t", form);
    if (decoded.ok()) {
      ASSERT_EQ(SchemaHex(*decoded), absl::BytesToHexString(form));
    } else {
      const bool newer = static_cast<unsigned char>(form[0]) > 1;
      ASSERT_THAT(decoded, StatusIs(newer ? absl::StatusCode::kFailedPrecondition : absl::StatusCode::kDataLoss))
          << absl::BytesToHexString(form);
    }
  }
}

TEST(SchemaTest, ANewerFormatIsRefusedAsSuch) {
  for (int version = 2; version < 255; ++version) {
    const absl::Status status = DecodeSchema("t", std::string(1, static_cast<char>(version))).status();
    ASSERT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition)) << version;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("newer"));
  }
}

TEST(SchemaTest, ASchemaOfAnotherProgramIsRefusedAndSaysSo) {
  EXPECT_THAT(DecodeSchema("t",
                           "\xff"
                           "other:"),
              StatusIs(absl::StatusCode::kFailedPrecondition, ::testing::HasSubstr("not written by this library")));
}

}  // namespace
}  // namespace percolator
