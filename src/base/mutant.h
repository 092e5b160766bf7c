// Mutants: bugs that can be switched on, one at a time, to see whether the tests notice.
//
// Protocol code asks `if (MutantOn(Mutant::kX))` where leaving a step out, or doing it wrongly, would be such a bug. In
// every build but the one of the mutant tests (PERCOLATOR_MUTANTS) the answer is a constant no, and nothing of it is left
// in the program. docs/testing.md has the table of mutants, and how soon the simulator catches each.

#ifndef PERCOLATOR_BASE_MUTANT_H_
#define PERCOLATOR_BASE_MUTANT_H_

namespace percolator {

// Name, and what is wrong when it is on.
#define PERCOLATOR_MUTANT_LIST(M)                                                                 \
  M(NoWriteCheck, "prewrite does not look for newer writes")                                      \
  M(NoLockCheck, "prewrite does not look for locks of others")                                    \
  M(NoMarkerCheck, "prewrite does not look for a rollback marker of its own")                     \
  M(ReadIgnoresLocks, "a read does not look for locks")                                           \
  M(ReadTakesOldestRecord, "a read takes the record below the newest one")                        \
  M(ReadSeesVerifyAsAbsent, "a verify record hides the value below it")                           \
  M(CommitTimestampEarly, "the commit timestamp is drawn before the prewrites")                   \
  M(LockTimestampEarly, "the timestamp that comes with locks is drawn before they are set")       \
  M(CommitPrimaryUnconditional, "the primary is committed without looking for its lock")          \
  M(SecondariesBeforePrimary, "secondaries are committed before the primary")                     \
  M(LostCommitIsAbort, "a commit whose answer was lost is reported as aborted")                   \
  M(LostCommitIsSuccess, "a commit whose answer was lost is reported as committed")               \
  M(NoRollbackMarker, "a rollback leaves no marker")                                              \
  M(MissingPrimaryUnmarked, "a missing primary counts as rolled back, and no marker is written")  \
  M(RollBackWithoutPrimary, "a secondary is rolled back without asking the primary")              \
  M(ResolveAnyLock, "a resolver removes whatever lock is there, not the exact one")               \
  M(RollForwardAtStart, "a resolver writes the record at the start timestamp")                    \
  M(RollForwardOneCell, "a resolver forgets the value of the lock it rolls forward")              \
  M(PendingIsRolledBack, "a live lock is taken for a dead one, and only its own cell is cleaned") \
  M(CachePending, "a verdict that is not definite is cached")                                     \
  M(RetryKeepsWrites, "a conflict is retried with the old writes at a new start timestamp")       \
  M(VerifyLeavesNoTrace, "a verified cell is unlocked without a record")                          \
  M(VerifyTakesNoLock, "a verified cell is not locked at all")                                    \
  M(DeleteLeavesNoRecord, "a delete is committed without a record")                               \
  M(RefreshRevivesLock, "a refresh sets the lock again even if it is gone")                       \
  M(GcIgnoresSnapshots, "the safe point is not held back by open snapshots")                      \
  M(GcDoesNotResolve, "garbage is collected before old locks are resolved")                       \
  M(GcDropsNewest, "the newest version below the safe point is collected too")                    \
  M(GcUnpublished, "garbage is collected before the safe point is published")                     \
  M(NoSafePointCheckAfterRead, "a read does not look at the safe point when it is done")          \
  M(OneStepReaderDoesNotWait, "a read goes on while a one-step commit of the row is under way")   \
  M(OneStepTimestampEarly, "a one-step commit draws its timestamp before it closes its rows")     \
  M(OneStepNoMarkerCheck, "a one-step commit does not look for a rollback marker of its own")     \
  M(ScanSkipsLockedRows, "a scan leaves out a row whose lock it can't resolve at once")           \
  M(ScanIgnoresOwnWrites, "a scan does not see what its own transaction wrote")                   \
  M(OracleRestartsLow, "an oracle that restarts begins below its durable bound")                  \
  M(OraclePrefetches, "the front of the oracle hands out timestamps drawn earlier")               \
  M(MarkOnlyAtCommit, "an observed cell is marked when it is committed, not when it is locked")   \
  M(MarkOnlyAtPrewrite, "an observed cell is marked when it is locked, not when it is committed") \
  M(MarkAtStart, "a mark has the start timestamp of its transaction")                             \
  M(RollbackLeavesMark, "a rollback leaves the pending mark")                                     \
  M(ResolverForgetsMark, "a resolver rolls forward without a mark")                               \
  M(OneStepForgetsMark, "a one-step commit leaves no mark")                                       \
  M(DeleteLeavesNoMark, "deleting an observed cell leaves no mark")                               \
  M(RemoveUnbounded, "an observer's commit removes all marks, newer ones too")                    \
  M(RemoveBeforeCommit, "marks are removed before the observer commits")                          \
  M(RemoveForFirst, "marks are removed when the first of several observers is done")              \
  M(NoAck, "an observer's commit writes no acknowledgement")                                      \
  M(AckAfterCommit, "the acknowledgement is written in a transaction of its own, afterwards")     \
  M(AckIsForever, "a cell that has been acknowledged once is never dirty again")                  \
  M(DirtyByAckCommit, "a change counts as seen if it is older than the acknowledgement's commit") \
  M(PendingDropped, "a scanner removes old pending marks without resolving their locks")          \
  M(WeakMarkAfterCommit, "weak notifications are written after the commit")                       \
  M(WeakMarkAtStart, "a weak notification has the start timestamp of its transaction")            \
  M(GcDropsNotifiedDelete, "a deletion that is not yet observed is collected")                    \
  M(GcDropsAck, "acknowledgements are collected")                                                 \
  M(AbsenceIsAbort, "a missing record proves an abort also below the safe point")                 \
  M(TooOldIsAbort, "a one-step commit that the safe point refuses counts as aborted")             \
  M(MissingVerdictIsAbort, "a verdict that is missing below the safe point is taken for an abort")

enum class Mutant {
  kNone,
#define PERCOLATOR_MUTANT_NAME(name, text) k##name,
  PERCOLATOR_MUTANT_LIST(PERCOLATOR_MUTANT_NAME)
#undef PERCOLATOR_MUTANT_NAME
};

#ifdef PERCOLATOR_MUTANTS
inline Mutant g_mutant = Mutant::kNone;
inline bool MutantOn(Mutant mutant) { return g_mutant == mutant; }
#else
constexpr bool MutantOn(Mutant /*mutant*/) { return false; }
#endif

}  // namespace percolator

#endif  // PERCOLATOR_BASE_MUTANT_H_
