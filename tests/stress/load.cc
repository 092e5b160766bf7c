// SPDX-License-Identifier: Apache-2.0

#include "tests/stress/load.h"

#include <unistd.h>

#include <array>
#include <optional>
#include <random>
#include <sstream>
#include <thread>
#include <utility>

#include "src/base/strings.h"

namespace percolator {
namespace {

constexpr char kBank[] = "bank";
constexpr char kBalance[] = "bal";
constexpr char kList[] = "list";
// Lists are in two tables, several to a row: conflicts in one row, across rows and across tables.
constexpr int kLists = 12;
// At this length a list is complete, and another one takes its place.
constexpr int kLongList = 60;
constexpr int kGenerations = 40;

std::string ListKey(int list, int generation) { return StrCat("l", list, "g", generation); }

CellName ListCell(int list, int generation) {
  return {list % 2 == 0 ? "even" : "odd", StrCat("row", list / 4, "g", generation), StrCat(kList, list)};
}

std::string AccountKey(int account) { return StrCat("a", account); }
CellName AccountCell(int account) { return {kBank, AccountKey(account), kBalance}; }

// One transaction, recorded.
class Recording {
 public:
  Recording(const Cluster& cluster, Recorder* recorder, LoadKind kind, uint64_t id, int process)
      : recorder_(recorder), kind_(kind), id_(id) {
    recorder_->Begin(kind_, id_, process);
    t_.emplace(cluster);
  }

  absl::StatusOr<std::optional<std::string>> Read(const std::string& key, const CellName& cell) {
    absl::StatusOr<std::optional<std::string>> value = t_->Get(cell);
    if (value.ok()) operations_.push_back({TxnOperation::Kind::kRead, key, *value, 0});
    return value;
  }

  void Write(const std::string& key, const CellName& cell, const std::string& value) {
    operations_.push_back({TxnOperation::Kind::kWrite, key, value, 0});
    t_->Set(cell, value);
  }

  absl::Status Append(const std::string& key, const CellName& cell, int64_t element) {
    absl::StatusOr<std::optional<std::string>> old = t_->Get(cell);
    if (!old.ok()) return old.status();
    std::string list(ListText(*old));
    AppendToList(&list, element);
    operations_.push_back({TxnOperation::Kind::kRead, key, *old, 0});
    operations_.push_back({TxnOperation::Kind::kAppend, key, std::nullopt, element});
    t_->Set(cell, list);
    return absl::OkStatus();
  }

  // A conflict is not an error.
  absl::Status Commit() {
    recorder_->Done(kind_, id_, t_->timestamp(), operations_);
    const CommitResult result = t_->Commit();
    if (result.committed()) {
      recorder_->Ended(kind_, id_, TxnOutcome::kOk, result.commit_ts);
    } else if (result.outcome == CommitResult::Outcome::kAborted) {
      recorder_->Ended(kind_, id_, TxnOutcome::kFail, {});
    }
    return result.committed() || IsConflict(result.status) ? absl::OkStatus() : result.status;
  }

 private:
  Recorder* const recorder_;
  const LoadKind kind_;
  const uint64_t id_;
  std::optional<Transaction> t_;
  std::vector<TxnOperation> operations_;
};

// The current list: its generation only grows.
class Lists {
 public:
  int Generation(int list) const { return generations_[list]; }
  void Seen(int list, int generation, size_t length) {
    if (length < kLongList || generation + 1 >= kGenerations) return;
    int expected = generation;
    generations_[list].compare_exchange_strong(expected, generation + 1);
  }

 private:
  std::array<std::atomic<int>, kLists> generations_{};
};

absl::Status ListTransaction(Recording* txn, uint64_t id, Lists* lists, std::mt19937_64* random) {
  const int operations = 1 + static_cast<int>((*random)() % 4);
  for (int i = 0; i < operations; ++i) {
    const int list = static_cast<int>((*random)() % kLists);
    const int generation = lists->Generation(list);
    const std::string key = ListKey(list, generation);
    if ((*random)() % 2 == 0) {
      const auto value = txn->Read(key, ListCell(list, generation));
      if (!value.ok()) return value.status();
      lists->Seen(list, generation, ParseList(ListText(*value)).value_or(std::vector<int64_t>()).size());
    } else if (absl::Status s = txn->Append(key, ListCell(list, generation), static_cast<int64_t>(id * 10 + i));
               !s.ok()) {
      return s;
    }
  }
  return absl::OkStatus();
}

absl::Status Transfer(Recording* txn, std::mt19937_64* random) {
  const int from = static_cast<int>((*random)() % kAccounts);
  const int to = static_cast<int>((from + 1 + (*random)() % (kAccounts - 1)) % kAccounts);
  const auto has = txn->Read(AccountKey(from), AccountCell(from));
  if (!has.ok()) return has.status();
  const auto gets = txn->Read(AccountKey(to), AccountCell(to));
  if (!gets.ok()) return gets.status();
  if (!has->has_value() || !gets->has_value()) return absl::DataLossError("an account is gone");
  const int amount = static_cast<int>((*random)() % 10);
  txn->Write(AccountKey(from), AccountCell(from), std::to_string(std::stoi(**has) - amount));
  txn->Write(AccountKey(to), AccountCell(to), std::to_string(std::stoi(**gets) + amount));
  return absl::OkStatus();
}

bool Passes(const absl::Status& status) {
  return IsTransient(status) || IsConflict(status) || IsSnapshotTooOld(status) || absl::IsUnknown(status);
}

const char* KindName(LoadKind kind) { return kind == LoadKind::kLists ? "lists" : "bank"; }

}  // namespace

void HistoryKeeper::Begin(LoadKind kind, uint64_t id, int process) {
  MutexLock lock(&mutex_);
  std::vector<TxnRecord>& transactions = histories_[kind].transactions;
  places_[kind][id] = static_cast<TxnId>(transactions.size());
  transactions.push_back({.process = process, .invoke = order_++});
}

void HistoryKeeper::Done(LoadKind kind, uint64_t id, Timestamp start_ts, const std::vector<TxnOperation>& operations) {
  MutexLock lock(&mutex_);
  TxnRecord& record = histories_[kind].transactions[places_[kind].at(id)];
  record.start_ts = start_ts;
  record.operations = operations;
}

void HistoryKeeper::Ended(LoadKind kind, uint64_t id, TxnOutcome outcome, Timestamp commit_ts) {
  MutexLock lock(&mutex_);
  TxnRecord& record = histories_[kind].transactions[places_[kind].at(id)];
  record.outcome = outcome;
  record.commit_ts = commit_ts;
  record.complete = order_++;
}

History HistoryKeeper::Copy(LoadKind kind) const {
  MutexLock lock(&mutex_);
  const auto it = histories_.find(kind);
  return it == histories_.end() ? History() : it->second;
}

TxnId HistoryKeeper::Place(LoadKind kind, uint64_t id) const {
  MutexLock lock(&mutex_);
  return places_.at(kind).at(id);
}

void PipeRecorder::Begin(LoadKind kind, uint64_t id, int process) {
  WriteLine(StrCat("begin ", KindName(kind), " ", id, " ", process));
}

void PipeRecorder::Done(LoadKind kind, uint64_t id, Timestamp start_ts, const std::vector<TxnOperation>& operations) {
  std::string line = StrCat("done ", KindName(kind), " ", id, " ", start_ts.value());
  for (const TxnOperation& op : operations) {
    // A list is written with commas, because blanks separate operations.
    std::string value = op.value.has_value() ? *op.value : "-";
    for (char& c : value) c = c == ' ' ? ',' : c;
    line += StrCat(" ", static_cast<int>(op.kind), ":", op.key, ":", value, ":", op.element);
  }
  WriteLine(line);
}

void PipeRecorder::Ended(LoadKind kind, uint64_t id, TxnOutcome outcome, Timestamp commit_ts) {
  WriteLine(StrCat("ended ", KindName(kind), " ", id, " ", static_cast<int>(outcome), " ", commit_ts.value()));
}

void PipeRecorder::WriteLine(const std::string& line) {
  MutexLock lock(&mutex_);
  const std::string bytes = line + "\n";
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = write(fd_, bytes.data() + done, bytes.size() - done);
    if (n <= 0) std::abort();  // the reader is gone: the test is over
    done += static_cast<size_t>(n);
  }
}

bool PipeRecorder::Replay(const std::string& line, Recorder* recorder) {
  std::istringstream in(line);
  std::string event;
  std::string kind_name;
  uint64_t id = 0;
  if (!(in >> event >> kind_name >> id)) return false;
  const LoadKind kind = kind_name == "lists" ? LoadKind::kLists : LoadKind::kBank;
  if (event == "begin") {
    int process = 0;
    if (!(in >> process)) return false;
    recorder->Begin(kind, id, process);
    return true;
  }
  if (event == "ended") {
    int outcome = 0;
    uint64_t commit_ts = 0;
    if (!(in >> outcome >> commit_ts)) return false;
    recorder->Ended(kind, id, static_cast<TxnOutcome>(outcome), Timestamp(commit_ts));
    return true;
  }
  uint64_t start_ts = 0;
  if (event != "done" || !(in >> start_ts)) return false;
  std::vector<TxnOperation> operations;
  for (std::string word; in >> word;) {
    std::istringstream fields(word);
    std::string op_kind;
    std::string value;
    std::string element;
    TxnOperation op;
    if (!std::getline(fields, op_kind, ':') || !std::getline(fields, op.key, ':') ||
        !std::getline(fields, value, ':') || !std::getline(fields, element)) {
      return false;
    }
    op.kind = static_cast<TxnOperation::Kind>(std::stoi(op_kind));
    for (char& c : value) c = c == ',' ? ' ' : c;
    if (value != "-") op.value = value;
    op.element = std::stoll(element);
    operations.push_back(std::move(op));
  }
  recorder->Done(kind, id, Timestamp(start_ts), operations);
  return true;
}

absl::Status SetUpLoad(const Cluster& cluster, Recorder* recorder, uint64_t id) {
  for (const char* table : {kBank, "even", "odd"}) {
    if (absl::Status s = cluster.CreateTable(table); !s.ok()) return s;
  }
  Recording txn(cluster, recorder, LoadKind::kBank, id, -1);
  for (int i = 0; i < kAccounts; ++i) {
    // A first read draws the start timestamp, which the record needs.
    if (auto value = txn.Read(AccountKey(i), AccountCell(i)); !value.ok()) return value.status();
    txn.Write(AccountKey(i), AccountCell(i), std::to_string(kOpeningBalance));
  }
  return txn.Commit();
}

absl::Status RunLoad(const Cluster& cluster, Recorder* recorder, const LoadSettings& settings,
                     const std::atomic<bool>& stop) {
  Lists lists;
  Mutex mutex;
  absl::Status error;
  std::atomic<bool> failed{false};
  std::atomic<uint64_t> next_id{settings.first_id};
  std::vector<std::thread> threads;
  for (int n = 0; n < settings.threads; ++n) {
    threads.emplace_back([&, n] {
      std::mt19937_64 random(settings.seed * 1000 + n);
      while (!stop && !failed) {
        const uint64_t id = next_id++;
        const LoadKind kind = random() % 3 == 0 ? LoadKind::kBank : LoadKind::kLists;
        Recording txn(cluster, recorder, kind, id, settings.process + n);
        absl::Status status =
            kind == LoadKind::kBank ? Transfer(&txn, &random) : ListTransaction(&txn, id, &lists, &random);
        if (status.ok()) status = txn.Commit();
        if (status.ok() || (settings.patient && Passes(status))) continue;
        MutexLock lock(&mutex);
        error = status;
        failed = true;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  MutexLock lock(&mutex);
  return error;
}

absl::StatusOr<int64_t> CountMoney(const ReadView& view) {
  int64_t total = 0;
  for (int i = 0; i < kAccounts; ++i) {
    const auto value = view.Get(AccountCell(i));
    if (!value.ok()) return value.status();
    if (!value->has_value()) return absl::DataLossError(StrCat("account ", i, " is gone"));
    total += std::stoll(**value);
  }
  return total;
}

absl::StatusOr<int64_t> ReadEverything(const Cluster& cluster, Recorder* recorder, uint64_t id) {
  Recording all_lists(cluster, recorder, LoadKind::kLists, id, -1);
  for (int list = 0; list < kLists; ++list) {
    for (int generation = 0; generation < kGenerations; ++generation) {
      const auto value = all_lists.Read(ListKey(list, generation), ListCell(list, generation));
      if (!value.ok()) return value.status();
    }
  }
  if (absl::Status s = all_lists.Commit(); !s.ok()) return s;
  Recording bank(cluster, recorder, LoadKind::kBank, id, -1);
  int64_t total = 0;
  for (int i = 0; i < kAccounts; ++i) {
    const auto value = bank.Read(AccountKey(i), AccountCell(i));
    if (!value.ok()) return value.status();
    if (!value->has_value()) return absl::DataLossError(StrCat("account ", i, " is gone"));
    total += std::stoll(**value);
  }
  if (absl::Status s = bank.Commit(); !s.ok()) return s;
  return total;
}

}  // namespace percolator
