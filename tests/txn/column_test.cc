// SPDX-License-Identifier: Apache-2.0

// The typed calls of percolator/column.h and percolator/transaction.h: encodings, errors of writes, options of scans,
// row ranges, and the result of Transact.

#include "percolator/column.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_join.h"
#include "percolator/cluster.h"
#include "percolator/transaction.h"
#include "src/base/strings.h"
#include "src/wire/proto/percolator.pb.h"
#include "tests/txn/world.h"

namespace percolator {
namespace {

using std::string_literals::operator""s;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = Fault::Kind;
using Outcome = CommitResult::Outcome;

// Eight bytes, the most significant first.
struct BigEndian {
  using Param = uint64_t;
  static std::string Encode(uint64_t value) {
    std::string bytes(8, '\0');
    for (size_t i = 8; i-- > 0; value >>= 8) bytes[i] = static_cast<char>(value & 0xFF);
    return bytes;
  }
  static std::optional<uint64_t> Decode(std::string_view bytes) {
    if (bytes.size() != 8) return std::nullopt;
    uint64_t value = 0;
    for (const char c : bytes) value = value << 8 | static_cast<uint8_t>(c);
    return value;
  }
};

constexpr Column<int64_t> kBalance(kTable, kColumn);
constexpr Column<int32_t> kInt32(kTable, "int32");
constexpr Column<uint64_t> kUint64(kTable, "uint64");
constexpr Column<uint8_t> kByte(kTable, "byte");
constexpr Column<bool> kFlag(kTable, "flag");
constexpr Column<float> kFloat(kTable, "float");
constexpr Column<double> kDouble(kTable, "double");
constexpr Column<std::string> kName(kTable, "name");
constexpr Column<v1::Cell> kMessage(kTable, "message");
constexpr Column<uint64_t, BigEndian> kBigEndian(kTable, "big-endian");
constexpr Column<int64_t> kNowhere("nowhere", "n");  // its table does not exist
constexpr NotifyColumn kHot("docs", "hot");

static_assert(kBalance.table() == "accounts" && kBalance.name() == "bal");
static_assert(kBalance.At("Bob").row == "Bob" && kHot.At("a").column == "hot");

// Compares the sign of a zero and of a NaN too.
template <typename T>
bool IsSame(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::signbit(a) == std::signbit(b) && (a == b || (std::isnan(a) && std::isnan(b)));
  } else {
    return a == b;
  }
}

class ColumnTest : public ClusterTest {
 protected:
  using ClusterTest::ClusterTest;

  Snapshot MustSnapshot() {
    absl::StatusOr<Snapshot> snapshot = cluster_->GetSnapshot();
    EXPECT_THAT(snapshot, IsOk());
    return *std::move(snapshot);
  }

  // Writes each value to a row of its own, and reads them back by every call.
  template <typename T, typename C>
  void ExpectRoundTrips(const Column<T, C>& column, const std::vector<T>& values) {
    SCOPED_TRACE(std::string(column.name()));
    std::vector<std::string> rows;
    Transaction t(*cluster_);
    for (const T& value : values) {
      rows.push_back(StrCat("row", 1000 + rows.size()));
      t.Set(column, rows.back(), value);
      const absl::StatusOr<std::optional<T>> own = t.Get(column, rows.back());
      ASSERT_THAT(own, IsOk());
      EXPECT_TRUE(own->has_value() && IsSame<T>(**own, value)) << rows.back();
    }
    ExpectOutcome(t.Commit(), Outcome::kCommitted);

    const Snapshot now = MustSnapshot();
    const absl::StatusOr<std::vector<std::optional<T>>> all = now.GetRows(column, rows);
    ASSERT_THAT(all, IsOk());
    for (size_t i = 0; i < rows.size(); ++i) {
      SCOPED_TRACE(StrCat(rows[i], ": ", now.Get(column.At(rows[i])).value().value_or("nothing")));
      EXPECT_TRUE(IsSame<T>(now.Get(column, rows[i]).value().value(), values[i]));
      EXPECT_TRUE(IsSame<T>(now.Get(column, rows[i], T()).value(), values[i]));
      EXPECT_TRUE(IsSame<T>(std::get<0>(now.GetColumns(rows[i], column).value()).value(), values[i]));
      EXPECT_TRUE(IsSame<T>((*all)[i].value(), values[i]));
    }
    size_t i = 0;
    for (const absl::StatusOr<Entry<T>>& entry : now.Scan(column)) {
      ASSERT_THAT(entry, IsOk());
      ASSERT_LT(i, rows.size());
      EXPECT_EQ(entry->row, rows[i]);
      EXPECT_TRUE(IsSame<T>(entry->value, values[i])) << rows[i];
      ++i;
    }
    EXPECT_EQ(i, rows.size());
  }

  // Expects that every call that decodes these bytes fails and names the cell.
  template <typename T, typename C>
  void ExpectDataLoss(const Column<T, C>& column, const std::string& bytes) {
    SCOPED_TRACE(StrCat(column.name(), " \"", bytes, "\""));
    MustSet({Put("Bob", bytes).Of(std::string(column.name()))});
    const auto is_data_loss = StatusIs(absl::StatusCode::kDataLoss, HasSubstr(StrCat("accounts/Bob/", column.name())));
    EXPECT_THAT(column.Decode("Bob", bytes), is_data_loss);
    const Snapshot now = MustSnapshot();
    EXPECT_THAT(now.Get(column, "Bob"), is_data_loss);
    EXPECT_THAT(now.Get(column, "Bob", T()), is_data_loss);
    EXPECT_THAT(now.GetColumns("Bob", column), is_data_loss);
    EXPECT_THAT(now.GetRows(column, {"Bob"}), is_data_loss);
    int elements = 0;
    for (const absl::StatusOr<Entry<T>>& entry : now.Scan(column)) {
      EXPECT_THAT(entry, is_data_loss);
      ++elements;
    }
    EXPECT_EQ(elements, 1);
    for (const absl::StatusOr<ScannedRow>& row : now.Scan(kTable)) {
      ASSERT_THAT(row, IsOk());
      EXPECT_THAT(row->Get(column), is_data_loss);
    }
    EXPECT_EQ(now.Get(column.At("Bob")).value(),
              bytes);  // the untyped call can still read it
  }
};

// --- Encodings.

template <typename T>
std::vector<T> ExtremeIntegers() {
  using Limits = std::numeric_limits<T>;
  return {Limits::min(), static_cast<T>(Limits::min() + 1), T{0},
          T{1},          static_cast<T>(Limits::max() - 1), Limits::max()};
}

template <typename T>
std::vector<T> ExtremeFloats() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values;
  for (const T value : {T{0}, T{1}, static_cast<T>(0.1), Limits::epsilon(), Limits::min(), Limits::denorm_min(),
                        Limits::min() - Limits::denorm_min(), Limits::max(), Limits::infinity(), Limits::quiet_NaN()}) {
    values.push_back(value);
    values.push_back(-value);
  }
  return values;
}

TEST_F(ColumnTest, IntegersRoundTrip) {
  ExpectRoundTrips(kBalance, ExtremeIntegers<int64_t>());
  ExpectRoundTrips(kInt32, ExtremeIntegers<int32_t>());
  ExpectRoundTrips(kUint64, ExtremeIntegers<uint64_t>());
  ExpectRoundTrips(kByte, ExtremeIntegers<uint8_t>());
  ExpectRoundTrips(kBigEndian, ExtremeIntegers<uint64_t>());
}

TEST_F(ColumnTest, FloatsRoundTrip) {
  ExpectRoundTrips(kFloat, ExtremeFloats<float>());
  ExpectRoundTrips(kDouble, ExtremeFloats<double>());
}

// Does not use ExpectRoundTrips: a std::vector<bool> has no elements to refer to.
TEST_F(ColumnTest, BoolsRoundTrip) {
  for (const bool value : {false, true}) {
    EXPECT_THAT(cluster_->Transact([&](ReadWrite& t) { t.Set(kFlag, "Bob", value); }), IsOk());
    EXPECT_EQ(MustSnapshot().Get(kFlag, "Bob").value(), value);
    EXPECT_EQ(MustSnapshot().Get(kFlag, "Bob", !value).value(), value);
  }
}

TEST_F(ColumnTest, StringsRoundTrip) {
  ExpectRoundTrips(kName, {""s, "x"s, "\0"s, "a\0b\0"s, "\xff\xfe\0\x80"s, " 1 "s, std::string(5000, '\xff')});
}

TEST_F(ColumnTest, MessagesRoundTrip) {
  v1::Cell message;
  message.set_column("a\0b\xff"s);
  message.set_value(std::string(1000, 'v'));
  message.set_timestamp(std::numeric_limits<uint64_t>::max());
  EXPECT_THAT(cluster_->Transact([&](ReadWrite& t) {
    t.Set(kMessage, "Bob", message);
    t.Set(kMessage, "Joe", v1::Cell());  // no bytes, which is a valid value
  }),
              IsOk());
  const Snapshot now = MustSnapshot();
  const std::vector<std::optional<v1::Cell>> messages = now.GetRows(kMessage, {"Bob", "Joe", "Ann"}).value();
  EXPECT_EQ(messages[0].value().SerializeAsString(), message.SerializeAsString());
  EXPECT_EQ(messages[1].value().SerializeAsString(), "");
  EXPECT_FALSE(messages[2].has_value());
  EXPECT_EQ(now.Get(kMessage, "Ann", message).value().column(), message.column());
}

// Existing tables hold numbers in this form.
TEST_F(ColumnTest, NumbersAreDecimalText) {
  EXPECT_EQ(kBalance.Encode(-12), "-12");
  EXPECT_EQ(kUint64.Encode(std::numeric_limits<uint64_t>::max()), "18446744073709551615");
  EXPECT_EQ(kByte.Encode(65), "65");
  EXPECT_EQ(kFlag.Encode(true), "1");
  EXPECT_EQ(kFlag.Encode(false), "0");
  EXPECT_EQ(kDouble.Encode(0.1), "0.1");
  EXPECT_EQ(kDouble.Encode(-0.0), "-0");
  EXPECT_EQ(kDouble.Encode(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(kDouble.Encode(std::numeric_limits<double>::quiet_NaN()), "nan");
}

TEST_F(ColumnTest, TextThatIsNotANumberIsDataLoss) {
  for (const std::string& bytes :
       {""s, " "s, " 1"s, "1 "s, "+1"s, "-"s, "--1"s, "1x"s, "x"s, "0x10"s, "1\0"s, "\xff"s}) {
    ExpectDataLoss(kBalance, bytes);
    ExpectDataLoss(kUint64, bytes);
    ExpectDataLoss(kFlag, bytes);
    ExpectDataLoss(kDouble, bytes);
  }
  for (const std::string& bytes : {"1.0"s, "1e3"s, "1,000"s, "true"s}) {
    ExpectDataLoss(kBalance, bytes);
    ExpectDataLoss(kFlag, bytes);
  }
  for (const std::string& bytes : {"1,5"s, "1e"s, "0.1.2"s, "in"s}) ExpectDataLoss(kDouble, bytes);
}

TEST_F(ColumnTest, NumbersOutOfRangeAreDataLoss) {
  for (const std::string& bytes : {"300"s, "256"s, "-1"s, "99999999999999999999"s}) ExpectDataLoss(kByte, bytes);
  for (const std::string& bytes : {"2"s, "-1"s, "256"s, "99999999999999999999"s}) ExpectDataLoss(kFlag, bytes);
  for (const std::string& bytes : {"2147483648"s, "-2147483649"s}) ExpectDataLoss(kInt32, bytes);
  for (const std::string& bytes : {"-1"s, "18446744073709551616"s}) ExpectDataLoss(kUint64, bytes);
  for (const std::string& bytes : {"9223372036854775808"s, "-9223372036854775809"s}) ExpectDataLoss(kBalance, bytes);
  for (const std::string& bytes : {"1e400"s, "-1e400"s}) ExpectDataLoss(kDouble, bytes);
  for (const std::string& bytes : {"1e39"s, "-1e39"s}) ExpectDataLoss(kFloat, bytes);
}

TEST_F(ColumnTest, OtherBytesAreDataLoss) {
  for (const std::string& bytes : {"\xff"s, "\x12\x05"s}) ExpectDataLoss(kMessage, bytes);
  for (const std::string& bytes : {""s, "1234567"s, "123456789"s}) ExpectDataLoss(kBigEndian, bytes);
}

TEST_F(ColumnTest, DataLossEscapesTheNameOfTheRow) {
  EXPECT_THAT(kBalance.Decode("B\x01\xff", "x"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("accounts/B\\x01\\xff/bal")));
}

// --- Reads.

TEST_F(ColumnTest, AnAbsentValueIsNulloptOrTheFallback) {
  const Snapshot now = MustSnapshot();
  EXPECT_EQ(now.Get(kBalance, "Bob").value(), std::nullopt);
  EXPECT_EQ(now.Get(kBalance, "Bob", 7).value(), 7);
  EXPECT_EQ(now.Get(kName, "Bob", "nobody").value(), "nobody");
}

TEST_F(ColumnTest, GetColumnsKeepsTheOrderOfItsArguments) {
  MustSet({Put("Bob", "3"), Put("Bob", "Bobby").Of("name"), Put("Bob", "1").Of("flag"), Put("Joe", "9")});
  const Snapshot now = MustSnapshot();
  const uint64_t before = cluster_->metrics().store_reads;
  const auto [name, byte, balance, flag, again] = now.GetColumns("Bob", kName, kByte, kBalance, kFlag, kName).value();
  EXPECT_EQ(cluster_->metrics().store_reads, before + 1);
  EXPECT_EQ(name, "Bobby");
  EXPECT_EQ(byte, std::nullopt);
  EXPECT_EQ(balance, 3);
  EXPECT_EQ(flag, true);
  EXPECT_EQ(again, "Bobby");

  Transaction t(*cluster_);
  t.Set(kByte, "Bob", 200);
  t.Delete(kName, "Bob");
  EXPECT_EQ(
      t.GetColumns("Bob", kBalance, kName, kByte).value(),
      (std::tuple<std::optional<int64_t>, std::optional<std::string>, std::optional<uint8_t>>(3, std::nullopt, 200)));
}

TEST_F(ColumnTest, GetColumnsNamesTheCellThatCannotBeDecoded) {
  MustSet({Put("Bob", "3"), Put("Bob", "x").Of("byte"), Put("Bob", "2").Of("flag")});
  EXPECT_THAT(MustSnapshot().GetColumns("Bob", kBalance, kByte, kFlag),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("accounts/Bob/byte")));
  EXPECT_THAT(MustSnapshot().GetColumns("Bob", kFlag, kBalance),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("accounts/Bob/flag")));
}

TEST_F(ColumnTest, GetRowsKeepsTheOrderOfItsArguments) {
  MustSet({Put("a", "1"), Put("b", "2"), Put("c", "3")});
  const Snapshot now = MustSnapshot();
  const uint64_t before = cluster_->metrics().store_reads;
  EXPECT_THAT(now.GetRows(kBalance, {"c", "missing", "a", "b", "a"}).value(), ElementsAre(3, std::nullopt, 1, 2, 1));
  EXPECT_EQ(cluster_->metrics().store_reads, before + 1);
  EXPECT_THAT(now.GetRows(kBalance, {}).value(), IsEmpty());

  Transaction t(*cluster_);
  t.Set(kBalance, "missing", 4);
  t.Delete(kBalance, "a");
  EXPECT_THAT(t.GetRows(kBalance, {"c", "missing", "a", "b", "a"}).value(),
              ElementsAre(3, 4, std::nullopt, 2, std::nullopt));

  MustSet({Put("b", "x")});
  EXPECT_THAT(MustSnapshot().GetRows(kBalance, {"c", "b", "a"}),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("accounts/b/bal")));
}

TEST_F(ColumnTest, AScannedRowGivesItsColumns) {
  MustSet({Put("Bob", "3"), Put("Bob", "").Of("name"), Put("Bob", "x").Of("byte")});
  int rows = 0;
  for (const absl::StatusOr<ScannedRow>& row : MustSnapshot().Scan(kTable)) {
    ASSERT_THAT(row, IsOk());
    EXPECT_EQ((*row)["bal"], "3");
    EXPECT_EQ((*row)["name"], "");
    EXPECT_EQ((*row)["flag"], std::nullopt);
    EXPECT_EQ(row->Get(kBalance).value(), 3);
    EXPECT_EQ(row->Get(kName).value(), "");
    EXPECT_EQ(row->Get(kFlag).value(), std::nullopt);
    EXPECT_THAT(row->Get(kByte), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("accounts/Bob/byte")));
    ++rows;
  }
  EXPECT_EQ(rows, 1);
}

// --- Writes that depend on a value.

TEST_F(ColumnTest, SetOrDelete) {
  const auto write = [&](const std::optional<int64_t>& value) {
    EXPECT_THAT(cluster_->Transact([&](ReadWrite& t) { t.SetOrDelete(kBalance, "Bob", value); }), IsOk());
    EXPECT_EQ(MustSnapshot().Get(kBalance, "Bob").value(), value);
  };
  write(3);
  write(std::nullopt);
  write(std::nullopt);
  write(0);
}

TEST_F(ColumnTest, SetOrVerifyWritesOnlyIfDifferent) {
  // Runs it on a cell with this value. Returns the number of new versions of the cell.
  const auto versions_after = [&](const std::optional<int64_t>& now, bool writes) {
    const auto count = [&] {
      const std::string cells = CellsOf(world_.store.get(), "Bob");
      int versions = 0;
      for (const std::string_view kind : {" put ", " delete "}) {
        for (size_t at = 0; (at = cells.find(kind, at)) != std::string::npos; ++at) ++versions;
      }
      return versions;
    };
    const int before = count();
    EXPECT_THAT(cluster_->Transact([&](ReadWrite& t) {
      EXPECT_EQ(t.SetOrVerify(kBalance, "Bob", t.Get(kBalance, "Bob").value(), now), writes);
    }),
                IsOk());
    EXPECT_EQ(MustSnapshot().Get(kBalance, "Bob").value(), now);
    return count() - before;
  };
  EXPECT_EQ(versions_after(std::nullopt, false), 0);
  EXPECT_EQ(versions_after(1, true), 1);
  EXPECT_EQ(versions_after(1, false), 0);
  EXPECT_EQ(versions_after(2, true), 1);
  EXPECT_EQ(versions_after(2, false), 0);
  EXPECT_EQ(versions_after(std::nullopt, true), 1);
  EXPECT_EQ(versions_after(std::nullopt, false), 0);
}

// If nothing was written, a concurrent write is still a conflict.
TEST_F(ColumnTest, SetOrVerifyVerifies) {
  MustSet({Put("Bob", "1")});
  for (const char* row : {"Bob", "Ann"}) {  // Ann has no value
    Transaction t(*cluster_);
    const std::optional<int64_t> was = t.Get(kBalance, row).value();
    EXPECT_FALSE(t.SetOrVerify(kBalance, row, was, was));
    MustSet({Put(row, "2")});
    const CommitResult result = t.Commit();
    ExpectOutcome(result, Outcome::kAborted);
    ExpectConflict(result.status, Conflict::Kind::kNewerWrite, row);
  }
}

// The encoded values are compared.
TEST_F(ColumnTest, SetOrVerifyComparesEncodings) {
  Transaction t(*cluster_);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(t.SetOrVerify(kDouble, "Bob", nan, nan));
  EXPECT_TRUE(t.SetOrVerify(kDouble, "Bob", 0.0, -0.0));
  EXPECT_TRUE(t.SetOrVerify(kName, "Bob", std::nullopt, ""));
  EXPECT_TRUE(t.SetOrVerify(kName, "Bob", "", std::nullopt));
  EXPECT_FALSE(t.SetOrVerify(kMessage, "Bob", v1::Cell(), v1::Cell()));
  EXPECT_FALSE(t.SetOrVerify(kBigEndian, "Bob", 1, 1));
  EXPECT_THAT(t.status(), IsOk());
}

// --- Errors of writes stick.

TEST_F(ColumnTest, TheFirstErrorOfAWriteFailsAllLaterCalls) {
  MustSet({Put("Bob", "1"), Put("Joe", "1")});
  Transaction t(*cluster_);
  EXPECT_THAT(t.status(), IsOk());
  t.Set(kBalance, "Joe", 2);
  EXPECT_EQ(t.Get(kBalance, "Joe").value(), 2);
  RowScan begun = t.Scan(kTable);
  RowScan::Iterator next = begun.begin();
  ASSERT_TRUE(next != begun.end() && next->ok());

  t.Set(kNowhere, "Bob", 1);
  const absl::Status error = t.status();
  EXPECT_THAT(error, StatusIs(absl::StatusCode::kNotFound, HasSubstr("nowhere/Bob/n")));
  cluster_.wire().CountFromHere();

  // Later writes, valid and invalid.
  t.Set({kTable, "", kColumn}, "the row key is empty");
  t.Set(kBalance, "Bob", 3);
  t.Delete(kBalance, "Joe");
  t.Verify(kBalance, "Bob");
  t.SetOrDelete(kBalance, "Bob", std::nullopt);
  t.SetOrVerify(kBalance, "Bob", 1, 4);
  t.Notify({kTable, "Bob", kColumn});
  t.Fail(absl::InternalError("another"));
  EXPECT_EQ(t.status(), error);

  EXPECT_EQ(t.Get(kBalance.At("Bob")).status(), error);
  EXPECT_EQ(t.Get(kBalance, "Joe").status(), error);
  EXPECT_EQ(t.Get(kBalance, "Nobody", 7).status(), error);
  EXPECT_EQ(t.GetColumns("Bob", kBalance, kName).status(), error);
  EXPECT_EQ(t.GetRows(kBalance, {"Bob", "Joe"}).status(), error);
  EXPECT_EQ(t.GetCells(std::vector<CellName>{{kTable, "Bob", kColumn}}).status(), error);
  EXPECT_EQ(t.Start().status(), error);
  std::vector<absl::Status> elements;
  for (const absl::StatusOr<ScannedRow>& row : t.Scan(kTable)) elements.push_back(row.status());
  for (const absl::StatusOr<Entry<int64_t>>& entry : t.Scan(kBalance)) elements.push_back(entry.status());
  ++next;
  ASSERT_TRUE(next != begun.end());
  elements.push_back(next->status());
  ++next;
  EXPECT_TRUE(next == begun.end());
  EXPECT_THAT(elements, ElementsAre(error, error, error));

  for (int i = 0; i < 2; ++i) {
    const CommitResult result = t.Commit();
    ExpectOutcome(result, Outcome::kAborted);
    EXPECT_EQ(result.status, error);
  }
  EXPECT_THAT(cluster_.wire().calls(), IsEmpty());
  EXPECT_EQ(Now("Bob"), "1");
  EXPECT_EQ(Now("Joe"), "1");
}

TEST_F(ColumnTest, TransactDoesNotRepeatAFailedWrite) {
  ASSERT_THAT(cluster_->CreateTable("docs", {.notify_only_columns = {"hot"}}), IsOk());
  struct Case {
    absl::StatusCode code;
    std::function<void(ReadWrite& t)> write;
  };
  const std::vector<Case> cases = {
      {absl::StatusCode::kNotFound, [](ReadWrite& t) { t.Set(kNowhere, "Bob", 1); }},
      {absl::StatusCode::kNotFound, [](ReadWrite& t) { t.Delete(kNowhere, "Bob"); }},
      {absl::StatusCode::kNotFound, [](ReadWrite& t) { t.Verify(kNowhere, "Bob"); }},
      {absl::StatusCode::kNotFound, [](ReadWrite& t) { t.SetOrDelete(kNowhere, "Bob", std::nullopt); }},
      {absl::StatusCode::kNotFound, [](ReadWrite& t) { t.SetOrVerify(kNowhere, "Bob", 1, 1); }},
      {absl::StatusCode::kInvalidArgument, [](ReadWrite& t) { t.Set(kBalance, "", 1); }},
      {absl::StatusCode::kInvalidArgument, [](ReadWrite& t) { t.Set(kHot.At("a"), "1"); }},
      {absl::StatusCode::kInvalidArgument, [](ReadWrite& t) { t.Notify(kBalance.At("Bob")); }},
      {absl::StatusCode::kInvalidArgument, [](ReadWrite& t) { t.Notify(kHot, ""); }},
      {absl::StatusCode::kInternal, [](ReadWrite& t) { t.Fail(absl::InternalError("given up")); }},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    const auto is_error = StatusIs(cases[i].code);
    int runs = 0;
    const auto fail = [&](ReadWrite& t) {
      ++runs;
      t.Set(kBalance, "Joe", 1);
      cases[i].write(t);
      EXPECT_THAT(t.status(), is_error);
    };
    CommitResult result;
    EXPECT_THAT(cluster_->Transact(fail, {}, &result), is_error);
    ExpectOutcome(result, Outcome::kAborted);
    EXPECT_THAT(result.status, is_error);
    EXPECT_THAT(cluster_->Transact([&](ReadWrite& t) { return fail(t), absl::OkStatus(); }), is_error);
    EXPECT_THAT(cluster_->Transact([&](ReadWrite& t) { return fail(t), absl::StatusOr<int>(42); }), is_error);
    EXPECT_EQ(runs, 3);
  }
  EXPECT_THAT(cluster_->Transact([](ReadWrite& t) { t.Notify(kHot, "a"); }), IsOk());
  EXPECT_EQ(Now("Joe"), std::nullopt);
  EXPECT_EQ(cluster_->metrics().conflicts, 0u);
}

// This also holds for a transient error: the function may have relied on the write.
TEST_F(ColumnTest, APassingErrorOfAWriteSticks) {
  Process process(&world_, Options());  // has not read the list of tables
  process.wire().FailFrom(1, {.kind = Kind::kLoseRequest});
  int runs = 0;
  const absl::Status status = process->Transact([&](ReadWrite& t) {
    ++runs;
    t.Set(kBalance, "Bob", 1);
    process.wire().ForgetFaults();
    t.Set(kBalance, "Joe", 1);
    EXPECT_THAT(t.status(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("accounts/Bob/bal")));
    EXPECT_EQ(t.Get(kBalance, "Joe").status(), t.status());
  });
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(Now("Bob"), std::nullopt);
  EXPECT_EQ(Now("Joe"), std::nullopt);
  EXPECT_THAT(process->Transact([](ReadWrite& t) { t.Set(kBalance, "Bob", 1); }), IsOk());
  EXPECT_EQ(Now("Bob"), "1");
}

// The function decides what to do about an error of a read.
TEST_F(ColumnTest, AnErrorOfAReadDoesNotStick) {
  MustSet({Put("Bob", "x")});
  Transaction t(*cluster_);
  EXPECT_THAT(t.Get(kNowhere, "Bob"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(t.Get(kBalance, "Bob"), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(t.status(), IsOk());
  t.Set(kBalance, "Bob", 1);
  EXPECT_EQ(t.Get(kBalance, "Bob").value(), 1);
  ExpectOutcome(t.Commit(), Outcome::kCommitted);
  EXPECT_EQ(Now("Bob"), "1");
}

TEST_F(ColumnTest, FailWithoutAnErrorDoesNothing) {
  Transaction t(*cluster_);
  t.Fail(absl::OkStatus());
  t.Set(kBalance, "Bob", 1);
  t.Fail(absl::OkStatus());
  EXPECT_THAT(t.status(), IsOk());
  ExpectOutcome(t.Commit(), Outcome::kCommitted);
}

// --- Scans: errors and lifetimes.

static_assert(std::input_iterator<RowScan::Iterator>);
static_assert(std::input_iterator<ColumnScan<int64_t>::Iterator>);
static_assert(std::sentinel_for<std::default_sentinel_t, RowScan::Iterator>);
static_assert(std::sentinel_for<std::default_sentinel_t, ColumnScan<int64_t>::Iterator>);

TEST_F(ColumnTest, AValueThatCannotBeDecodedEndsTheScan) {
  MustSet({Put("a", "1"), Put("b", "x"), Put("c", "3")});
  std::vector<std::string> rows;
  absl::Status error;
  for (const absl::StatusOr<Entry<int64_t>>& entry : MustSnapshot().Scan(kBalance)) {
    EXPECT_THAT(error, IsOk()) << "an element after the error";
    error = entry.status();
    if (entry.ok()) rows.push_back(StrCat(entry->row, "=", entry->value));
  }
  EXPECT_THAT(rows, ElementsAre("a=1"));
  EXPECT_THAT(error, StatusIs(absl::StatusCode::kDataLoss, HasSubstr("accounts/b/bal")));
}

TEST_F(ColumnTest, AnErrorOfTheStoreIsTheLastElement) {
  MustSet({Put("a", "1")});
  const Snapshot now = MustSnapshot();
  cluster_.wire().FailFrom(1, {.kind = Kind::kRefused, .error = absl::DataLossError("I/O error")});
  const auto is_error = StatusIs(absl::StatusCode::kDataLoss, HasSubstr("I/O error"));
  int elements = 0;
  for (const absl::StatusOr<ScannedRow>& row : now.Scan(kTable)) {
    EXPECT_THAT(row, is_error);
    ++elements;
  }
  for (const absl::StatusOr<Entry<int64_t>>& entry : now.Scan(kBalance)) {
    EXPECT_THAT(entry, is_error);
    ++elements;
  }
  EXPECT_EQ(elements, 2);
}

TEST_F(ColumnTest, AScanOutlivesItsSnapshot) {
  MustSet({Put("a", "1"), Put("b", "2")});
  std::string seen;
  for (const absl::StatusOr<ScannedRow>& row : cluster_->GetSnapshot()->Scan(kTable)) {
    ASSERT_THAT(row, IsOk());
    seen += StrCat(row->key, "=", row->columns[0].value, " ");
  }
  for (const absl::StatusOr<Entry<int64_t>>& entry : cluster_->GetSnapshot()->Scan(kBalance)) {
    ASSERT_THAT(entry, IsOk());
    seen += StrCat(entry->row, "=", entry->value, " ");
  }
  EXPECT_EQ(seen, "a=1 b=2 a=1 b=2 ");
}

// Garbage collection keeps the versions that it sees.
TEST_F(ColumnTest, AScanKeepsItsSnapshotOpen) {
  MustSet({Put("a", "1")});
  RowScan rows = cluster_->GetSnapshot()->Scan(kTable);
  MustSet({Put("a", "2")});
  world_.runtime.Sleep(std::chrono::hours(2));
  ASSERT_THAT(cluster_->CollectGarbage(), IsOk());
  RowScan::Iterator row = rows.begin();
  ASSERT_TRUE(row != rows.end());
  ASSERT_THAT(*row, IsOk());
  EXPECT_EQ((*row)->columns[0].value, "1");
}

TEST_F(ColumnTest, AScanOutlivesItsTransaction) {
  MustSet({Put("a", "1")});
  const auto scan = [&] {
    Transaction t(*cluster_);
    t.Set(kBalance, "b", 2);
    return t.Scan(kBalance);
  };
  std::string seen;
  for (const absl::StatusOr<Entry<int64_t>>& entry : scan()) {
    ASSERT_THAT(entry, IsOk());
    seen += StrCat(entry->row, "=", entry->value, " ");
  }
  EXPECT_EQ(seen, "a=1 b=2 ");
}

// --- Options of scans.

class ScanOptionsTest : public ColumnTest {
 protected:
  // A page of the store ends after a few versions, so that scans take many pages.
  ScanOptionsTest() : ColumnTest(Options(), {.max_scan_work = 3}) {}

  // Expects these rows, and for every limit the first of them.
  static void ExpectRows(const ReadView& view, ScanOptions options, const std::vector<std::string>& rows) {
    EXPECT_EQ(Scanned(view, options), absl::StrJoin(rows, " "));
    for (size_t limit = 1; limit <= rows.size() + 2; ++limit) {
      options.limit = limit;
      const std::vector<std::string> first(rows.begin(), rows.begin() + std::min(limit, rows.size()));
      EXPECT_EQ(Scanned(view, options), absl::StrJoin(first, " ")) << "limit " << limit;
    }
    options.limit = std::numeric_limits<size_t>::max();
    EXPECT_EQ(Scanned(view, options), absl::StrJoin(rows, " "));
  }
  static std::string RowOf(int i) { return StrCat("row", 1000 + i); }
};

TEST_F(ScanOptionsTest, ALimitCountsRowsThatHaveSelectedColumns) {
  MustSet({Put("a", "1"), Put("a", "x").Of("name"), Put("b", "y").Of("name"), Put("c", "3"), Put("d", "4"),
           Put("bb", "gone")});
  MustSet({Del("bb")});
  const Snapshot now = MustSnapshot();
  ExpectRows(now, {}, {"a{bal=1 name=x}", "b{name=y}", "c{bal=3}", "d{bal=4}"});
  ExpectRows(now, {.columns = {"bal"}}, {"a{bal=1}", "c{bal=3}", "d{bal=4}"});
  ExpectRows(now, {.columns = {"name"}}, {"a{name=x}", "b{name=y}"});
  ExpectRows(now, {.columns = {"nothing"}}, {});
  ExpectRows(now, {.rows = {"b", "d"}}, {"b{name=y}", "c{bal=3}"});
  ExpectRows(now, {.rows = {"b", std::nullopt}, .columns = {"bal"}}, {"c{bal=3}", "d{bal=4}"});
  ExpectRows(now, {.keys_only = true}, {"a{}", "b{}", "c{}", "d{}"});
  ExpectRows(now, {.columns = {"bal"}, .keys_only = true}, {"a{}", "c{}", "d{}"});
}

TEST_F(ScanOptionsTest, ALimitCountsOwnWritesAndNotOwnDeletes) {
  MustSet({Put("a", "1"), Put("a", "x").Of("name"), Put("b", "y").Of("name"), Put("c", "3"), Put("d", "4")});
  Transaction t(*cluster_);
  Buffer(t, {Put("aa", "own"), Put("b", "own"), Del("c"), Put("e", "own").Of("name"), Del("ee"), Relied("f", 0)});
  ExpectRows(t, {}, {"a{bal=1 name=x}", "aa{bal=own}", "b{bal=own name=y}", "d{bal=4}", "e{name=own}"});
  ExpectRows(t, {.columns = {"bal"}}, {"a{bal=1}", "aa{bal=own}", "b{bal=own}", "d{bal=4}"});
  ExpectRows(t, {.columns = {"name"}}, {"a{name=x}", "b{name=y}", "e{name=own}"});
  ExpectRows(t, {.columns = {"nothing"}}, {});
  ExpectRows(t, {.rows = {"aa", "d"}}, {"aa{bal=own}", "b{bal=own name=y}"});
  ExpectRows(t, {.keys_only = true}, {"a{}", "aa{}", "b{}", "d{}", "e{}"});
  ExpectRows(t, {.columns = {"bal"}, .keys_only = true}, {"a{}", "aa{}", "b{}", "d{}"});
  Buffer(t, {Del("a"), Del("aa"), Del("b"), Del("d")});
  ExpectRows(t, {.columns = {"bal"}}, {});
  ExpectRows(t, {}, {"a{name=x}", "b{name=y}", "e{name=own}"});
}

// A scan with a limit reads small pages, and may read many before it finds a row.
TEST_F(ScanOptionsTest, DeletedRowsBeforeTheFirst) {
  std::vector<PlannedWrite> puts;
  std::vector<PlannedWrite> deletes;
  for (int i = 0; i < 50; ++i) {
    puts.push_back(Put(RowOf(i), std::to_string(i)));
    if (i < 40) deletes.push_back(Del(RowOf(i)));
  }
  MustSet(puts);
  {
    Transaction t(*cluster_);
    Buffer(t, deletes);
    EXPECT_EQ(Scanned(t, {.limit = 2}), "row1040{bal=40} row1041{bal=41}");
    Buffer(t, {Put(RowOf(5), "own")});
    EXPECT_EQ(Scanned(t, {.limit = 2}), "row1005{bal=own} row1040{bal=40}");
  }
  MustSet(deletes);
  EXPECT_EQ(Scanned(MustSnapshot(), {.limit = 2}), "row1040{bal=40} row1041{bal=41}");
  EXPECT_EQ(Scanned(MustSnapshot(), {.rows = RowRange::All().After("row1048"), .limit = 2}), "row1049{bal=49}");
}

TEST_F(ScanOptionsTest, AtItsLimitAScanReadsNoFurther) {
  std::vector<PlannedWrite> puts;
  for (int i = 0; i < 50; ++i) puts.push_back(Put(RowOf(i), std::to_string(i)));
  MustSet(puts);
  const Snapshot now = MustSnapshot();
  cluster_.wire().CountFromHere();
  EXPECT_EQ(Scanned(now, {.limit = 1}), "row1000{bal=0}");
  EXPECT_EQ(cluster_.wire().CountOf("scan"), 1u);
}

TEST_F(ScanOptionsTest, KeysOnlyReadsNoLongValues) {
  MustSet({Put("a", std::string(1000, 'a')), Put("b", std::string(1000, 'b'))});
  const Snapshot now = MustSnapshot();
  cluster_.wire().CountFromHere();
  EXPECT_EQ(Scanned(now, {.keys_only = true}), "a{} b{}");
  EXPECT_EQ(cluster_.wire().CountOf("read"), 0u);
  EXPECT_EQ(Scanned(now), "a{bal=(1000 bytes)} b{bal=(1000 bytes)}");
  EXPECT_GT(cluster_.wire().CountOf("read"), 0u);
}

// The options apply to the scan of a column too, except those that it sets itself.
TEST_F(ScanOptionsTest, ScanColumnTakesTheOptions) {
  MustSet({Put("a", "1"), Put("b", "x").Of("name"), Put("c", "3"), Put("d", "4"), Put("e", "x")});
  Transaction t(*cluster_);
  t.Set(kBalance, "bb", 2);
  t.Delete(kBalance, "c");
  const auto scanned = [&](const ScanOptions& options) {
    std::string seen;
    for (const absl::StatusOr<Entry<int64_t>>& entry : t.Scan(kBalance, options)) {
      seen += entry.ok() ? StrCat(entry->row, "=", entry->value, " ") : std::string("error ");
    }
    return seen;
  };
  EXPECT_EQ(scanned({}), "a=1 bb=2 d=4 error ");
  EXPECT_EQ(scanned({.limit = 1}), "a=1 ");
  EXPECT_EQ(scanned({.limit = 2}), "a=1 bb=2 ");
  EXPECT_EQ(scanned({.limit = 3}), "a=1 bb=2 d=4 ");
  EXPECT_EQ(scanned({.rows = {"b", "d"}}), "bb=2 ");
  EXPECT_EQ(scanned({.columns = {"name"}, .limit = 3, .keys_only = true}), "a=1 bb=2 d=4 ");
}

// --- Row ranges.

TEST(RowRangeTest, After) {
  EXPECT_EQ(RowRange::All().After("a"), (RowRange{"a\0"s, std::nullopt}));
  EXPECT_EQ(RowRange::All().After("a\0"s), (RowRange{"a\0\0"s, std::nullopt}));
  EXPECT_EQ(RowRange::All().After("\xff"), (RowRange{"\xff\0"s, std::nullopt}));
  EXPECT_EQ(RowRange::All().After(""), (RowRange{"\0"s, std::nullopt}));
  const RowRange range{"b", "d"};
  EXPECT_EQ(range.After("a"), range);
  EXPECT_EQ(range.After("a\xff"), range);
  EXPECT_EQ(range.After("b"), (RowRange{"b\0"s, "d"}));
  EXPECT_EQ(range.After("c\xff"), (RowRange{"c\xff\0"s, "d"}));
}

TEST(RowRangeTest, Before) {
  EXPECT_EQ(RowRange::All().Before("a"), (RowRange{"", "a"}));
  EXPECT_EQ(RowRange::All().Before("a\0"s), (RowRange{"", "a\0"s}));
  EXPECT_EQ(RowRange::All().Before("\xff"), (RowRange{"", "\xff"}));
  EXPECT_EQ(RowRange::All().Before(""), (RowRange{"", ""}));
  const RowRange range{"b", "d"};
  EXPECT_EQ(range.Before("d"), range);
  EXPECT_EQ(range.Before("d\0"s), range);
  EXPECT_EQ(range.Before("\xff"), range);
  EXPECT_EQ(range.Before("c\xff"), (RowRange{"b", "c\xff"}));
  EXPECT_EQ(range.Before("b\0"s), (RowRange{"b", "b\0"s}));
}

class RowRangeScanTest : public ScanOptionsTest {
 protected:
  // Half of the rows are committed, the others are written by `writer_`.
  RowRangeScanTest() {
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (i % 2 == 0) {
        MustSet({Put(rows_[i], "1")});
      } else {
        Buffer(writer_, {Put(rows_[i], "1")});
      }
    }
  }

  static std::vector<std::string> Keys(const ReadView& view, const ScanOptions& options) {
    std::vector<std::string> keys;
    for (const absl::StatusOr<ScannedRow>& row : view.Scan(kTable, options)) {
      EXPECT_THAT(row, IsOk());
      if (row.ok()) keys.push_back(row->key);
    }
    return keys;
  }
  // The rows in a range that `wanted` accepts.
  std::vector<std::string> RowsIn(const RowRange& range, const std::function<bool(const std::string&)>& wanted) const {
    std::vector<std::string> found;
    for (const std::string& row : rows_) {
      const bool in_range = range.start <= row && (!range.limit.has_value() || row < *range.limit);
      if (in_range && wanted(row)) found.push_back(row);
    }
    return found;
  }

  const std::vector<std::string> rows_ = {"\x01",     "\x01\0"s,   "a", "a\0"s, "a\0\0"s,  "a\0b"s,   "a\xff",
                                          "a\xff\0"s, "a\xff\xff", "b", "\xff", "\xff\0"s, "\xff\xff"};
  Transaction writer_{*cluster_};
};

TEST_F(RowRangeScanTest, AfterAndBeforeDivideARange) {
  std::vector<std::string> borders = rows_;
  for (const std::string& other : {""s, "\0"s, "a\x01"s, "zz"s, "\xff\xff\xff"s}) borders.push_back(other);
  for (const RowRange& range :
       {RowRange::All(), RowRange::Prefix("a"), RowRange::Prefix("a\xff"), RowRange::Prefix("\xff"),
        RowRange::Single("a\0"s), RowRange{"a\0"s, "b"}, RowRange{"a", "a"}, RowRange{"b", "a"}, RowRange{"", ""}}) {
    EXPECT_EQ(Keys(writer_, {.rows = range}), RowsIn(range, [](const std::string&) { return true; }));
    for (const std::string& border : borders) {
      SCOPED_TRACE(ToString(CellView{range.start, border, range.limit.value_or("no limit")}));
      EXPECT_EQ(Keys(writer_, {.rows = range.After(border)}),
                RowsIn(range, [&](const std::string& row) { return row > border; }));
      EXPECT_EQ(Keys(writer_, {.rows = range.Before(border)}),
                RowsIn(range, [&](const std::string& row) { return row < border; }));
      EXPECT_THAT(Keys(writer_, {.rows = range.After(border).Before(border)}), IsEmpty());
    }
  }
}

TEST_F(RowRangeScanTest, AScanIsResumedAfterItsLastRow) {
  for (const size_t limit : {1, 2, 5}) {
    std::vector<std::string> seen;
    RowRange rest;
    for (;;) {
      const std::vector<std::string> page = Keys(writer_, {.rows = rest, .limit = limit});
      if (page.empty()) break;
      seen.insert(seen.end(), page.begin(), page.end());
      ASSERT_LE(seen.size(), rows_.size());
      rest = rest.After(page.back());
    }
    EXPECT_EQ(seen, rows_) << limit;
  }
}

TEST_F(RowRangeScanTest, TheLongestKey) {
  const std::string longest(TransactionLimits().max_row_key_bytes, '\xff');
  MustSet({Put(longest, "1")});
  const Snapshot now = MustSnapshot();
  EXPECT_THAT(Keys(now, {.rows = RowRange::All().After(longest)}), IsEmpty());
  EXPECT_THAT(Keys(now, {.rows = RowRange::Single(longest)}), ElementsAre(longest));
  EXPECT_THAT(Keys(now, {.rows = RowRange::Prefix("\xff").Before(longest)}), ElementsAre("\xff", "\xff\xff"));
}

// --- The result of Transact.

template <typename Fn>
using ResultOf = decltype(std::declval<const Cluster&>().Transact(std::declval<Fn>()));
static_assert(std::is_same_v<ResultOf<void (*)(ReadWrite&)>, absl::Status>);
static_assert(std::is_same_v<ResultOf<absl::Status (*)(ReadWrite&)>, absl::Status>);
static_assert(std::is_same_v<ResultOf<absl::StatusOr<std::string> (*)(ReadWrite&)>, absl::StatusOr<std::string>>);

absl::Status SetBobToOne(ReadWrite& t) {
  t.Set(kBalance, "Bob", 1);
  return t.status();
}

TEST_F(ColumnTest, TransactReturnsTheResultOfTheFunction) {
  EXPECT_THAT(cluster_->Transact([](ReadWrite& t) { t.Set(kBalance, "Joe", 1); }), IsOk());
  EXPECT_THAT(cluster_->Transact(SetBobToOne), IsOk());
  EXPECT_EQ(Now("Joe"), "1");
  EXPECT_EQ(Now("Bob"), "1");
  const auto add = [](ReadWrite& t) -> absl::StatusOr<int64_t> {
    const absl::StatusOr<int64_t> was = t.Get(kBalance, "Bob", 0);
    if (!was.ok()) return was.status();
    t.Set(kBalance, "Bob", *was + 1);
    return *was + 1;
  };
  EXPECT_THAT(cluster_->Transact(add), IsOkAndHolds(2));
  EXPECT_THAT(cluster_->Transact(add), IsOkAndHolds(3));
  EXPECT_EQ(Now("Bob"), "3");
  // A value that can only be moved.
  absl::StatusOr<std::unique_ptr<int>> moved =
      cluster_->Transact([](ReadWrite&) -> absl::StatusOr<std::unique_ptr<int>> { return std::make_unique<int>(7); });
  ASSERT_THAT(moved, IsOk());
  EXPECT_EQ(**moved, 7);
}

TEST_F(ColumnTest, AnErrorOfTheFunctionIsReturnedAndNothingIsCommitted) {
  int runs = 0;
  EXPECT_THAT(cluster_->Transact([&](ReadWrite& t) -> absl::StatusOr<int> {
    ++runs;
    t.Set(kBalance, "Bob", 1);
    return absl::PermissionDeniedError("no money");
  }),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("no money")));
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(Now("Bob"), std::nullopt);
}

TEST_F(ColumnTest, ValuesOfFailedAttemptsAreNotKept) {
  std::vector<std::weak_ptr<int>> values;  // of all attempts
  const auto attempt = [&](ReadWrite& t, bool disturbed) -> absl::StatusOr<std::shared_ptr<int>> {
    EXPECT_THAT(t.Get(kBalance, "Bob"), IsOk());
    if (disturbed) MustSet({Put("Bob", "100")});
    t.Set(kBalance, "Bob", 1);
    auto value = std::make_shared<int>(static_cast<int>(values.size()));
    values.push_back(value);
    return value;
  };
  {
    const absl::StatusOr<std::shared_ptr<int>> last =
        cluster_->Transact([&](ReadWrite& t) { return attempt(t, values.size() < 2); });
    ASSERT_THAT(last, IsOk());
    EXPECT_EQ(**last, 2);
    ASSERT_EQ(values.size(), 3u);
    EXPECT_TRUE(values[0].expired());
    EXPECT_TRUE(values[1].expired());
    EXPECT_EQ(values[2].use_count(), 1);
  }
  values.clear();
  const absl::StatusOr<std::shared_ptr<int>> lost =
      cluster_->Transact([&](ReadWrite& t) { return attempt(t, true); }, {.max_attempts = 3});
  ExpectConflict(lost.status(), Conflict::Kind::kNewerWrite, "Bob");
  ASSERT_EQ(values.size(), 3u);
  for (const std::weak_ptr<int>& value : values) EXPECT_TRUE(value.expired());
}

TEST_F(ColumnTest, AFunctionThatReturnsAValueMayAskToBeRunAgain) {
  int runs = 0;
  EXPECT_THAT(cluster_->Transact([&](ReadWrite& t) -> absl::StatusOr<int> {
    if (++runs < 3) return absl::AbortedError("not yet");
    t.Set(kBalance, "Bob", runs);
    return runs;
  }),
              IsOkAndHolds(3));
  EXPECT_EQ(Now("Bob"), "3");
}

TEST_F(ColumnTest, TransactReturnsTheResultOfTheCommit) {
  CommitResult result;
  Timestamp start;
  EXPECT_THAT(cluster_->Transact(
                  [&](ReadWrite& t) -> absl::StatusOr<int> {
                    t.Set(kBalance, "Bob", 1);
                    start = t.Start().value();
                    return 7;
                  },
                  {}, &result),
              IsOkAndHolds(7));
  ExpectOutcome(result, Outcome::kCommitted);
  EXPECT_EQ(result.start_ts, start);
  EXPECT_GT(result.commit_ts, start);
  EXPECT_EQ(result.primary, (CellName{kTable, "Bob", kColumn}));
  EXPECT_EQ(cluster_->GetSnapshotAt(result.commit_ts)->Get(kBalance, "Bob").value(), 1);
  EXPECT_EQ(cluster_->GetSnapshotAt(Timestamp(result.commit_ts.value() - 1))->Get(kBalance, "Bob").value(),
            std::nullopt);

  // A read-only transaction.
  EXPECT_THAT(cluster_->Transact([](ReadWrite& t) { EXPECT_THAT(t.Get(kBalance, "Bob"), IsOk()); }, {}, &result),
              IsOk());
  ExpectOutcome(result, Outcome::kCommitted);
  EXPECT_EQ(result.commit_ts, Timestamp());

  // Of several attempts, the result of the last.
  int runs = 0;
  const auto disturbed_once = [&](ReadWrite& t) {
    EXPECT_THAT(t.Get(kBalance, "Bob"), IsOk());
    if (++runs == 1) MustSet({Put("Bob", "100")});
    t.Set(kBalance, "Bob", runs);
  };
  const absl::Status lost = cluster_->Transact(disturbed_once, {.max_attempts = 1}, &result);
  ExpectConflict(lost, Conflict::Kind::kNewerWrite, "Bob");
  ExpectOutcome(result, Outcome::kAborted);
  EXPECT_EQ(result.status, lost);
  runs = 0;
  EXPECT_THAT(cluster_->Transact(disturbed_once, {}, &result), IsOk());
  EXPECT_EQ(runs, 2);
  ExpectOutcome(result, Outcome::kCommitted);
  EXPECT_EQ(cluster_->GetSnapshotAt(result.commit_ts)->Get(kBalance, "Bob").value(), 2);
}

TEST_F(ColumnTest, WithoutACommitTheResultIsAborted) {
  const auto expect = [&](absl::StatusCode code, const auto& fn, const TransactionOptions& options = {}) {
    CommitResult result{.outcome = Outcome::kCommitted, .commit_ts = Timestamp(7)};  // an earlier one
    const absl::Status status = cluster_->Transact(fn, options, &result);
    EXPECT_THAT(status, StatusIs(code));
    ExpectOutcome(result, Outcome::kAborted);
    EXPECT_EQ(result.status, status);
    EXPECT_EQ(result.commit_ts, Timestamp());
  };
  const auto nothing = [](ReadWrite&) {};
  expect(absl::StatusCode::kPermissionDenied, [](ReadWrite&) { return absl::PermissionDeniedError("no"); });
  expect(absl::StatusCode::kInvalidArgument, nothing, {.max_attempts = 0});
  ASSERT_THAT(cluster_->Close(), IsOk());
  expect(absl::StatusCode::kFailedPrecondition, nothing);
}

// Such a function cannot report an error itself.
TEST_F(ColumnTest, AFunctionThatReturnsNothingFailsWithTheFirstErrorOfItsReads) {
  const auto expect = [&](absl::StatusCode code, const std::function<void(ReadWrite&)>& read) {
    EXPECT_THAT(cluster_->Transact([&](ReadWrite& t) {
      t.Set(kBalance, "Bob", 7);
      read(t);
    }),
                StatusIs(code));
    EXPECT_EQ(Now("Bob"), std::nullopt);
  };
  MustSet({Put("Ann", "many")});
  expect(absl::StatusCode::kNotFound, [](ReadWrite& t) { t.Get({"missing", "r", "c"}).IgnoreError(); });
  expect(absl::StatusCode::kNotFound, [](ReadWrite& t) { t.GetCells({{"missing", "r", "c"}}).IgnoreError(); });
  expect(absl::StatusCode::kNotFound, [](ReadWrite& t) {
    for (const auto& row : t.Scan("missing")) row.IgnoreError();
  });
  expect(absl::StatusCode::kDataLoss, [](ReadWrite& t) { t.Get(kBalance, "Ann").IgnoreError(); });
  expect(absl::StatusCode::kDataLoss, [](ReadWrite& t) { t.Get(kBalance, "Ann", 1).IgnoreError(); });
  expect(absl::StatusCode::kDataLoss, [](ReadWrite& t) { t.GetColumns("Ann", kBalance).IgnoreError(); });
  expect(absl::StatusCode::kDataLoss, [](ReadWrite& t) { t.GetRows(kBalance, {"Ann"}).IgnoreError(); });
  expect(absl::StatusCode::kDataLoss, [](ReadWrite& t) {
    for (const auto& entry : t.Scan(kBalance)) entry.IgnoreError();
  });
  // A function that returns a status reports errors itself.
  EXPECT_THAT(cluster_->Transact([](ReadWrite& t) {
    t.Get(kBalance, "Ann").IgnoreError();
    return absl::OkStatus();
  }),
              IsOk());
}

TEST_F(ColumnTest, AFunctionMayBeMutableAndAssignToItsHandle) {
  int runs = 0;
  std::optional<Cluster> handle(*cluster_);
  EXPECT_THAT(handle->Transact([&runs, &handle, n = 0](ReadWrite& t) mutable -> absl::Status {
    handle.reset();
    t.Set(kBalance, "Bob", ++n);
    return ++runs < 3 ? absl::AbortedError("again") : absl::OkStatus();
  }),
              IsOk());
  EXPECT_EQ(Now("Bob"), "3");
}

}  // namespace
}  // namespace percolator
