// SPDX-License-Identifier: Apache-2.0

#include "src/observe/run.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "percolator/status_macros.h"
#include "src/base/coding.h"
#include "src/base/strings.h"
#include "src/observe/ack.h"
#include "src/txn/apply.h"
#include "src/txn/columns.h"
#include "src/txn/mark.h"
#include "src/txn/record_coding.h"
#include "src/txn/resolve.h"
#include "src/txn/row_view.h"
#include "src/txn/transaction_core.h"

namespace percolator {
namespace {

// The transaction that an observer gets: it cannot commit it.
class ObserverTransaction final : public ReadWrite {
 public:
  explicit ObserverTransaction(std::shared_ptr<TransactionCore> core) : ReadWrite(std::move(core)) {}
};

struct NewestMark {
  Timestamp timestamp;
  Mark mark;
};

absl::StatusOr<std::optional<NewestMark>> ReadMark(Environment& env, const CellName& cell) {
  PERCOLATOR_ASSIGN_OR_RETURN(
      const std::vector<Row> rows,
      env.store->Read({{cell.table, cell.row, {{Family::kNotify, cell.column, TimestampRange::All(), 1}}}}));
  if (rows.front().cells.empty()) return std::nullopt;
  const Cell& found = rows.front().cells.front();
  const absl::StatusOr<Mark> mark = DecodeMark(found.value);
  if (!mark.ok()) return AtCell(mark.status(), cell.table, cell.row, found);
  return NewestMark{found.timestamp, *mark};
}

// Runs the user's function. An exception is an error like one that it returns (N11).
absl::Status Call(const ObserverFunction& run, ReadWrite& t, const Notification& notification) {
  try {
    return run(t, notification);
  } catch (const std::exception& e) {
    return absl::InternalError(StrCat("the observer threw: ", e.what()));
  } catch (...) {
    return absl::InternalError("the observer threw an exception that is not a std::exception");
  }
}

// Returns whether the error says nothing about the observer: an error of the store, a lock, or a snapshot that is too
// old. An observer may return OutOfRange for its own reasons, so the snapshot is checked.
bool IsExternal(Environment& env, Timestamp start_ts, const absl::Status& status) {
  return IsTransient(status) || (IsSnapshotTooOld(status) && !CheckSnapshot(env, start_ts).ok());
}

class Run {
 public:
  Run(Engine* engine, const RunRequest& request) : engine_(*engine), request_(request) {}

  RunOutcome Do() {
    absl::StatusOr<std::optional<NewestMark>> mark = ReadMark(engine_.env, request_.cell);
    if (mark.ok() && !mark->has_value()) mark = SettleAndReadMark();
    if (absl::IsNotFound(mark.status())) return Ended(RunOutcome::Kind::kNoMark);  // its table was dropped
    if (!mark.ok()) return Trouble(mark.status());
    if (!mark->has_value()) return Ended(RunOutcome::Kind::kNoMark);
    mark_ = **mark;

    auto core = std::make_shared<TransactionCore>(engine_.shared_from_this(),
                                                  TransactionOptions{.prefetch_profile = request_.observer->name});
    const absl::StatusOr<bool> dirty = Look(core.get());  // N5: only now is the start timestamp drawn
    if (!dirty.ok()) return Trouble(dirty.status());
    outcome_.start_ts = core->start_ts();
    if (!*dirty) return Clean();
    if (request_.run == nullptr) return Ended(RunOutcome::Kind::kDirty);
    if (mark_.mark.depth > request_.max_chain) {
      outcome_.status =
          absl::InternalError(StrCat("chain of ", mark_.mark.depth, " notifications exceeds WorkerOptions::max_chain (",
                                     request_.max_chain, "); the observers probably form a cycle"));
      return Ended(RunOutcome::Kind::kCycle);
    }
    ObserverTransaction t(std::move(core));
    absl::Status status = Call(*request_.run, t, {request_.cell, outcome_.change_ts});
    if (status.ok()) status = t.status();
    if (absl::IsAborted(status)) return Ended(RunOutcome::Kind::kConflict, status);
    if (status.ok()) return Commit(&t.core());
    const bool external = IsExternal(engine_.env, outcome_.start_ts, status);
    return external ? Trouble(status) : Ended(RunOutcome::Kind::kFailed, status);
  }

 private:
  bool strong() const { return request_.observer->kind == NotificationKind::kStrong; }

  RunOutcome Ended(RunOutcome::Kind kind, absl::Status status = absl::OkStatus()) {
    outcome_.kind = kind;
    if (!status.ok()) outcome_.status = std::move(status);
    return outcome_;
  }
  RunOutcome Trouble(absl::Status status) { return Ended(RunOutcome::Kind::kTrouble, std::move(status)); }

  // A hint may come while the cell still has the lock of the transaction that changed it, and a pending mark beside it.
  // If that transaction has committed, it is rolled forward here; if it is under way, its own hint will follow. Rolling
  // forward replaces the pending mark by the final one in one step, so one view of the row shows one of them.
  absl::StatusOr<std::optional<NewestMark>> SettleAndReadMark() {
    Environment& env = engine_.env;
    const CellName& cell = request_.cell;
    PERCOLATOR_ASSIGN_OR_RETURN(
        const std::vector<Row> rows,
        env.store->Read({{cell.table,
                          cell.row,
                          {{Family::kNotify, cell.column, TimestampRange::All(), 1},
                           {Family::kNotify, PendingColumn(cell.column), TimestampRange::All(), 1}}}}));
    if (rows.front().cells.empty()) return std::nullopt;
    const Cell& newest = rows.front().cells.front();
    if (newest.column != cell.column) {
      PERCOLATOR_RETURN_IF_ERROR(SettlePending(&engine_, {cell, newest.timestamp, /*pending=*/true}));
    }
    return ReadMark(env, cell);
  }

  // Draws the start timestamp, and returns whether the observer has something to do at it.
  absl::StatusOr<bool> Look(TransactionCore* core) {
    outcome_.change_ts = mark_.timestamp;
    if (!strong()) {
      PERCOLATOR_RETURN_IF_ERROR(core->MayRead());
      return true;
    }
    const CellName ack = AckCell(*request_.observer, request_.cell);
    PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<Version> versions, core->GetVersions({request_.cell, ack}));
    if (versions[0].commit_ts != Timestamp()) outcome_.change_ts = versions[0].commit_ts;
    const absl::StatusOr<bool> dirty = IsDirty(versions[0], versions[1]);
    if (dirty.ok()) return *dirty;
    return AtCell(dirty.status(), ack.table, ack.row, {Family::kWrite, ack.column, versions[1].commit_ts, {}});
  }

  // The timestamp up to which marks may be removed.
  std::optional<Timestamp> Until() const {
    if (!request_.others_done_at.has_value()) return std::nullopt;
    return std::min(*request_.others_done_at, outcome_.start_ts);
  }

  // N6: a mark without a change, or one that was observed before.
  RunOutcome Clean() {
    RemoveAlone();
    return Ended(RunOutcome::Kind::kClean);
  }

  void RemoveAlone() {
    const std::optional<Timestamp> until = Until();
    if (!until.has_value() || outcome_.marks_removed) return;
    // If this fails, the next worker that finds the mark finds nothing to do (W3).
    outcome_.marks_removed = RemoveMarks(&engine_.env, request_.cell, *until).ok();
  }

  RunOutcome Commit(TransactionCore* core) {
    const CellName ack = AckCell(*request_.observer, request_.cell);
    const std::optional<Timestamp> until = Until();
    core->writes().set_depth(mark_.mark.depth + 1);
    if (strong()) {
      core->writes().Acknowledge(ack, EncodeAck(outcome_.start_ts));
    } else {
      core->writes().set_continued(request_.cell);
    }
    if (until.has_value()) core->writes().RemoveMarks({request_.cell, *until});
    const CommitResult result = core->Commit();
    if (!result.committed()) {
      return IsConflict(result.status) ? Ended(RunOutcome::Kind::kConflict, result.status) : Trouble(result.status);
    }
    outcome_.commit_ts = result.commit_ts == Timestamp() ? outcome_.start_ts : result.commit_ts;
    outcome_.marks_removed = core->marks_removed();
    outcome_.triggered = core->triggered();
    RemoveAlone();
    return Ended(RunOutcome::Kind::kCommitted);
  }

  Engine& engine_;
  const RunRequest& request_;
  NewestMark mark_;
  RunOutcome outcome_;
};

absl::Status Apply(Environment& env, RowMutation mutation) {
  return ApplyInTime(env, {std::move(mutation)}, Deadline(env.runtime, env.options.call_timeout));
}

}  // namespace

RunOutcome RunObserver(Engine* engine, const RunRequest& request) { return Run(engine, request).Do(); }

absl::Status RemoveMarks(Environment* env, const CellName& cell, Timestamp until) {
  return Apply(
      *env, {cell.table, cell.row, {}, {Mutation::Erase(Family::kNotify, cell.column, TimestampRange::UpTo(until))}});
}

absl::StatusOr<std::vector<FoundMark>> ScanMarks(Environment* env, const std::string& table, RowRange* rows,
                                                 size_t row_limit, bool* done) {
  ScanRequest request{table, *rows, {{Family::kNotify, std::nullopt, TimestampRange::All(), 1}}, row_limit};
  PERCOLATOR_ASSIGN_OR_RETURN(ScanPage page, env->store->Scan(request));
  std::vector<FoundMark> found;
  for (const Row& row : page.rows) {
    for (const Cell& cell : row.cells) {
      const std::optional<std::string_view> pending = ColumnOfPending(cell.column);
      found.push_back(
          {{table, row.key, std::string(pending.value_or(cell.column))}, cell.timestamp, pending.has_value()});
    }
  }
  *done = !page.resume.has_value();
  if (!*done) {
    request.ContinueAt(*std::move(page.resume));
    *rows = std::move(request.rows);
  }
  return found;
}

absl::Status SettlePending(Engine* engine, const FoundMark& mark) {
  Environment& env = engine->env;
  const CellName& cell = mark.cell;
  const TimestampRange then = TimestampRange::Exactly(mark.timestamp);
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<Row> rows,
                              env.store->Read({{cell.table, cell.row, {{Family::kLock, cell.column, then}}}}));
  if (!rows.front().cells.empty()) {
    const Cell& found = rows.front().cells.front();
    absl::StatusOr<Lock> lock = DecodeLock(found.value);
    if (!lock.ok()) return AtCell(lock.status(), cell.table, cell.row, found);
    return ResolveLocks(env, {{cell, mark.timestamp, *std::move(lock)}}, LiveLocks::kKeep).status();
  }
  // Its lock is gone but the mark remained, which a correct client does not leave.
  return Apply(env, {cell.table,
                     cell.row,
                     {Condition::Quantifier::kNone, {{Family::kLock, cell.column, then}}},
                     {Mutation::Erase(Family::kNotify, PendingColumn(cell.column), then)}});
}

}  // namespace percolator
