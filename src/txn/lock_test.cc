// SPDX-License-Identifier: Apache-2.0

#include "src/txn/lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/escaping.h"
#include "tests/testing/status_matchers.h"
#include "tests/txn/damage.h"

namespace percolator {
namespace {

std::string Hex(const Lock& lock) { return absl::BytesToHexString(EncodeLock(lock)); }

// The locks of figure 4: Bob's is the primary, Joe's names it.
Lock BobsLock() { return {.kind = WriteKind::kPut, .session = 5, .refreshed = Timestamp(7), .value = "$3"}; }
Lock JoesLock() {
  return {.kind = WriteKind::kPut,
          .primary = CellName{"accounts", "Bob", "bal"},
          .session = 5,
          .refreshed = Timestamp(7),
          .value = "$9"};
}

// One of every form in the grammar.
std::vector<Lock> AllLocks() {
  std::vector<Lock> locks;
  for (const WriteKind kind : {WriteKind::kPut, WriteKind::kDelete, WriteKind::kVerify}) {
    for (const bool is_primary : {true, false}) {
      for (const bool observed : {false, true}) {
        Lock lock{.kind = kind, .session = ~SessionId{0}, .refreshed = Timestamp(1'000'007), .observed = observed};
        if (!is_primary) lock.primary = CellName{"t", std::string("r\0w", 3), ""};
        if (kind == WriteKind::kVerify) lock.verified = Timestamp(6);
        locks.push_back(lock);
        if (kind != WriteKind::kPut) continue;
        for (const std::string& value : {std::string(), std::string("\0\xff", 2), std::string(kInlineBytes, 'v')}) {
          lock.value = value;
          locks.push_back(lock);
        }
      }
    }
  }
  return locks;
}

// These bytes are on users' disks: see docs/format.md.
TEST(LockTest, GoldenBytesOfAPrimary) {
  EXPECT_EQ(Hex(BobsLock()),
            "01"
            "01"
            "03"
            "0000000000000005"
            "0000000000000007"
            "2433");
}

TEST(LockTest, GoldenBytesOfASecondary) {
  EXPECT_EQ(Hex(JoesLock()),
            "01"
            "01"
            "01"
            "6163636f756e7473"
            "0001"
            "426f62"
            "0001"
            "62616c"
            "0001"
            "0000000000000005"
            "0000000000000007"
            "2439");
}

TEST(LockTest, GoldenBytesOfAnObservedDelete) {
  EXPECT_EQ(Hex({.kind = WriteKind::kDelete, .session = 5, .refreshed = Timestamp(7), .observed = true, .depth = 3}),
            "01"
            "02"
            "06"
            "0000000000000005"
            "0000000000000007"
            "00000003");
}

TEST(LockTest, GoldenBytesOfAVerify) {
  EXPECT_EQ(Hex({.kind = WriteKind::kVerify, .session = 5, .refreshed = Timestamp(7), .verified = Timestamp(6)}),
            "01"
            "03"
            "02"
            "0000000000000005"
            "0000000000000007"
            "0000000000000006");
}

TEST(LockTest, DecodeReturnsTheEncodedLock) {
  for (const Lock& lock : AllLocks()) {
    const absl::StatusOr<Lock> decoded = DecodeLock(EncodeLock(lock));
    ASSERT_THAT(decoded, IsOk()) << Hex(lock);
    EXPECT_EQ(*decoded, lock) << Hex(lock);
  }
}

TEST(LockTest, AnEmptyValueDiffersFromNoValue) {
  Lock lock = BobsLock();
  lock.value = "";
  EXPECT_EQ(DecodeLock(EncodeLock(lock))->value, "");
  lock.value.reset();
  EXPECT_EQ(DecodeLock(EncodeLock(lock))->value, std::nullopt);
}

TEST(LockTest, DamagedBytesAreRefusedOrDecodeToAnotherLock) {
  for (const Lock& lock : AllLocks()) {
    if (lock.value.has_value() && lock.value->size() > 10) continue;  // the value is the rest, so any bytes are valid
    CheckDamagedForms(EncodeLock(lock), DecodeLock, EncodeLock);
  }
}

TEST(LockTest, ANewerFormatIsRefusedAsSuch) {
  std::string bytes = EncodeLock(BobsLock());
  for (int version = 2; version <= 15; ++version) {
    bytes[0] = static_cast<char>(version);
    const absl::Status status = DecodeLock(bytes).status();
    ASSERT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition)) << version;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("newer"));
  }
  for (int version = 16; version < 256; ++version) {  // text of another program, for example
    bytes[0] = static_cast<char>(version);
    ASSERT_THAT(DecodeLock(bytes), StatusIs(absl::StatusCode::kDataLoss)) << version;
  }
}

TEST(LockTest, ALockOfKindRollbackIsRefused) {
  std::string bytes = EncodeLock({.kind = WriteKind::kDelete});
  bytes[1] = static_cast<char>(WriteKind::kRollback);
  EXPECT_THAT(DecodeLock(bytes), StatusIs(absl::StatusCode::kDataLoss));
}

TEST(LockTest, TheRecordHasTheContentsOfTheLock) {
  EXPECT_EQ(EncodeRecordOf(JoesLock(), Timestamp(7)),
            EncodeWriteRecord({.kind = WriteKind::kPut, .start_ts = Timestamp(7), .value = "$9"}));
  EXPECT_EQ(EncodeRecordOf({.kind = WriteKind::kDelete}, Timestamp(7)),
            EncodeWriteRecord({.kind = WriteKind::kDelete, .start_ts = Timestamp(7)}));
  EXPECT_EQ(EncodeRecordOf({.kind = WriteKind::kVerify, .verified = Timestamp(6)}, Timestamp(7)),
            EncodeWriteRecord({.kind = WriteKind::kVerify, .start_ts = Timestamp(7), .verified = Timestamp(6)}));
}

TEST(LockTest, AFoundLockNamesItsPrimary) {
  const CellName bob{"accounts", "Bob", "bal"};
  const CellName joe{"accounts", "Joe", "bal"};
  EXPECT_EQ((FoundLock{bob, Timestamp(7), BobsLock()}).primary(), bob);
  EXPECT_EQ((FoundLock{joe, Timestamp(7), JoesLock()}).primary(), bob);
}

}  // namespace
}  // namespace percolator
