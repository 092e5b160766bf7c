// SPDX-License-Identifier: Apache-2.0

#include "tests/harness/wire.h"

#include <utility>

#include "absl/status/status.h"

namespace percolator {
namespace {

absl::Status Lost() { return absl::UnavailableError("the answer was lost"); }
absl::Status Dead() { return absl::FailedPreconditionError("this client is dead"); }

// The rows of a batch whose bit is set.
std::vector<RowMutation> Part(const std::vector<RowMutation>& mutations, uint64_t rows) {
  std::vector<RowMutation> part;
  for (size_t i = 0; i < mutations.size(); ++i) {
    if (i >= 64 || ((rows >> i) & 1) != 0) part.push_back(mutations[i]);
  }
  return part;
}

}  // namespace

std::string FaultName(Fault::Kind kind) {
  switch (kind) {
    case Fault::Kind::kDieBefore:
      return "die before";
    case Fault::Kind::kDieAfter:
      return "die after";
    case Fault::Kind::kLoseRequest:
      return "lose the request";
    case Fault::Kind::kLoseReply:
      return "lose the reply";
    case Fault::Kind::kTwice:
      return "do twice";
    case Fault::Kind::kEchoLate:
      return "late echo";
    case Fault::Kind::kLate:
      return "late";
    case Fault::Kind::kRefused:
      return "refused";
  }
  return "unknown fault";
}

Wire::Wire(Store* store, Oracle* oracle) : store_(this, store, oracle), oracle_(this, oracle) {}

void Wire::CountFromHere() {
  MutexLock lock(&mutex_);
  calls_.clear();
}

void Wire::FailAt(const Place& place, Fault fault) {
  MutexLock lock(&mutex_);
  faults_.insert_or_assign(place, std::move(fault));
}

void Wire::FailFrom(size_t call, Fault fault) {
  MutexLock lock(&mutex_);
  faults_from_ = {call, std::move(fault)};
}

void Wire::Before(const Place& place, std::function<void()> run) {
  MutexLock lock(&mutex_);
  before_.insert_or_assign(place, std::move(run));
}

void Wire::After(const Place& place, std::function<void()> run) {
  MutexLock lock(&mutex_);
  after_.insert_or_assign(place, std::move(run));
}

void Wire::ForgetFaults() {
  MutexLock lock(&mutex_);
  faults_.clear();
  faults_from_.reset();
  before_.clear();
  after_.clear();
}

void Wire::DeliverLate() {
  std::vector<std::function<void()>> late;
  {
    MutexLock lock(&mutex_);
    late.swap(late_);
  }
  for (const std::function<void()>& deliver : late) deliver();
}

bool Wire::dead() const {
  MutexLock lock(&mutex_);
  return dead_;
}

void Wire::Die() {
  MutexLock lock(&mutex_);
  dead_ = true;
}

std::vector<Wire::Call> Wire::calls() const {
  MutexLock lock(&mutex_);
  return calls_;
}

size_t Wire::CountOf(const std::string& what) const {
  size_t count = 0;
  for (const Call& call : calls()) count += call.what == what ? 1 : 0;
  return count;
}

std::vector<Wire::Place> Wire::Enter(const Call& call, std::optional<Fault>* fault) {
  const size_t of_kind = CountOf(call.what) + 1;
  MutexLock lock(&mutex_);
  calls_.push_back(call);
  std::vector<Place> places = {Place(calls_.size()), Place(call.what, of_kind)};
  if (faults_from_.has_value() && calls_.size() >= faults_from_->first) *fault = faults_from_->second;
  for (const Place& place : places) {
    const auto at = faults_.find(place);
    if (at != faults_.end()) *fault = at->second;
  }
  return places;
}

void Wire::RunHook(std::map<Place, std::function<void()>>* hooks, const std::vector<Place>& places) {
  for (const Place& place : places) {
    std::function<void()> run;
    {
      MutexLock lock(&mutex_);
      const auto it = hooks->find(place);
      if (it == hooks->end()) continue;
      run = std::move(it->second);
      hooks->erase(it);
    }
    run();
  }
}

template <typename Answer>
Answer Wire::Send(const Call& call, const std::function<Answer(uint64_t rows)>& run,
                  const std::function<Answer(const absl::Status&)>& failed) {
  if (dead()) return failed(Dead());
  std::optional<Fault> fault;
  const std::vector<Place> places = Enter(call, &fault);
  RunHook(&before_, places);
  if (dead()) return failed(Dead());  // the hook may have killed the client
  auto answer = [&]() -> Answer {
    if (!fault.has_value()) return run(Fault::kAllRows);
    switch (fault->kind) {
      case Fault::Kind::kDieBefore:
        Die();
        return failed(Dead());
      case Fault::Kind::kDieAfter:
        (void)run(fault->rows);
        Die();
        return failed(Dead());
      case Fault::Kind::kLoseRequest:
        return failed(Lost());
      case Fault::Kind::kLoseReply:
        (void)run(fault->rows);
        return failed(Lost());
      case Fault::Kind::kTwice:
        (void)run(Fault::kAllRows);
        return run(Fault::kAllRows);
      case Fault::Kind::kEchoLate: {
        MutexLock lock(&mutex_);
        late_.push_back([run] { (void)run(Fault::kAllRows); });
        break;
      }
      case Fault::Kind::kLate: {
        MutexLock lock(&mutex_);
        late_.push_back([run] { (void)run(Fault::kAllRows); });
        return failed(Lost());
      }
      case Fault::Kind::kRefused:
        return failed(fault->error);
    }
    return run(Fault::kAllRows);
  }();
  RunHook(&after_, places);
  return answer;
}

// Requests are copied: one that arrives late must not refer to a client that is gone.

absl::StatusOr<std::vector<Row>> Wire::WiredStore::Read(const std::vector<RowRead>& reads) {
  using Answer = absl::StatusOr<std::vector<Row>>;
  return wire_->Send<Answer>({"read"}, [store = store(), reads](uint64_t /*rows*/) { return store->Read(reads); });
}

absl::StatusOr<ScanPage> Wire::WiredStore::Scan(const ScanRequest& request) {
  using Answer = absl::StatusOr<ScanPage>;
  return wire_->Send<Answer>({"scan"}, [store = store(), request](uint64_t /*rows*/) { return store->Scan(request); });
}

std::vector<absl::StatusOr<MutateResult>> Wire::WiredStore::Mutate(const std::vector<RowMutation>& mutations) {
  using Answer = std::vector<absl::StatusOr<MutateResult>>;
  return wire_->Send<Answer>(
      {"mutate", mutations.size()},
      [store = store(), mutations](uint64_t rows) { return store->Mutate(Part(mutations, rows)); },
      [n = mutations.size()](const absl::Status& error) { return Answer(n, error); });
}

std::vector<DrawnResult> Wire::WiredStore::MutateThenDraw(const std::vector<RowMutation>& mutations) {
  using Answer = std::vector<DrawnResult>;
  if (!wire_->draws_) return Store::MutateThenDraw(mutations);
  return wire_->Send<Answer>(
      {"mutate", mutations.size()},
      [store = store(), oracle = oracle_, mutations](uint64_t rows) {
        Answer results = store->MutateThenDraw(Part(mutations, rows));
        for (DrawnResult& row : results) {
          const bool applied = row.result.ok() && *row.result == MutateResult::kApplied;
          if (applied) row.drawn = oracle->GetTimestamp().value();
        }
        return results;
      },
      [n = mutations.size()](const absl::Status& error) {
        return Answer(n, {error, std::nullopt});
      });
}

absl::StatusOr<JointResult> Wire::WiredStore::MutateTogether(const JointMutation& mutation, Oracle* /*oracle*/) {
  using Answer = absl::StatusOr<JointResult>;
  return wire_->Send<Answer>({"together", mutation.rows.size()},
                             [store = store(), oracle = oracle_, mutation](uint64_t /*rows*/) {
                               return store->MutateTogether(mutation, oracle);
                             });
}

absl::Status Wire::WiredStore::RaiseSafePoint(Timestamp ts) {
  return wire_->Send<absl::Status>({"safe point"},
                                   [store = store(), ts](uint64_t /*rows*/) { return store->RaiseSafePoint(ts); });
}

absl::StatusOr<Timestamp> Wire::WiredStore::SafePoint() {
  using Answer = absl::StatusOr<Timestamp>;
  return wire_->Send<Answer>({"safe point"}, [store = store()](uint64_t /*rows*/) { return store->SafePoint(); });
}

absl::StatusOr<std::vector<std::string>> Wire::WiredStore::SampleRowKeys(const std::string& name) {
  using Answer = absl::StatusOr<std::vector<std::string>>;
  return wire_->Send<Answer>({"sample"},
                             [store = store(), name](uint64_t /*rows*/) { return store->SampleRowKeys(name); });
}

absl::Status Wire::WiredStore::CreateTable(const TableInfo& info) {
  return wire_->Send<absl::Status>({"tables"},
                                   [store = store(), info](uint64_t /*rows*/) { return store->CreateTable(info); });
}

absl::Status Wire::WiredStore::DropTable(const std::string& name) {
  return wire_->Send<absl::Status>({"tables"},
                                   [store = store(), name](uint64_t /*rows*/) { return store->DropTable(name); });
}

absl::StatusOr<std::vector<TableInfo>> Wire::WiredStore::ListTables() {
  using Answer = absl::StatusOr<std::vector<TableInfo>>;
  return wire_->Send<Answer>({"tables"}, [store = store()](uint64_t /*rows*/) { return store->ListTables(); });
}

absl::StatusOr<Timestamp> Wire::WiredOracle::GetTimestamps(uint32_t count) {
  using Answer = absl::StatusOr<Timestamp>;
  return wire_->Send<Answer>({"timestamp"},
                             [oracle = oracle_, count](uint64_t /*rows*/) { return oracle->GetTimestamps(count); });
}

std::vector<Fault> FaultsOf(const Wire::Call& call) {
  using Kind = Fault::Kind;
  std::vector<Fault> faults = {{.kind = Kind::kDieBefore},
                               {.kind = Kind::kLoseRequest},
                               {.kind = Kind::kTwice},
                               {.kind = Kind::kEchoLate},
                               {.kind = Kind::kLate}};
  const uint64_t parts = call.what == "mutate" ? uint64_t{1} << call.rows : 1;
  for (uint64_t part = 0; part < parts; ++part) {
    const uint64_t rows = parts == 1 ? Fault::kAllRows : part;
    faults.push_back({.kind = Kind::kDieAfter, .rows = rows});
    faults.push_back({.kind = Kind::kLoseReply, .rows = rows});
  }
  return faults;
}

}  // namespace percolator
