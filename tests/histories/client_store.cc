// SPDX-License-Identifier: Apache-2.0

#include "tests/histories/client_store.h"

#include <algorithm>
#include <utility>

#include "src/txn/columns.h"
#include "src/txn/write_record.h"

namespace percolator {
namespace {

absl::Status NoAnswer() { return absl::UnavailableError("the store does not answer"); }

}  // namespace

std::vector<Deed> ClientStore::TakeDeeds() {
  std::erase_if(deeds_, [this](const Deed& deed) { return own_.contains(deed.start_ts); });
  return std::exchange(deeds_, {});
}

void ClientStore::StopAt(Moment moment, int mutation) { stop_ = StopPoint{moment, mutation}; }

void ClientStore::GoOn() {
  stop_.reset();
  MutexLock lock(&mutex_);
  stopped_ = false;
  go_on_->WakeAll();
}

void ClientStore::CutOff() {
  cut_off_ = true;
  GoOn();
}

void ClientStore::MaybeStop(Moment moment) {
  if (!stop_.has_value() || stop_->moment != moment || --stop_->mutations > 0) return;
  stop_.reset();
  StopHere();
}

void ClientStore::StopHere() {
  MutexLock lock(&mutex_);
  stopped_ = true;
  while (stopped_) go_on_->Wait(&mutex_);
}

// A client that sets a lock, without a marker that refuses it, or writes in one step, does it for itself.
void ClientStore::NoteOwn(const RowMutation& sent) {
  const bool rolls_back = std::any_of(sent.mutations.begin(), sent.mutations.end(),
                                      [](const Mutation& m) { return m.column == RollbackColumn(); });
  if (rolls_back) return;
  for (const Mutation& m : sent.mutations) {
    if (m.kind == Mutation::Kind::kSet && m.family == Family::kLock) own_.insert(m.range.from);
  }
}

void ClientStore::SendAllAgain(Oracle* oracle) {
  for (const Request& request : sent_) {
    if (const auto* const rows = std::get_if<std::vector<RowMutation>>(&request)) {
      store()->Mutate(*rows);
    } else {
      store()->MutateTogether(std::get<JointMutation>(request), oracle).IgnoreError();
    }
  }
}

// The transactions that the mutation commits or rolls back in its row.
void ClientStore::NoteDeeds(const RowMutation& applied) {
  for (const Mutation& m : applied.mutations) {
    if (m.kind != Mutation::Kind::kSet || m.family != Family::kWrite) continue;
    if (m.column == RollbackColumn()) {
      deeds_.push_back({m.range.from, Verdict::RolledBack()});
      continue;
    }
    const absl::StatusOr<WriteRecord> record = DecodeWriteRecord(m.value);
    if (record.ok()) deeds_.push_back({record->start_ts, Verdict::Committed(m.range.from)});
  }
}

bool ClientStore::LosesRequest() { return !Reachable() || std::exchange(network_->lose_request, false); }

bool ClientStore::LosesAnswer() {
  if (cut_off_) return true;
  if (std::exchange(network_->lose_connection, false)) network_->down = true;
  return std::exchange(network_->lose_answer, false);
}

template <typename Answer>
Answer ClientStore::SendCopies(const std::function<Answer()>& send) {
  const Network::Copy copy = std::exchange(network_->copy, Network::Copy::kNone);
  Answer answer = send();
  if (copy == Network::Copy::kSoon) answer = send();
  MaybeStop(Moment::kAfter);
  if (copy == Network::Copy::kLate) answer = send();
  return answer;
}

absl::StatusOr<std::vector<Row>> ClientStore::Read(const std::vector<RowRead>& reads) {
  if (!Reachable()) return NoAnswer();
  return store()->Read(reads);
}

absl::StatusOr<ScanPage> ClientStore::Scan(const ScanRequest& request) {
  if (!Reachable()) return NoAnswer();
  return store()->Scan(request);
}

std::vector<absl::StatusOr<MutateResult>> ClientStore::Mutate(const std::vector<RowMutation>& mutations) {
  std::vector<absl::StatusOr<MutateResult>> lost(mutations.size(), NoAnswer());
  for (const RowMutation& mutation : mutations) NoteOwn(mutation);
  MaybeStop(Moment::kBefore);
  if (LosesRequest()) return lost;
  sent_.emplace_back(mutations);
  using Results = std::vector<absl::StatusOr<MutateResult>>;
  const Results results = SendCopies<Results>([&] {
    Results applied = store()->Mutate(mutations);
    for (size_t i = 0; i < applied.size(); ++i) {
      if (applied[i].ok() && *applied[i] == MutateResult::kApplied) NoteDeeds(mutations[i]);
    }
    return applied;
  });
  return LosesAnswer() ? lost : results;
}

absl::StatusOr<JointResult> ClientStore::MutateTogether(const JointMutation& mutation, Oracle* oracle) {
  own_.insert(mutation.start_ts);
  MaybeStop(Moment::kBefore);
  if (LosesRequest()) return NoAnswer();
  sent_.emplace_back(mutation);
  const auto result =
      SendCopies<absl::StatusOr<JointResult>>([&] { return store()->MutateTogether(mutation, oracle); });
  if (LosesAnswer()) return NoAnswer();
  return result;
}

absl::Status ClientStore::RaiseSafePoint(Timestamp ts) {
  if (!Reachable()) return NoAnswer();
  return store()->RaiseSafePoint(ts);
}

absl::StatusOr<Timestamp> ClientStore::SafePoint() {
  if (!Reachable()) return NoAnswer();
  return store()->SafePoint();
}

}  // namespace percolator
