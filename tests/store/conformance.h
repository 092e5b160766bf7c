// SPDX-License-Identifier: Apache-2.0

// The conformance suite: the contract of percolator/spi/store.h, tested on every kind of store.
//
// The suite is the object library store_conformance_suite. A test program links it and registers the stores to test
// (store_kinds.h).
//
// Suites: StoreTest runs on every registered store, StoreReopenTest and StoreLimitsTest on those that support them.

#ifndef PERCOLATOR_TESTS_STORE_CONFORMANCE_H_
#define PERCOLATOR_TESTS_STORE_CONFORMANCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "percolator/spi/store.h"
#include "tests/store/store_kinds.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/store_text.h"

namespace percolator {

// The kinds that support more. For INSTANTIATE_TEST_SUITE_P, with NameOfStore.
std::vector<StoreKind> StoresThatKeepContent();
std::vector<StoreKind> StoresThatTakeLimits();
std::string NameOfStore(const ::testing::TestParamInfo<StoreKind>& info);

// The vocabulary of the suite.
Mutation Set(std::string column, uint64_t ts, std::string value, Family family = Family::kData);
Mutation Erase(std::string column, TimestampRange range, Family family = Family::kData);
Mutation EraseAt(std::string column, uint64_t ts, Family family = Family::kData);
Selector Column(std::string column, TimestampRange range = {}, uint32_t newest = Selector::kAllVersions);
Selector Columns(Family family, TimestampRange range = {}, uint32_t newest = Selector::kAllVersions);
// A selector for each family, with everything in it.
std::vector<Selector> Everything();
ScanRequest ScanOf(RowRange rows, std::vector<Selector> selectors, size_t row_limit = 1000);
CellRange At(std::string column, uint64_t ts, Family family = Family::kData);
CellRange In(std::string column, TimestampRange range, Family family = Family::kData);
Condition None(std::vector<CellRange> cells);
Condition Any(std::vector<CellRange> cells);
Condition All(std::vector<CellRange> cells);
TimestampRange Between(uint64_t from, uint64_t until);
// All strings of one and two bytes over {00, 01, fe, ff}, in order.
std::vector<std::string> NastyStrings();

// A test with an open store that holds the empty table "t".
class StoreTest : public ::testing::TestWithParam<StoreKind> {
 protected:
  void SetUp() override;

  static uint64_t LastTimestamp() { return GetParam().last_timestamp; }

  // Opens the store, or opens it again, with these limits.
  void Open(const StoreLimits& limits);

  absl::StatusOr<MutateResult> Mutate(const std::string& row, std::vector<Mutation> mutations,
                                      Condition condition = {});
  // As Mutate, and expects that the mutations are applied.
  void Apply(const std::string& row, std::vector<Mutation> mutations, Condition condition = {});
  // Gives each row one version of column "c" at 1, whose value is the row's key.
  void ApplyRows(const std::vector<std::string>& rows);

  // The row's selected cells as text.
  std::string Read(const std::string& row, const std::vector<Selector>& selectors = Everything());
  // The rows of all pages as text.
  std::string Scan(const ScanRequest& request);
  std::string Scan(RowRange rows = RowRange::All(), std::vector<Selector> selectors = Everything());
  std::vector<std::string> ScanKeys(RowRange rows = RowRange::All());
  // All pages. Checks that each is well-formed: rows ascending, in range, not empty, and before the next page.
  std::vector<ScanPage> ScanPages(ScanRequest request);

  std::unique_ptr<StorePlace> place_;
  std::unique_ptr<Store> store_;
};

// Tests for places that support more.
class StoreReopenTest : public StoreTest {};
class StoreLimitsTest : public StoreTest {};

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_STORE_CONFORMANCE_H_
