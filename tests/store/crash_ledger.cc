// SPDX-License-Identifier: Apache-2.0

#include "tests/store/crash_ledger.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "src/base/strings.h"

namespace percolator {
namespace {

std::string Owner(uint32_t writer) { return StrCat("w", writer, "-"); }

// Enough of a value to identify its origin.
std::string Shortened(const std::string& value) { return value.substr(0, value.find(':')); }

uint64_t NewestVersion(const std::map<std::tuple<Family, std::string, Timestamp>, std::string>& row) {
  uint64_t newest = 0;
  for (const auto& [cell, value] : row) newest = std::max(newest, std::get<Timestamp>(cell).value());
  return newest;
}

bool Shorter(const std::string& a, const std::string& b) { return a.size() < b.size(); }

std::vector<std::string> Unreadable(const absl::Status& status) {
  return {"the store cannot be read: " + status.ToString()};
}

}  // namespace

CrashLedger::CrashLedger(const CrashPlan& plan) : plan_(plan), next_step_(plan.writers, 1), records_(plan.writers) {}

uint64_t CrashLedger::NextStep(uint32_t writer) const {
  MutexLock lock(&mutex_);
  return next_step_[writer];
}

uint64_t CrashLedger::acknowledged() const {
  MutexLock lock(&mutex_);
  return acknowledged_;
}

uint64_t CrashLedger::verified() const { return verified_; }

void CrashLedger::Sending(uint32_t writer, uint64_t step) {
  MutexLock lock(&mutex_);
  Record record;
  record.report = {.writer = writer, .step = step};
  record.report.count = kMaxBatch;
  record.report.outcomes.fill(CrashOutcome::kUnknown);
  record.sent = ++events_;
  records_[writer].push_back(record);
  next_step_[writer] = step + 1;
}

void CrashLedger::Done(const CrashReport& report) {
  MutexLock lock(&mutex_);
  Record& record = records_[report.writer].back();
  record.report = report;
  record.done = ++events_;
  acknowledged_ += std::count(report.outcomes.begin(), report.outcomes.begin() + report.count, CrashOutcome::kApplied);
}

std::vector<std::string> CrashLedger::Check(Store* store, Expect expect) {
  const absl::StatusOr<Contents> found = ReadAll(store);
  return found.ok() ? CheckContents(*found, expect) : Unreadable(found.status());
}

std::vector<std::string> CrashLedger::Verify(Store* store, Expect expect) {
  absl::StatusOr<Contents> found = ReadAll(store);
  if (!found.ok()) return Unreadable(found.status());
  std::vector<std::string> problems = CheckContents(*found, expect);
  base_ = *std::move(found);
  verified_ = acknowledged();
  for (std::vector<Record>& records : records_) records.clear();
  return problems;
}

std::vector<std::string> CrashLedger::CheckContents(const Contents& found, Expect expect) {
  problems_.clear();
  for (uint32_t writer = 0; writer < plan_.writers; ++writer) {
    CheckWriter(writer, found, expect);
    CheckJoint(writer, found);
  }
  if (expect == Expect::kPrefix) CheckOrder(found);
  CheckCounters(found, expect);
  CheckNothingForeign(found);
  return std::exchange(problems_, {});
}

absl::StatusOr<CrashLedger::Contents> CrashLedger::ReadAll(Store* store) {
  Contents contents;
  for (const std::string& table : CrashTables()) {
    ScanRequest request{.table = table};
    for (int family = 0; family < kFamilyCount; ++family) {
      request.selectors.push_back({.family = static_cast<Family>(family)});
    }
    for (bool more = true; more;) {
      absl::StatusOr<ScanPage> page = store->Scan(request);
      if (!page.ok()) return page.status();
      for (const Row& row : page->rows) {
        RowState& state = contents[{table, row.key}];
        for (const Cell& cell : row.cells) state[{cell.family, cell.column, cell.timestamp}] = cell.value;
      }
      more = page->resume.has_value();
      if (more) request.rows.start = *page->resume;
    }
  }
  return contents;
}

bool CrashLedger::Holds(const RowState& row, const Condition& condition) {
  size_t existing = 0;
  for (const CellRange& cell : condition.cells) {
    const auto first = row.lower_bound({cell.family, cell.column, cell.range.from});
    if (first != row.end() && first->first < CellKey{cell.family, cell.column, cell.range.until}) ++existing;
  }
  switch (condition.quantifier) {
    case Condition::Quantifier::kNone:
      return existing == 0;
    case Condition::Quantifier::kAny:
      return existing > 0 || condition.cells.empty();
    case Condition::Quantifier::kAll:
      return existing == condition.cells.size();
  }
  return false;
}

void CrashLedger::Apply(const RowMutation& mutation, RowState* row) {
  for (const Mutation& effect : mutation.mutations) {
    if (effect.kind == Mutation::Kind::kSet) {
      (*row)[{effect.family, effect.column, effect.range.from}] = effect.value;
    } else {
      row->erase(row->lower_bound({effect.family, effect.column, effect.range.from}),
                 row->lower_bound({effect.family, effect.column, effect.range.until}));
    }
  }
}

// Returns whether the outcome is possible.
bool CrashLedger::Replay(const RowMutation& mutation, CrashOutcome outcome, States* states) {
  States next;
  for (RowState& state : *states) {
    const bool holds = Holds(state, mutation.condition);
    const bool may_stay = outcome != CrashOutcome::kApplied && (outcome != CrashOutcome::kConditionFailed || !holds);
    const bool may_change = holds && (outcome == CrashOutcome::kApplied || outcome == CrashOutcome::kUnknown);
    if (may_stay) next.push_back(state);
    if (!may_change) continue;
    Apply(mutation, &state);
    next.push_back(std::move(state));
  }
  *states = std::move(next);
  return !states->empty();
}

void CrashLedger::ReplayStep(const Record& record, bool open, std::map<RowKey, States>* rows) {
  const CrashReport& report = record.report;
  const CrashStep step = MakeCrashStep(plan_, report.writer, report.step);
  for (size_t i = 0; i < step.mutations.size(); ++i) {
    const RowKey key{step.mutations[i].table, step.mutations[i].row};
    const auto [states, added] = rows->try_emplace(key);
    if (added) states->second.push_back(base_[key]);
    const CrashOutcome outcome =
        open && report.outcomes[i] == CrashOutcome::kApplied ? CrashOutcome::kUnknown : report.outcomes[i];
    if (Replay(step.mutations[i], outcome, &states->second)) continue;
    Problem(StrCat(key.first, "/", key.second, ": outcome ", static_cast<int>(outcome), " of step ", report.step,
                   " contradicts the history of the row"));
    states->second.push_back(base_[key]);
  }
}

uint64_t CrashLedger::NewestStep(uint32_t writer, const Contents& found) const {
  uint64_t newest = 0;
  for (const auto& [key, row] : found) {
    if (key.second.starts_with(Owner(writer))) newest = std::max(newest, NewestVersion(row));
  }
  return newest;
}

void CrashLedger::CheckWriter(uint32_t writer, const Contents& found, Expect expect) {
  std::map<RowKey, States> expected;
  for (const auto& [key, row] : base_) {
    if (key.second.starts_with(Owner(writer))) expected[key].push_back(row);
  }
  // What was lost is the end: all steps after the newest one that left a trace, and perhaps a part of that one's batch.
  const uint64_t newest = expect == Expect::kPrefix ? NewestStep(writer, found) : kNoAnswer;
  for (const Record& record : records_[writer]) {
    if (record.report.step <= newest) ReplayStep(record, record.report.step == newest, &expected);
  }
  for (const auto& [key, row] : found) {
    if (key.second.starts_with(Owner(writer))) expected.try_emplace(key, States{RowState()});
  }
  for (const auto& [key, states] : expected) {
    const auto row = found.find(key);
    const RowState& actual = row == found.end() ? RowState() : row->second;
    if (std::find(states.begin(), states.end(), actual) != states.end()) continue;
    std::string difference = Difference(states.front(), actual);
    for (const RowState& state : states) difference = std::min(difference, Difference(state, actual), Shorter);
    Problem(StrCat(key.first, "/", key.second, " is in none of ", states.size(),
                   " possible states; against the nearest: ", difference));
  }
}

// A joint step without an answer may be there or not: in all its rows or in none. Nothing came after it, so if it left
// a trace, it is the newest step that did, and all its traces are there.
void CrashLedger::CheckJoint(uint32_t writer, const Contents& found) {
  const uint64_t newest = NewestStep(writer, found);
  const CrashStep step = MakeCrashStep(plan_, writer, newest);
  if (newest == 0 || !step.is_joint) return;
  for (const RowMutation& mutation : step.mutations) {
    const auto row = found.find({mutation.table, mutation.row});
    if (row != found.end() && NewestVersion(row->second) == newest) continue;
    Problem(StrCat("joint step ", CounterValue(writer, newest), " is not in row ", mutation.table, "/", mutation.row));
  }
}

std::string CrashLedger::Difference(const RowState& expected, const RowState& found) {
  std::string text;
  const auto add = [&text](const char* what, const CellKey& key, const std::string& value) {
    const auto& [family, column, timestamp] = key;
    text += StrCat(what, FamilyName(family), ":", column, "@", timestamp.value(), "=", Shortened(value), " ");
  };
  for (const auto& [key, value] : expected) {
    const auto cell = found.find(key);
    if (cell == found.end() || cell->second != value) add("missing ", key, value);
  }
  for (const auto& [key, value] : found) {
    const auto cell = expected.find(key);
    if (cell == expected.end() || cell->second != value) add("unexpected ", key, value);
  }
  return text;
}

// Checks that a step that was acknowledged before a later step was sent is not lost while the later one is there.
void CrashLedger::CheckOrder(const Contents& found) {
  uint64_t first_lost = kNoAnswer;
  std::string lost;
  std::optional<uint64_t> last_kept;
  std::string kept;
  for (uint32_t writer = 0; writer < plan_.writers; ++writer) {
    const uint64_t newest = NewestStep(writer, found);
    for (const Record& record : records_[writer]) {
      const CrashReport& report = record.report;
      const auto end = report.outcomes.begin() + report.count;
      const bool applied = std::find(report.outcomes.begin(), end, CrashOutcome::kApplied) != end;
      if (MakeCrashStep(plan_, writer, report.step).is_counter()) continue;
      if (report.step > newest && applied && record.done < first_lost) {
        first_lost = record.done;
        lost = CounterValue(writer, report.step);
      }
      if (report.step == newest && record.sent > last_kept.value_or(0)) {
        last_kept = record.sent;
        kept = CounterValue(writer, report.step);
      }
    }
  }
  if (last_kept && first_lost < *last_kept) {
    Problem(StrCat("step ", lost, " is lost, though step ", kept, " exists and was sent later"));
  }
}

void CrashLedger::CheckNothingForeign(const Contents& found) {
  for (const auto& [key, row] : found) {
    bool known = key.first == kCounterTable && key.second.starts_with("counter-");
    for (uint32_t writer = 0; writer < plan_.writers; ++writer) {
      known = known || (key.first != kCounterTable && key.second.starts_with(Owner(writer)));
    }
    if (!known) Problem(StrCat(key.first, "/", key.second, " was never written"));
  }
}

void CrashLedger::CheckCounters(const Contents& found, Expect expect) {
  std::map<std::string, CounterWriters> counters;
  for (const Contents* contents : std::initializer_list<const Contents*>{&base_, &found}) {
    for (const auto& [key, row] : *contents) {
      if (key.first == kCounterTable) counters.try_emplace(key.second);
    }
  }
  for (const std::vector<Record>& records : records_) {
    for (const Record& record : records) {
      const CrashStep step = MakeCrashStep(plan_, record.report.writer, record.report.step);
      if (!step.is_counter()) continue;
      counters[step.counter_row].emplace(CounterValue(record.report.writer, record.report.step), &record);
    }
  }
  for (const auto& [row, writers] : counters) {
    const auto state = found.find({kCounterTable, row});
    CheckCounter(row, writers, state == found.end() ? RowState() : state->second, expect);
  }
}

void CrashLedger::CheckCounter(const std::string& row, const CounterWriters& writers, const RowState& found,
                               Expect expect) {
  const uint64_t newest = NewestVersion(found);
  const uint64_t oldest = newest > kCounterWindow ? newest - kCounterWindow + 1 : 1;
  if (found.size() != 2 * (newest - oldest + 1)) {
    Problem(StrCat(row, " has ", found.size(), " cells at version ", newest));
  }
  const RowState& base = base_[{kCounterTable, row}];
  for (uint64_t version = oldest; version <= newest; ++version) {
    const auto data = found.find({Family::kData, kCounterColumn, Timestamp(version)});
    const auto write = found.find({Family::kWrite, kCounterColumn, Timestamp(version)});
    if (data == found.end() || write == found.end() || data->second != write->second) {
      Problem(StrCat(row, " version ", version, " is missing or incomplete"));
    } else if (const auto before = base.find(data->first); before != base.end()
                                                               ? before->second != data->second
                                                               : !MayHaveWritten(writers, version, data->second)) {
      Problem(StrCat(row, " version ", version, " is ", data->second, ", which no writer wrote there"));
    }
  }
  if (newest < NewestVersion(base)) Problem(StrCat(row, " went back to version ", newest));
  if (expect == Expect::kNothingLost) CheckAcknowledgedIncrements(row, writers, found);
}

bool CrashLedger::MayHaveWritten(const CounterWriters& writers, uint64_t version, const std::string& value) {
  const auto writer = writers.find(value);
  if (writer == writers.end()) return false;
  const CrashReport& report = writer->second->report;
  switch (report.outcomes[0]) {
    case CrashOutcome::kApplied:
      return report.counter_version == version;
    case CrashOutcome::kUnknown:
      return report.counter_version == version || report.counter_version == 0;
    default:
      return false;
  }
}

// The newest version covers versions that were erased since: an increment to v is only sent if v - 1 exists.
void CrashLedger::CheckAcknowledgedIncrements(const std::string& row, const CounterWriters& writers,
                                              const RowState& found) {
  const uint64_t newest = NewestVersion(found);
  for (const auto& [value, record] : writers) {
    const CrashReport& report = record->report;
    if (report.outcomes[0] != CrashOutcome::kApplied) continue;
    const auto cell = found.find({Family::kData, kCounterColumn, Timestamp(report.counter_version)});
    if (report.counter_version > newest || (cell != found.end() && cell->second != value)) {
      Problem(StrCat(row, " version ", report.counter_version, " of ", value, " was acknowledged and is lost"));
    }
  }
}

}  // namespace percolator
