// Figure 4 of the paper: Bob gives Joe 7 dollars.
//
// Each Percolator column `bal` is three columns of the store below it: bal:data, bal:lock and bal:write. This
// program makes the transfer step by step, with the store's two operations, and prints the cells after each
// step as the figure does. What a transaction does for you, you see here by hand:
//
//   lock     put the new value and a lock into a row, if nobody else holds a lock there or wrote since we
//   started commit   replace our lock by a write record, if it is still there; for the primary, that is the
//   commit point get      refuse to look past a lock; else take the newest write record, and the value that
//   it points to

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "percolator/store.h"

namespace {

using percolator::Cell;
using percolator::Condition;
using percolator::Family;
using percolator::MutateResult;
using percolator::Mutation;
using percolator::Row;
using percolator::Store;
using percolator::Timestamp;
using percolator::TimestampRange;

constexpr char kTable[] = "accounts";
constexpr char kColumn[] = "bal";

[[noreturn]] void Die(const absl::Status& status) {
  std::cerr << "bank: " << status.message() << "\n";
  std::exit(1);
}

template <typename T>
T Check(absl::StatusOr<T> result) {
  if (!result.ok()) Die(result.status());
  return *std::move(result);
}

void Check(const absl::Status& status) {
  if (!status.ok()) Die(status);
}

bool Apply(Store& store, const std::string& row, Condition condition, std::vector<Mutation> mutations) {
  auto results = store.Mutate({{kTable, row, std::move(condition), std::move(mutations)}});
  return Check(results[0]) == MutateResult::kApplied;
}

// Figure 6, Prewrite: lines 31 to 39, as one conditional mutation of the row.
bool Lock(Store& store, const std::string& row, const std::string& value, Timestamp start_ts, const std::string& lock) {
  return Apply(
      store, row,
      {Condition::Quantifier::kNone,
       {{Family::kWrite, kColumn, TimestampRange::From(start_ts)}, {Family::kLock, kColumn, TimestampRange::All()}}},
      {Mutation::Set(Family::kData, kColumn, start_ts, value), Mutation::Set(Family::kLock, kColumn, start_ts, lock)});
}

// Figure 6, Commit: lines 53 to 58 for the primary, 62 and 63 for the others.
bool Commit(Store& store, const std::string& row, Timestamp start_ts, Timestamp commit_ts) {
  return Apply(store, row, {Condition::Quantifier::kAll, {{Family::kLock, kColumn, TimestampRange::Exactly(start_ts)}}},
               {Mutation::Set(Family::kWrite, kColumn, commit_ts, start_ts.ToString()),
                Mutation::Erase(Family::kLock, kColumn, TimestampRange::Exactly(start_ts))});
}

// Figure 6, Get: lines 8 to 24, without the waiting. Lock, write and data are read in one view of the row.
std::string Get(Store& store, const std::string& row, Timestamp ts) {
  const std::vector<Row> rows = Check(store.Read({{kTable,
                                                   row,
                                                   {{Family::kLock, kColumn, TimestampRange::UpTo(ts)},
                                                    {Family::kWrite, kColumn, TimestampRange::UpTo(ts), 1},
                                                    {Family::kData, kColumn, TimestampRange::UpTo(ts)}}}}));
  std::string data_ts;
  for (const Cell& cell : rows[0].cells) {
    if (cell.family == Family::kLock) return "(locked)";
    if (cell.family == Family::kWrite) data_ts = cell.value;
    if (cell.family == Family::kData && cell.timestamp.ToString() == data_ts) return cell.value;
  }
  return "(none)";
}

std::string CellsOf(const Row& row, Family family) {
  std::ostringstream out;
  for (const Cell& cell : row.cells) {
    if (cell.family != family) continue;
    if (out.tellp() > 0) out << ", ";
    out << cell.timestamp << ": " << (family == Family::kWrite ? "data @ " : "") << cell.value;
  }
  return out.str();
}

void Print(Store& store, const std::string& step) {
  const auto page =
      Check(store.Scan({kTable, percolator::RowRange::All(), {{Family::kData}, {Family::kLock}, {Family::kWrite}}}));
  std::cout << step << "\n" << std::left;
  std::cout << "    row   " << std::setw(18) << "bal:data" << std::setw(24) << "bal:lock"
            << "bal:write\n";
  for (const Row& row : page.rows) {
    std::cout << "    " << std::setw(6) << row.key << std::setw(18) << CellsOf(row, Family::kData) << std::setw(24)
              << CellsOf(row, Family::kLock) << CellsOf(row, Family::kWrite) << "\n";
  }
  std::cout << "\n";
}

void Require(bool done, const std::string& what) {
  if (!done) Die(absl::AbortedError(what + " was refused: somebody else is at work on these accounts"));
}

void Transfer(Store& store) {
  Require(Lock(store, "Bob", "$10", Timestamp(5), "I am primary"), "opening Bob's account");
  Require(Lock(store, "Joe", "$2", Timestamp(5), "primary @ Bob.bal"), "opening Joe's account");
  Require(Commit(store, "Bob", Timestamp(5), Timestamp(6)), "committing Bob's account");
  Require(Commit(store, "Joe", Timestamp(5), Timestamp(6)), "committing Joe's account");
  Print(store, "1. Bob has 10 dollars, Joe has 2.");

  Require(Lock(store, "Bob", "$3", Timestamp(7), "I am primary"), "locking Bob");
  Print(store, "2. The transfer starts at timestamp 7 and locks Bob's account: its primary.");

  Require(Lock(store, "Joe", "$9", Timestamp(7), "primary @ Bob.bal"), "locking Joe");
  Print(store, "3. It locks Joe's account. The lock tells where the primary is.");

  std::cout << "   A second transfer tries to lock Bob at timestamp 8: "
            << (Lock(store, "Bob", "$0", Timestamp(8), "I am primary") ? "done?!" : "refused, there is a lock") << ".\n"
            << "   A reader at timestamp 6 sees Bob's " << Get(store, "Bob", Timestamp(6)) << " and Joe's "
            << Get(store, "Joe", Timestamp(6)) << "; a reader at 8 has to wait: " << Get(store, "Bob", Timestamp(8))
            << ".\n\n";

  Require(Commit(store, "Bob", Timestamp(7), Timestamp(8)), "committing Bob");
  Print(store, "4. The commit point, timestamp 8: Bob's lock becomes a write record.");

  Require(Commit(store, "Joe", Timestamp(7), Timestamp(8)), "committing Joe");
  Print(store, "5. The same for Joe.");

  std::cout << "Bob has " << Get(store, "Bob", Timestamp(9)) << " and Joe has " << Get(store, "Joe", Timestamp(9))
            << "; as of timestamp 6, they had " << Get(store, "Bob", Timestamp(6)) << " and "
            << Get(store, "Joe", Timestamp(6)) << ".\n";
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Figure 4 of the Percolator paper on the embedded store: Bob gives Joe 7 dollars.");
  std::string dir;
  app.add_option("--data", dir, "Folder to keep the store in (default: a temporary one, removed at the end)");
  CLI11_PARSE(app, argc, argv);

  std::string temporary;
  if (dir.empty()) {
    temporary = (std::filesystem::temp_directory_path() / "percolator-bank-XXXXXX").string();
    if (mkdtemp(temporary.data()) == nullptr) Die(absl::InternalError("cannot make a temporary folder " + temporary));
    dir = temporary;
  }
  {
    const std::unique_ptr<Store> store = Check(percolator::OpenRocksStore(dir));
    for (const auto& table : Check(store->ListTables())) {
      if (table.name == kTable) Check(store->DropTable(kTable));
    }
    Check(store->CreateTable({kTable, ""}));
    Transfer(*store);
    Check(store->Close());
  }
  if (!temporary.empty()) std::filesystem::remove_all(temporary);
  return 0;
}
