// SPDX-License-Identifier: Apache-2.0

#include "tests/store/crash_workload.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "percolator/spi/oracle.h"
#include "src/base/strings.h"
#include "tests/harness/test_oracle.h"

namespace percolator {
namespace {

constexpr uint64_t kColumns = 4;
constexpr uint64_t kCounterRows = 3;
constexpr uint64_t kStepsPerCounter = 8;
constexpr uint64_t kStepsPerJoint = 3;

// A small generator with a well-mixed start: neighbouring steps must not resemble each other.
class StepRandom {
 public:
  StepRandom(const CrashPlan& plan, uint32_t writer, uint64_t step)
      : state_(plan.seed * 0x9e3779b97f4a7c15u + writer * 0xd1b54a32d192ed03u + step * 0x8cb92ba72f3d8dd7u) {}

  uint64_t Below(uint64_t limit) { return Next() % limit; }
  bool OneIn(uint64_t n) { return Below(n) == 0; }

 private:
  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  uint64_t state_;
};

Family AnyFamily(StepRandom* random) { return static_cast<Family>(random->Below(kFamilyCount)); }
std::string AnyColumn(StepRandom* random) { return StrCat("c", random->Below(kColumns)); }

// Names its writer, step and place, so that a wrong value shows its origin.
std::string MakeValue(const CrashPlan& plan, uint32_t writer, uint64_t step, size_t place, StepRandom* random) {
  std::string value = StrCat(writer, "/", step, "/", place, ":");
  value.append(random->Below(plan.value_bytes), static_cast<char>('a' + random->Below(26)));
  return value;
}

// Whether the row was written lately: true in some steps, false in others.
Condition AnyCondition(uint64_t step, StepRandom* random) {
  Condition condition;
  condition.quantifier = static_cast<Condition::Quantifier>(random->Below(3));
  const uint64_t cells = 1 + random->Below(2);
  for (uint64_t i = 0; i < cells; ++i) {
    const uint64_t age = 1 + random->Below(200);
    condition.cells.push_back(
        {AnyFamily(random), AnyColumn(random), TimestampRange::From(Timestamp(step > age ? step - age : 0))});
  }
  return condition;
}

void EraseSome(uint64_t step, StepRandom* random, std::vector<Mutation>* mutations) {
  const uint64_t count = 1 + random->Below(4);
  for (uint64_t i = 0; i < count; ++i) {
    mutations->push_back(Mutation::Erase(AnyFamily(random), AnyColumn(random), TimestampRange::UpTo(Timestamp(step))));
  }
}

void EraseAll(std::vector<Mutation>* mutations) {
  for (int family = 0; family < kFamilyCount; ++family) {
    for (uint64_t column = 0; column < kColumns; ++column) {
      mutations->push_back(Mutation::Erase(static_cast<Family>(family), StrCat("c", column), TimestampRange::All()));
    }
  }
}

RowMutation MakeMutation(const CrashPlan& plan, uint32_t writer, uint64_t step, StepRandom* random) {
  RowMutation mutation;
  const uint64_t row = random->Below(plan.rows_per_writer);
  mutation.table = CrashTables()[row % 2];
  mutation.row = CrashRowKey(writer, row);
  if (random->OneIn(4)) mutation.condition = AnyCondition(step, random);
  if (random->OneIn(8)) {
    EraseAll(&mutation.mutations);
  } else if (random->OneIn(4)) {
    EraseSome(step, random, &mutation.mutations);
  }
  const uint64_t sets = 2 + random->Below(4);
  for (uint64_t i = 0; i < sets; ++i) {
    mutation.mutations.push_back(
        Mutation::Set(AnyFamily(random), AnyColumn(random), Timestamp(step), MakeValue(plan, writer, step, i, random)));
  }
  return mutation;
}

// The newest version of the counter; 0 if it has none.
absl::StatusOr<uint64_t> ReadCounter(Store* store, const std::string& row) {
  absl::StatusOr<std::vector<Row>> rows =
      store->Read({{kCounterTable, row, {{.family = Family::kData, .column = kCounterColumn, .newest = 1}}}});
  if (!rows.ok()) return rows.status();
  const std::vector<Cell>& cells = rows->front().cells;
  return cells.empty() ? 0 : cells.front().timestamp.value();
}

absl::Status RunCounterStep(Store* store, const CrashStep& step, CrashReport* report) {
  report->count = 1;
  report->outcomes[0] = CrashOutcome::kNotApplied;
  const absl::StatusOr<uint64_t> version = ReadCounter(store, step.counter_row);
  if (!version.ok()) return version.status();
  report->counter_version = *version + 1;
  const auto results = store->Mutate({CounterIncrement(step.counter_row, *version + 1, report->writer, report->step)});
  report->outcomes[0] = OutcomeOf(results[0]);
  return results[0].status();
}

absl::Status RunJointStep(Store* store, const CrashStep& step, CrashReport* report) {
  // One for all writers, so that their joint mutations can share requests. The timestamps that it draws are not
  // written.
  static TestOracle oracle;
  const absl::StatusOr<JointResult> result = store->MutateTogether({Timestamp(report->step), step.mutations}, &oracle);
  report->count = static_cast<uint8_t>(step.mutations.size());
  const bool failed = result.ok() && !result->applied;
  // Of the rows that did not fail it is known only that they were not changed.
  const CrashOutcome outcome = failed        ? CrashOutcome::kNotApplied
                               : result.ok() ? CrashOutcome::kApplied
                                             : OutcomeOf(result.status());
  report->outcomes.fill(outcome);
  if (failed) report->outcomes[result->failed_row] = CrashOutcome::kConditionFailed;
  return result.status();
}

absl::Status RunBatchStep(Store* store, const CrashStep& step, CrashReport* report) {
  const auto results = store->Mutate(step.mutations);
  report->count = static_cast<uint8_t>(results.size());
  absl::Status first_error;
  for (size_t i = 0; i < results.size(); ++i) {
    report->outcomes[i] = OutcomeOf(results[i]);
    first_error.Update(results[i].status());
  }
  return first_error;
}

}  // namespace

const std::vector<std::string>& CrashTables() {
  static const auto* const kTables = new std::vector<std::string>{"alpha", "beta", kCounterTable};
  return *kTables;
}

absl::Status CreateCrashTables(Store* store) {
  for (const std::string& table : CrashTables()) {
    absl::Status status = store->CreateTable({table, "schema of " + table});
    if (!status.ok() && !absl::IsAlreadyExists(status)) return status;
  }
  return absl::OkStatus();
}

std::string CrashRowKey(uint32_t writer, uint64_t row) { return StrCat("w", writer, "-", row); }

CrashStep MakeCrashStep(const CrashPlan& plan, uint32_t writer, uint64_t step) {
  StepRandom random(plan, writer, step);
  CrashStep made;
  if (random.OneIn(kStepsPerCounter)) {
    made.counter_row = StrCat("counter-", random.Below(kCounterRows));
    return made;
  }
  made.is_joint = random.OneIn(kStepsPerJoint);
  const uint64_t count = made.is_joint || random.OneIn(3) ? 2 + random.Below(kMaxBatch - 1) : 1;
  for (uint64_t i = 0; i < count; ++i) {
    RowMutation mutation = MakeMutation(plan, writer, step, &random);
    const bool again = std::any_of(made.mutations.begin(), made.mutations.end(),
                                   [&](const RowMutation& m) { return m.row == mutation.row; });
    if (!made.is_joint || !again) made.mutations.push_back(std::move(mutation));
  }
  return made;
}

std::string CounterValue(uint32_t writer, uint64_t step) { return StrCat(writer, "/", step); }

RowMutation CounterIncrement(const std::string& row, uint64_t version, uint32_t writer, uint64_t step) {
  RowMutation increment{.table = kCounterTable, .row = row, .condition = {}, .mutations = {}};
  increment.condition = {Condition::Quantifier::kNone,
                         {{Family::kData, kCounterColumn, TimestampRange::From(Timestamp(version))}}};
  for (const Family family : {Family::kData, Family::kWrite}) {
    increment.mutations.push_back(
        Mutation::Set(family, kCounterColumn, Timestamp(version), CounterValue(writer, step)));
    if (version <= kCounterWindow) continue;
    increment.mutations.push_back(
        Mutation::Erase(family, kCounterColumn, TimestampRange::UpTo(Timestamp(version - kCounterWindow))));
  }
  return increment;
}

CrashOutcome OutcomeOf(const absl::StatusOr<MutateResult>& result) {
  if (!result.ok()) return OutcomeOf(result.status());
  return *result == MutateResult::kApplied ? CrashOutcome::kApplied : CrashOutcome::kConditionFailed;
}

CrashOutcome OutcomeOf(const absl::Status& error) {
  switch (error.code()) {
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
      return CrashOutcome::kNotApplied;
    default:
      return CrashOutcome::kUnknown;
  }
}

void RunCrashWriter(Store* store, const CrashPlan& plan, uint32_t writer, uint64_t first_step,
                    const CrashListener& listener) {
  for (uint64_t number = first_step;; ++number) {
    const CrashStep step = MakeCrashStep(plan, writer, number);
    CrashReport report{.writer = writer, .step = number};
    listener.sending(writer, number);
    const absl::Status status = step.is_counter() ? RunCounterStep(store, step, &report)
                                : step.is_joint   ? RunJointStep(store, step, &report)
                                                  : RunBatchStep(store, step, &report);
    if (!listener.done(report, status)) return;
  }
}

}  // namespace percolator
