// SPDX-License-Identifier: Apache-2.0

#include "sim/coverage.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "src/txn/columns.h"
#include "src/txn/lock.h"

namespace percolator::sim {
namespace {

constexpr std::string_view kStepNames[] = {
#define PERCOLATOR_SIM_STEP(name) #name,
    PERCOLATOR_SIM_STEPS(PERCOLATOR_SIM_STEP)
#undef PERCOLATOR_SIM_STEP
};
constexpr std::string_view kMishapNames[] = {
#define PERCOLATOR_SIM_MISHAP(name) #name,
    PERCOLATOR_SIM_MISHAPS(PERCOLATOR_SIM_MISHAP)
#undef PERCOLATOR_SIM_MISHAP
};

// How src/observe/quarantine.cc names its rows in the system table.
constexpr std::string_view kQuarantineRows = "quarantine/";

constexpr Steps kMutations = Only(Step::kPrewritePrimary) | Only(Step::kPrewriteSecondary) | Only(Step::kRefresh) |
                             Only(Step::kCommitPrimary) | Only(Step::kCommitSecondary) | Only(Step::kOneStep) |
                             Only(Step::kRollBackOwn) | Only(Step::kRollBack) | Only(Step::kRollForward) |
                             Only(Step::kMarkMissing) | Only(Step::kAcknowledge) | Only(Step::kQuarantine) |
                             Only(Step::kWeakMark) | Only(Step::kRemoveMark) | Only(Step::kCollect);
constexpr Steps kTableCalls = Only(Step::kSafePoint) | Only(Step::kRaiseSafePoint);
constexpr Steps kCoordination = Only(Step::kOpenSession) | Only(Step::kReportSnapshot) | Only(Step::kIsAlive) |
                                Only(Step::kOldestSnapshot) | Only(Step::kCampaign) | Only(Step::kClaim);

bool IsSet(const Mutation& m, Family family) { return m.kind == Mutation::Kind::kSet && m.family == family; }
bool IsErase(const Mutation& m, Family family) { return m.kind != Mutation::Kind::kSet && m.family == family; }

template <typename Predicate>
const Mutation* Find(const RowMutation& mutation, const Predicate& predicate) {
  const auto it = std::find_if(mutation.mutations.begin(), mutation.mutations.end(), predicate);
  return it == mutation.mutations.end() ? nullptr : &*it;
}

bool IsMarker(const Mutation& m) { return IsSet(m, Family::kWrite) && m.column == RollbackColumn(); }

// The steps that only some transactions have, according to what their user writes.
Steps WrittenBy(const RowMutation& mutation) {
  Steps steps = 0;
  const auto is_ack = [](const Mutation& m) { return ColumnOfAck(m.column).has_value(); };
  if (Find(mutation, is_ack) != nullptr) steps |= Only(Step::kAcknowledge);
  if (mutation.table == kSystemTable && mutation.row.starts_with(kQuarantineRows)) steps |= Only(Step::kQuarantine);
  return steps;
}

}  // namespace

std::string_view StepName(Step step) { return kStepNames[static_cast<size_t>(step)]; }
std::string_view MishapName(Mishap mishap) { return kMishapNames[static_cast<size_t>(mishap)]; }

bool IsPossible(Step step, Mishap mishap) {
  const auto among = [step](Steps steps) { return (steps & Only(step)) != 0; };
  switch (mishap) {
    case Mishap::kDuplicate:
      return among(kMutations | Only(Step::kTimestamp));
    case Mishap::kSlowRequest:
    case Mishap::kSlowReply:
      return !among(kTableCalls);
    case Mishap::kRestartBefore:
    case Mishap::kRestartAfter:
      return !among(kCoordination);
    default:
      return true;
  }
}

// ----- Many runs

void CoverageTable::Add(const CoveredPairs& run) {
  for (size_t step = 0; step < kStepCount; ++step) {
    for (size_t mishap = 0; mishap < kMishapCount; ++mishap) {
      runs_[step][mishap] += (run.mishaps[step] >> mishap) & 1;
    }
  }
}

size_t CoverageTable::possible() const {
  size_t count = 0;
  for (size_t step = 0; step < kStepCount; ++step) {
    for (size_t mishap = 0; mishap < kMishapCount; ++mishap) {
      count += IsPossible(static_cast<Step>(step), static_cast<Mishap>(mishap)) ? 1 : 0;
    }
  }
  return count;
}

std::vector<std::pair<Step, Mishap>> CoverageTable::Missing() const {
  std::vector<std::pair<Step, Mishap>> missing;
  for (size_t step = 0; step < kStepCount; ++step) {
    for (size_t mishap = 0; mishap < kMishapCount; ++mishap) {
      const std::pair pair(static_cast<Step>(step), static_cast<Mishap>(mishap));
      if (runs_[step][mishap] == 0 && IsPossible(pair.first, pair.second)) missing.push_back(pair);
    }
  }
  return missing;
}

void CoverageTable::Print() const {
  std::puts("seeds that had each pair of a step and a fault:");
  for (size_t mishap = 0; mishap < kMishapCount; ++mishap) {
    std::printf("  %2zu  %.*s\n", mishap + 1, static_cast<int>(kMishapNames[mishap].size()),
                kMishapNames[mishap].data());
  }
  std::printf("%-18s", "");
  for (size_t mishap = 0; mishap < kMishapCount; ++mishap) std::printf(" %7zu", mishap + 1);
  std::puts("");
  for (size_t step = 0; step < kStepCount; ++step) {
    std::printf("%-18.*s", static_cast<int>(kStepNames[step].size()), kStepNames[step].data());
    for (size_t mishap = 0; mishap < kMishapCount; ++mishap) {
      if (IsPossible(static_cast<Step>(step), static_cast<Mishap>(mishap))) {
        std::printf(" %7" PRIu64, runs_[step][mishap]);
      } else {
        std::printf(" %7s", "-");
      }
    }
    std::puts("");
  }
}

// ----- What a message is

Steps StepFinder::Of(const RowRead& read) const {
  bool lock = false;
  bool write = false;
  bool open_write = false;
  for (const Selector& selector : read.selectors) {
    if (selector.family == Family::kNotify) return Only(Step::kReadMark);
    lock |= selector.family == Family::kLock;
    write |= selector.family == Family::kWrite;
    open_write |= selector.family == Family::kWrite && selector.range.until == Timestamp::Infinity();
  }
  if (open_write) return Only(lock ? Step::kReadPrimary : Step::kGet);
  if (lock) return Only(write ? Step::kGet : Step::kReadLocks);
  return Only(Step::kLoadValue);
}

Steps StepFinder::Of(const ScanRequest& request) const {
  bool lock = false;
  bool write = false;
  bool notify = false;
  for (const Selector& selector : request.selectors) {
    lock |= selector.family == Family::kLock;
    write |= selector.family == Family::kWrite;
    notify |= selector.family == Family::kNotify;
  }
  if (notify) return Only(write ? Step::kFindGarbage : Step::kFindMarks);
  return Only(lock && !write ? Step::kFindOldLocks : Step::kScan);
}

Steps StepFinder::Of(const JointMutation& mutation) const {
  Steps steps = Only(Step::kOneStep);
  for (const RowMutation& row : mutation.rows) steps |= WrittenBy(row);
  return steps;
}

Steps StepFinder::OfPrewrite(ActorId sender, const RowMutation& mutation) {
  Steps steps = WrittenBy(mutation);
  for (const Mutation& m : mutation.mutations) {
    if (!IsSet(m, Family::kLock)) continue;
    const absl::StatusOr<Lock> lock = DecodeLock(m.value);
    if (!lock.ok()) continue;
    if (lock->primary.has_value()) {
      steps |= Only(Step::kPrewriteSecondary);
    } else {
      steps |= Only(Step::kPrewritePrimary);
      owners_[m.range.from.value()] = {sender, {mutation.table, mutation.row, m.column}};
    }
  }
  return steps;
}

Steps StepFinder::OfVerdict(ActorId sender, const RowMutation& mutation, Timestamp start_ts, bool commits) const {
  const auto owner = owners_.find(start_ts.value());
  if (owner == owners_.end() || owner->second.actor != sender) {
    return Only(commits ? Step::kRollForward : Step::kRollBack);
  }
  if (!commits) return Only(Step::kRollBackOwn);
  const CellName& primary = owner->second.primary;
  const bool of_primary = mutation.table == primary.table && mutation.row == primary.row;
  return Only(of_primary ? Step::kCommitPrimary : Step::kCommitSecondary) | WrittenBy(mutation);
}

Steps StepFinder::Of(ActorId sender, const RowMutation& mutation) {
  const Mutation* const erased = Find(mutation, [](const Mutation& m) { return IsErase(m, Family::kLock); });
  const Mutation* const locked = Find(mutation, [](const Mutation& m) { return IsSet(m, Family::kLock); });
  const Mutation* const marker = Find(mutation, IsMarker);
  if (locked != nullptr && erased != nullptr) return Only(Step::kMarkMissing);
  if (locked != nullptr && mutation.condition.quantifier == Condition::Quantifier::kAll) return Only(Step::kRefresh);
  if (locked != nullptr) return OfPrewrite(sender, mutation);
  if (marker != nullptr) return OfVerdict(sender, mutation, marker->range.from, false);
  if (erased != nullptr) return OfVerdict(sender, mutation, erased->range.from, true);
  if (Find(mutation, [](const Mutation& m) { return IsSet(m, Family::kNotify); }) != nullptr) {
    return Only(Step::kWeakMark);
  }
  if (Find(mutation, [](const Mutation& m) { return IsErase(m, Family::kNotify); }) != nullptr) {
    return Only(Step::kRemoveMark);
  }
  return mutation.mutations.empty() ? 0 : Only(Step::kCollect);
}

}  // namespace percolator::sim
