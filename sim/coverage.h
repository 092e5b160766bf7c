// SPDX-License-Identifier: Apache-2.0

// Coverage: which faults have met which steps of the protocol.
//
// A step is recognised by what a process sends: a mutation that sets a lock is a prewrite, one that takes a lock of
// another transaction and leaves a record rolls it forward. A pair of a fault and a step counts when a run has had it
// at least once. percsim adds up all runs and lists the pairs that no run had.

#ifndef PERCOLATOR_SIM_COVERAGE_H_
#define PERCOLATOR_SIM_COVERAGE_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "percolator/spi/store.h"
#include "percolator/status.h"
#include "sim/chance.h"

namespace percolator::sim {

#define PERCOLATOR_SIM_STEPS(S)                                                \
  S(Get)       /* cells at a snapshot */                                       \
  S(LoadValue) /* a long value, or the record that a verify record names */    \
  S(Scan)      /* rows at a snapshot */                                        \
  S(PrewritePrimary)                                                           \
  S(PrewriteSecondary)                                                         \
  S(Refresh) /* a primary's lock */                                            \
  S(CommitPrimary)                                                             \
  S(CommitSecondary)                                                           \
  S(OneStep)                                                                   \
  S(RollBackOwn)                                                               \
  S(ReadPrimary) /* by a resolver, or by an owner that asks for its outcome */ \
  S(ReadLocks)   /* the locks of a transaction in a row, to settle */          \
  S(RollBack)    /* the lock of another */                                     \
  S(RollForward)                                                               \
  S(MarkMissing) /* a marker where the primary should be */                    \
  S(Acknowledge) /* with the writes of an observer */                          \
  S(Quarantine)  /* its entries are written or removed */                      \
  S(WeakMark)    /* the mark of a weak notification */                         \
  S(ReadMark)                                                                  \
  S(RemoveMark)                                                                \
  S(FindMarks)    /* the scan of a worker */                                   \
  S(FindOldLocks) /* before garbage is collected */                            \
  S(FindGarbage)                                                               \
  S(Collect)                                                                   \
  S(SafePoint)                                                                 \
  S(RaiseSafePoint)                                                            \
  S(Timestamp)                                                                 \
  S(OpenSession)                                                               \
  S(ReportSnapshot)                                                            \
  S(IsAlive)                                                                   \
  S(OldestSnapshot)                                                            \
  S(Campaign) /* for the role of the garbage collector */                      \
  S(Claim)    /* a worker claims or releases a row */

enum class Step : uint8_t {
#define PERCOLATOR_SIM_STEP(name) k##name,
  PERCOLATOR_SIM_STEPS(PERCOLATOR_SIM_STEP)
#undef PERCOLATOR_SIM_STEP
      kCount,
};
inline constexpr size_t kStepCount = static_cast<size_t>(Step::kCount);
std::string_view StepName(Step step);

// A set of steps: a message may belong to several steps, or to none of those above.
using Steps = uint64_t;
inline constexpr Steps Only(Step step) { return Steps{1} << static_cast<size_t>(step); }
static_assert(kStepCount <= 64);

// "Wait": while the answer is under way. A pause is short, or longer than the lease of a lock, or longer than the
// retention of versions.
#define PERCOLATOR_SIM_MISHAPS(M) \
  M(RequestLost)                  \
  M(ReplyLost)                    \
  M(SlowRequest)                  \
  M(SlowReply)                    \
  M(Duplicate)                    \
  M(Crash)                        \
  M(WaitCrash)                    \
  M(Pause)                        \
  M(PausePastLease)               \
  M(PausePastRetention)           \
  M(WaitPause)                    \
  M(WaitPausePastLease)           \
  M(WaitPausePastRetention)       \
  M(SessionLost)                  \
  M(RestartBefore)                \
  M(RestartAfter)

enum class Mishap : uint8_t {
#define PERCOLATOR_SIM_MISHAP(name) k##name,
  PERCOLATOR_SIM_MISHAPS(PERCOLATOR_SIM_MISHAP)
#undef PERCOLATOR_SIM_MISHAP
      kCount,
};
inline constexpr size_t kMishapCount = static_cast<size_t>(Mishap::kCount);
std::string_view MishapName(Mishap mishap);

// Whether this pair can occur at all: for example, reads are not sent twice, and the coordinator does not restart.
bool IsPossible(Step step, Mishap mishap);

// The pairs of one run.
struct CoveredPairs {
  std::array<uint16_t, kStepCount> mishaps = {};  // bits, by step

  void Add(Steps steps, Mishap mishap) {
    for (; steps != 0; steps &= steps - 1) {
      mishaps[static_cast<size_t>(std::countr_zero(steps))] |= uint16_t{1} << static_cast<size_t>(mishap);
    }
  }
  bool Has(Step step, Mishap mishap) const {
    return ((mishaps[static_cast<size_t>(step)] >> static_cast<size_t>(mishap)) & 1) != 0;
  }
};
static_assert(kMishapCount <= 16);

// The number of runs that had each pair.
class CoverageTable {
 public:
  void Add(const CoveredPairs& run);
  size_t possible() const;
  std::vector<std::pair<Step, Mishap>> Missing() const;
  void Print() const;

 private:
  std::array<std::array<uint64_t, kMishapCount>, kStepCount> runs_ = {};
};

// Recognises the steps of one world.
class StepFinder {
 public:
  Steps Of(const RowRead& read) const;
  Steps Of(const ScanRequest& request) const;
  Steps Of(const JointMutation& mutation) const;
  // Remembers the owner of each prewrite.
  Steps Of(ActorId sender, const RowMutation& mutation);

 private:
  struct Owner {
    ActorId actor;
    CellName primary;
  };
  Steps OfPrewrite(ActorId sender, const RowMutation& mutation);
  Steps OfVerdict(ActorId sender, const RowMutation& mutation, Timestamp start_ts, bool commits) const;

  absl::flat_hash_map<uint64_t, Owner> owners_;  // by start timestamp
};

}  // namespace percolator::sim

#endif  // PERCOLATOR_SIM_COVERAGE_H_
