#include "src/txn/transaction_core.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "percolator/status_macros.h"
#include "src/base/strings.h"
#include "src/txn/apply.h"
#include "src/txn/commit.h"
#include "src/txn/one_step.h"
#include "src/txn/outcome.h"
#include "src/txn/prewrite.h"

namespace percolator::internal {
namespace {

// What a transaction keeps of its reads; beyond it, cells are read again.
constexpr size_t kCacheBytes = 16 << 20;

absl::Status TooLarge(std::string_view what, size_t size, size_t limit) {
  return absl::InvalidArgumentError(StrCat(what, ": ", size, ", more than the limit of ", limit));
}

absl::Status CheckNames(std::string_view row, std::string_view column, std::string_view value,
                        const TransactionLimits& limits) {
  if (row.empty()) return absl::InvalidArgumentError("the row key is empty");
  if (row.size() > limits.max_row_key_bytes)
    return TooLarge("bytes in a row key", row.size(), limits.max_row_key_bytes);
  if (column.size() > limits.max_column_bytes) {
    return TooLarge("bytes in the name of a column", column.size(), limits.max_column_bytes);
  }
  if (value.size() > limits.max_value_bytes) return TooLarge("bytes in a value", value.size(), limits.max_value_bytes);
  return absl::OkStatus();
}

// Of a transaction that is no observer's: the first cell; unless its name is long, which every lock repeats: then the one
// with the shortest name.
const CellName& ChoosePrimary(const WriteBuffer& writes) {
  constexpr size_t kLongName = 256;
  const auto bytes = [](const CellName& cell) { return cell.table.size() + cell.row.size() + cell.column.size(); };
  const CellName* primary = &writes.begin()->first;
  if (bytes(*primary) <= kLongName) return *primary;
  for (const auto& [cell, write] : writes) {
    if (bytes(cell) < bytes(*primary)) primary = &cell;
  }
  return *primary;
}

// In their order, each once.
std::vector<WantedCell> WithoutRepeats(absl::Span<const CellName> cells) {
  std::vector<WantedCell> wanted;
  wanted.reserve(cells.size());
  for (const CellName& cell : cells) wanted.push_back({cell, true});
  if (wanted.size() > 1) {
    std::sort(wanted.begin(), wanted.end(), [](const WantedCell& a, const WantedCell& b) { return a.cell < b.cell; });
    wanted.erase(std::unique(wanted.begin(), wanted.end(),
                             [](const WantedCell& a, const WantedCell& b) { return a.cell == b.cell; }),
                 wanted.end());
  }
  return wanted;
}

// The marks of weak notifications. To write them again is harmless.
absl::Status WriteMarks(Environment& env, const Writes& writes, Timestamp commit_ts, const Deadline& deadline) {
  std::vector<RowMutation> marks;
  AddMarks(writes, commit_ts, &marks);
  return ApplyInTime(env, std::move(marks), deadline);
}

// What a cell costs in the requests of its row: names occur in conditions and in effects.
size_t BytesOf(const CellName& cell, const BufferedWrite& write) {
  return cell.table.size() + cell.row.size() + 4 * cell.column.size() + write.value.size();
}

}  // namespace

TransactionCore::TransactionCore(std::shared_ptr<Engine> engine, const TransactionOptions& options)
    : owner_(std::move(engine)),
      engine_(owner_.get()),
      is_snapshot_(false),
      profile_(options.prefetch_profile),
      deadline_(Deadline(engine_->env.runtime, options.timeout)) {}

TransactionCore::TransactionCore(Engine* engine, const TransactionOptions& options)
    : engine_(engine),
      is_snapshot_(false),
      profile_(options.prefetch_profile),
      deadline_(Deadline(engine->env.runtime, options.timeout)) {}

TransactionCore::TransactionCore(std::shared_ptr<Engine> engine, Timestamp ts)
    : owner_(std::move(engine)), engine_(owner_.get()), is_snapshot_(true), start_ts_(ts) {
  slot_ = engine_->snapshots.Add(ts);
}

// Also after Close: it touches memory only.
TransactionCore::~TransactionCore() {
  if (engine_->forked()) return;
  if (start_ts_ != Timestamp()) engine_->snapshots.Remove(slot_, start_ts_);
  Learn();
}

Deadline TransactionCore::CallDeadline() const {
  const Duration call = engine_->env.options.call_timeout;
  return deadline_.has_value() ? deadline_->AtMost(call) : Deadline(engine_->env.runtime, call);
}

absl::Status TransactionCore::EnsureStarted() {
  if (start_ts_ != Timestamp()) return absl::OkStatus();
  Environment& env = engine_->env;
  PERCOLATOR_ASSIGN_OR_RETURN(const Timestamp ts, DrawTimestamp(env, [this] { return ReadDeadline(); }));
  start_ts_ = ts;
  started_ = env.runtime->Elapsed();
  slot_ = engine_->snapshots.Add(start_ts_);
  return absl::OkStatus();
}

// --- Reading

absl::Status TransactionCore::MayRead() {
  if (result_.has_value()) return absl::FailedPreconditionError("the transaction was committed: begin a new one");
  return write_error_.ok() ? EnsureStarted() : write_error_;
}

absl::StatusOr<std::vector<std::optional<std::string>>> TransactionCore::Get(absl::Span<const CellName> cells) {
  if (is_snapshot_) return GetOfSnapshot(cells);
  PERCOLATOR_RETURN_IF_ERROR(MayRead());
  std::vector<CellName> missing;
  for (const CellName& cell : cells) {
    const auto write = writes_.find(cell);
    const bool own = write != writes_.end() && write->second.kind != WriteKind::kVerify;
    const auto cached = cache_.find(cell);
    const bool known = cached != cache_.end() && cached->second.version.data_ts == Timestamp();
    if (!own && !known) missing.push_back(cell);
  }
  if (!missing.empty()) {
    PERCOLATOR_RETURN_IF_ERROR(Fetch(missing));
  }
  std::vector<std::optional<std::string>> values;
  values.reserve(cells.size());
  for (const CellName& cell : cells) {
    NoteRead(cell);
    const auto write = writes_.find(cell);
    if (write != writes_.end() && write->second.kind != WriteKind::kVerify) {  // T9
      values.push_back(write->second.kind == WriteKind::kPut ? std::optional(write->second.value) : std::nullopt);
      continue;
    }
    CachedRead& read = cache_.at(cell);
    Counters::Add(&engine_->env.counters.prefetched_cells_used, read.prefetched ? 1 : 0);
    read.prefetched = false;
    values.push_back(read.version.value);
  }
  if (cached_bytes_ > kCacheBytes) {
    cache_.clear();
    cached_bytes_ = 0;
  }
  return values;
}

// A snapshot may live long, and be used by many threads: it keeps nothing of what it read.
absl::StatusOr<std::vector<std::optional<std::string>>> TransactionCore::GetOfSnapshot(
    absl::Span<const CellName> cells) const {
  const std::vector<WantedCell> wanted = WithoutRepeats(cells);
  const absl::StatusOr<std::vector<std::optional<Version>>> versions =
      GetCells(engine_->env, start_ts_, wanted, ReadDeadline());
  if (!versions.ok()) return versions.status();
  std::vector<std::optional<std::string>> values;
  values.reserve(cells.size());
  for (const CellName& cell : cells) {
    const auto found = std::lower_bound(wanted.begin(), wanted.end(), cell,
                                        [](const WantedCell& want, const CellName& c) { return want.cell < c; });
    values.push_back((*versions)[static_cast<size_t>(found - wanted.begin())]->value);
  }
  return values;
}

absl::StatusOr<std::optional<std::string>> TransactionCore::Get(std::string_view table, std::string_view row,
                                                                std::string_view column) {
  if (is_snapshot_) {
    PERCOLATOR_ASSIGN_OR_RETURN(std::optional<Version> plain,
                                GetPlainCell(engine_->env, start_ts_, table, row, column));
    if (plain.has_value()) return std::move(plain->value);
  }
  absl::StatusOr<std::vector<std::optional<std::string>>> values =
      Get({CellName{std::string(table), std::string(row), std::string(column)}});
  if (!values.ok()) return values.status();
  return std::move(values->front());
}

// Puts the versions of the cells, and of those predicted to be read next, into the cache.
absl::Status TransactionCore::Fetch(const std::vector<CellName>& cells) {
  std::vector<WantedCell> wanted = WithoutRepeats(cells);
  const size_t asked = wanted.size();
  if (!profile_.empty()) AddPredicted(std::vector<WantedCell>(wanted), &wanted);
  absl::StatusOr<std::vector<std::optional<Version>>> versions =
      GetCells(engine_->env, start_ts_, wanted, ReadDeadline());
  if (!versions.ok()) return versions.status();
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!(*versions)[i].has_value()) continue;
    Counters::Add(&engine_->env.counters.cells_prefetched, i >= asked ? 1 : 0);
    cached_bytes_ += sizeof(CachedRead) + wanted[i].cell.row.size() + wanted[i].cell.column.size() +
                     ((*versions)[i]->value.has_value() ? (*versions)[i]->value->size() : 0);
    cache_.insert_or_assign(std::move(wanted[i].cell), CachedRead{*std::move((*versions)[i]), i >= asked});
  }
  return absl::OkStatus();
}

void TransactionCore::AddPredicted(const std::vector<WantedCell>& asked, std::vector<WantedCell>* wanted) {
  std::map<CellName, bool> chosen;
  for (const WantedCell& want : asked) chosen[want.cell] = true;
  for (const WantedCell& want : asked) {
    if (row_reads_.contains({want.cell.table, want.cell.row})) continue;  // was predicted with the row's first read
    for (std::string& column : engine_->predictor.After(profile_, want.cell.table, want.cell.column)) {
      CellName cell{want.cell.table, want.cell.row, std::move(column)};
      if (writes_.contains(cell) || cache_.contains(cell) || !chosen.emplace(cell, true).second) continue;
      wanted->push_back({std::move(cell), false});
    }
  }
}

void TransactionCore::NoteRead(const CellName& cell) {
  if (profile_.empty()) return;
  const auto [it, is_first] = row_reads_.try_emplace({cell.table, cell.row});
  if (is_first) {
    it->second.first = cell.column;
  } else if (cell.column != it->second.first &&
             std::find(it->second.others.begin(), it->second.others.end(), cell.column) == it->second.others.end()) {
    it->second.others.push_back(cell.column);
  }
}

void TransactionCore::Learn() {
  for (const auto& [row, reads] : row_reads_) engine_->predictor.Learn(profile_, row.first, reads.first, reads.others);
}

// --- Writing

// A check that reads the list of tables, tried for as long as a call may take: a failed write cannot be repeated.
absl::Status TransactionCore::RetryCheck(absl::FunctionRef<absl::Status()> check) {
  absl::Status status = check();
  if (!IsTransient(status)) return status;
  const Deadline deadline = ReadDeadline();
  for (Backoff backoff(engine_->env.runtime); WaitAndRetry(status, deadline, &backoff);) status = check();
  return status;
}

absl::Status TransactionCore::Buffer(WriteKind kind, std::string_view table, std::string_view row,
                                     std::string_view column, std::string_view value) {
  const TransactionLimits& limits = engine_->env.options.limits;
  if (result_.has_value()) return absl::FailedPreconditionError("the transaction was committed: begin a new one");
  PERCOLATOR_RETURN_IF_ERROR(CheckNames(row, column, value, limits));
  const auto check = [&] { return engine_->tables->CheckWritable(table, column); };
  PERCOLATOR_RETURN_IF_ERROR(RetryCheck(check));
  CellName cell{std::string(table), std::string(row), std::string(column)};
  const auto old = writes_.find(cell);
  if (kind == WriteKind::kVerify && old != writes_.end()) return absl::OkStatus();  // a write verifies as well
  BufferedWrite write{kind, std::string(value)};
  const size_t bytes =
      buffered_bytes_ + BytesOf(cell, write) - (old == writes_.end() ? 0 : BytesOf(old->first, old->second));
  if (bytes > limits.max_total_bytes) return TooLarge("bytes in a transaction", bytes, limits.max_total_bytes);
  if (old == writes_.end() && writes_.size() >= limits.max_cells) {
    return TooLarge("cells in a transaction", writes_.size() + 1, limits.max_cells);
  }
  buffered_bytes_ = bytes;
  writes_.insert_or_assign(std::move(cell), std::move(write));
  return absl::OkStatus();
}

absl::Status TransactionCore::Notify(std::string_view table, std::string_view row, std::string_view column) {
  const TransactionLimits& limits = engine_->env.options.limits;
  if (result_.has_value()) return absl::FailedPreconditionError("the transaction was committed: begin a new one");
  PERCOLATOR_RETURN_IF_ERROR(CheckNames(row, column, {}, limits));
  const auto check = [&] { return engine_->tables->CheckNotifiable(table, column); };
  PERCOLATOR_RETURN_IF_ERROR(RetryCheck(check));
  if (notified_.size() >= limits.max_cells) {
    return TooLarge("notifications in a transaction", notified_.size() + 1, limits.max_cells);
  }
  notified_.insert({std::string(table), std::string(row), std::string(column)});
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Version>> TransactionCore::GetVersions(const std::vector<CellName>& cells) {
  PERCOLATOR_RETURN_IF_ERROR(MayRead());
  PERCOLATOR_RETURN_IF_ERROR(Fetch(cells));
  std::vector<Version> versions;
  versions.reserve(cells.size());
  for (const CellName& cell : cells) versions.push_back(cache_.at(cell).version);
  return versions;
}

size_t TransactionCore::CountMarks() const {
  const ObservedColumns& observed = engine_->env.observed;
  size_t count = 0;
  for (const CellName& cell : notified_) count += observed.Contains(cell.table, cell.column) ? 1 : 0;
  for (const auto& [cell, write] : writes_) {
    if (write.kind != WriteKind::kVerify && observed.Contains(cell.table, cell.column)) ++count;
  }
  return count;
}

void TransactionCore::Acknowledge(CellName ack, std::string value) {
  writes_.insert_or_assign(ack, BufferedWrite{WriteKind::kPut, std::move(value)});
  ack_ = std::move(ack);
}

// Which version of each verified cell this transaction relies on: the one it sees. No newer one can come before its lock
// (T5), so when it commits that is still the newest.
absl::Status TransactionCore::FindVerified(std::map<CellName, Timestamp>* verified) {
  std::vector<WantedCell> missing;
  for (const auto& [cell, write] : writes_) {
    if (write.kind != WriteKind::kVerify) continue;
    const auto cached = cache_.find(cell);
    if (cached == cache_.end()) {
      missing.push_back({cell, true});
    } else {
      (*verified)[cell] = cached->second.version.commit_ts;
    }
  }
  if (missing.empty()) return absl::OkStatus();
  const absl::StatusOr<std::vector<std::optional<Version>>> versions =
      GetCells(engine_->env, start_ts_, missing, CallDeadline());
  if (!versions.ok()) return versions.status();
  for (size_t i = 0; i < missing.size(); ++i) (*verified)[missing[i].cell] = (*versions)[i]->commit_ts;
  return absl::OkStatus();
}

// Empties the buffer.
absl::StatusOr<Writes> TransactionCore::BuildWrites() {
  std::map<CellName, Timestamp> verified;
  PERCOLATOR_RETURN_IF_ERROR(FindVerified(&verified));
  const Duration age = engine_->env.runtime->Elapsed() - started_;
  const Timestamp now(start_ts_.value() + static_cast<uint64_t>(age.count()));
  Writes writes{
      .start_ts = start_ts_, .rows = {}, .notified = {}, .depth = depth_, .continued = continued_, .removal = removal_};
  // Marks are of value only if somebody observes the column.
  for (const CellName& cell : notified_) {
    if (engine_->env.observed.Contains(cell.table, cell.column)) writes.notified.push_back(cell);
  }
  std::optional<CellName> primary;
  if (writes_.size() > 1) primary = ack_.has_value() ? *ack_ : ChoosePrimary(writes_);
  size_t primary_row = 0;
  size_t primary_cell = 0;
  while (!writes_.empty()) {
    WriteBuffer::node_type node = writes_.extract(writes_.begin());
    CellName& cell = node.key();
    BufferedWrite& write = node.mapped();
    const bool is_primary = !primary.has_value() || cell == *primary;
    const bool is_new_row =
        writes.rows.empty() || writes.rows.back().row != cell.row || writes.rows.back().table != cell.table;
    RowWrites& row = is_new_row ? writes.rows.emplace_back() : writes.rows.back();
    CellWrite& out = row.cells.emplace_back();
    Lock& lock = out.lock;
    lock.kind = write.kind;
    lock.session = engine_->env.session;
    lock.refreshed = now;
    if (!is_primary) lock.primary = primary;
    if (write.kind == WriteKind::kVerify) {
      lock.verified = verified[cell];
    } else if (engine_->env.observed.Contains(cell.table, cell.column)) {
      lock.observed = true;
      lock.depth = depth_;
    }
    const bool is_inline = write.kind == WriteKind::kPut && write.value.size() <= kInlineBytes;
    (is_inline ? lock.value.emplace() : out.long_value) = std::move(write.value);
    out.column = std::move(cell.column);
    if (is_new_row) {
      row.table = std::move(cell.table);
      row.row = std::move(cell.row);
    }
    if (is_primary) {
      primary_row = writes.rows.size() - 1;
      primary_cell = row.cells.size() - 1;
    }
  }
  if (writes.rows.empty()) return writes;  // nothing but notifications
  if (primary_row != 0) std::swap(writes.rows[0], writes.rows[primary_row]);
  if (primary_cell != 0) std::swap(writes.rows[0].cells[0], writes.rows[0].cells[primary_cell]);
  return writes;
}

CommitResult TransactionCore::Commit() {
  if (!result_.has_value()) result_ = CommitOnce();
  return *result_;
}

CommitResult TransactionCore::Abandon() {
  if (!result_.has_value()) result_ = AbortedBy({}, start_ts_, engine_->Closed());
  return *result_;
}

CommitResult TransactionCore::CommitOnce() {
  if (!write_error_.ok()) return AbortedBy({}, start_ts_, write_error_);
  if (writes_.empty() && notified_.empty()) {
    return CommittedAt({}, start_ts_, Timestamp());  // H24: nothing to lock, nothing to decide
  }
  if (engine_->env.options.for_repair) {
    return AbortedBy(
        {}, start_ts_,
        absl::FailedPreconditionError("the cluster was opened for repair: transactions can't write to it"));
  }
  if (absl::Status s = EnsureStarted(); !s.ok()) return AbortedBy({}, start_ts_, s);
  const uint64_t observed = engine_->env.observed.version();
  const absl::StatusOr<Writes> writes = BuildWrites();
  if (!writes.ok()) return Count(AbortedBy({}, start_ts_, writes.status()));
  for (const RowWrites& row : writes->rows) {
    for (const CellWrite& cell : row.cells) {
      if (cell.lock.observed) triggered_.emplace(row.table, cell.column);
    }
  }
  for (const CellName& cell : writes->notified) triggered_.emplace(cell.table, cell.column);
  CommitResult result = triggered_.empty() ? CommitWrites(*writes) : CommitAndTell(*writes);
  if (result.committed() && engine_->env.observed.version() != observed) MarkLate(*writes, result.commit_ts);
  return Count(std::move(result));
}

CommitResult TransactionCore::CommitAndTell(const Writes& writes) {
  engine_->env.marks_begun.fetch_add(1);
  CommitResult result = CommitWrites(writes);
  engine_->env.marks_ended.fetch_add(1);
  if (result.committed()) SendHints(writes);
  return result;
}

// A worker of this process has started while the commit was under way, which was built without its observers. They are
// promised what is committed from then on; and a backfill, whose snapshot may be older than this commit, has not seen it.
void TransactionCore::MarkLate(const Writes& writes, Timestamp commit_ts) {
  Environment& env = engine_->env;
  Writes late{
      .start_ts = start_ts_, .rows = {}, .notified = {}, .depth = depth_, .continued = continued_, .removal = {}};
  for (const RowWrites& row : writes.rows) {
    for (const CellWrite& cell : row.cells) {
      if (cell.lock.kind == WriteKind::kVerify || cell.lock.observed) continue;
      if (env.observed.Contains(row.table, cell.column)) late.notified.push_back({row.table, row.row, cell.column});
    }
  }
  for (const CellName& cell : notified_) {
    const bool marked = std::find(writes.notified.begin(), writes.notified.end(), cell) != writes.notified.end();
    if (!marked && env.observed.Contains(cell.table, cell.column)) late.notified.push_back(cell);
  }
  if (late.notified.empty()) return;
  env.marks_begun.fetch_add(1);
  WriteMarks(env, late, commit_ts, CallDeadline()).IgnoreError();  // who dies here leaves it to a backfill
  env.marks_ended.fetch_add(1);
  SendHints(late);
}

CommitResult TransactionCore::CommitWrites(const Writes& writes) {
  if (writes.rows.empty()) return CommitMarksAlone(writes);
  const bool in_one_step = engine_->env.options.one_step_commit && engine_->env.store->CanMutateTogether();
  if (!in_one_step) return CommitInTwoPhases(writes);
  if (absl::Status s = CheckAge(); !s.ok()) return AbortedBy(writes.primary(), start_ts_, std::move(s));
  CommitResult result = CommitInOneStep(engine_->env, writes, CallDeadline());
  marks_removed_ = writes.removal.has_value() && result.committed();
  return result;
}

// G7: once a one-step commit is sent, a refusal because of the safe point leaves its outcome unknown. Before that it is an abort.
// So a transaction that is old enough to be refused asks first.
absl::Status TransactionCore::CheckAge() {
  Environment& env = engine_->env;
  if (env.runtime->Elapsed() - started_ < env.options.gc_retention / 2) return absl::OkStatus();
  const absl::StatusOr<Timestamp> safe_point = env.store->SafePoint();
  if (!safe_point.ok() || start_ts_ > *safe_point) return absl::OkStatus();  // the store decides
  return absl::OutOfRangeError(StrCat("the transaction that started at ", start_ts_.ToString(),
                                      " is older than the safe point, ", safe_point->ToString(), ": start a new one"));
}

// Nothing can conflict with it. If it fails, marks may be there all the same: they cost a run that finds nothing new (N6).
CommitResult TransactionCore::CommitMarksAlone(const Writes& writes) {
  Environment& env = engine_->env;
  const Deadline deadline = CallDeadline();
  const absl::StatusOr<Timestamp> commit_ts = DrawTimestamp(env, [&] { return deadline; });
  if (!commit_ts.ok()) return AbortedBy({}, start_ts_, commit_ts.status());
  if (absl::Status s = WriteMarks(env, writes, *commit_ts, deadline); !s.ok()) return AbortedBy({}, start_ts_, s);
  return CommittedAt({}, start_ts_, *commit_ts);
}

// Whoever runs observers learns of the change at once. A hint that is lost costs a while (N10).
void TransactionCore::SendHints(const Writes& writes) {
  Coordinator* const coordinator = engine_->env.coordinator;
  for (const RowWrites& row : writes.rows) {
    for (const CellWrite& cell : row.cells) {
      if (cell.lock.observed) coordinator->SendHint({row.table, row.row, cell.column});
    }
  }
  for (const CellName& cell : writes.notified) coordinator->SendHint(cell);
}

CommitResult TransactionCore::CommitInTwoPhases(const Writes& writes) {
  Environment& env = engine_->env;
  const Deadline deadline = CallDeadline();
  const Deadline cleanup(env.runtime, env.options.lock_lease);
  const auto abort = [&](const absl::Status& why) {
    RollBackOwn(env, writes, cleanup);
    return AbortedBy(writes.primary(), start_ts_, why);
  };
  const LockKeeper::Membership kept(&*engine_->keeper, writes);

  const absl::StatusOr<std::optional<Timestamp>> drawn = Prewrite(env, writes, deadline);
  if (!drawn.ok()) return abort(drawn.status());
  // T6: after the last prewrite was applied. So whoever starts later than this timestamp finds the locks.
  const absl::StatusOr<Timestamp> commit_ts =
      drawn->has_value() ? absl::StatusOr<Timestamp>(**drawn) : DrawTimestamp(env, [&] { return deadline; });
  if (!commit_ts.ok()) return abort(commit_ts.status());
  if (*commit_ts <= start_ts_) return abort(absl::InternalError("the oracle's timestamps went backwards"));

  // N9: before the commit point, so that nobody who dies there leaves them out.
  if (absl::Status s = WriteMarks(env, writes, *commit_ts, deadline); !s.ok()) return abort(s);

  std::vector<RowMutation> secondaries = BuildSecondaryCommitRows(writes, *commit_ts);
  CommitResult result = CommitPrimary(env, writes, *commit_ts, deadline);
  if (result.committed()) {
    marks_removed_ = RemovesWithPrimary(writes);
    if (!secondaries.empty() && !engine_->secondaries->Add(&secondaries)) {
      SecondaryQueue::Apply(&env, std::move(secondaries));
    }
  } else if (result.outcome == CommitResult::Outcome::kAborted) {
    RollBackOwn(env, writes, cleanup);
  }
  return result;
}

CommitResult TransactionCore::Count(CommitResult result) {
  Counters& counters = engine_->env.counters;
  Counters::Add(&counters.commits, result.committed() ? 1 : 0);
  Counters::Add(&counters.conflicts, IsConflict(result.status) ? 1 : 0);
  Counters::Add(&counters.unknown_outcomes, result.outcome == CommitResult::Outcome::kUnknown ? 1 : 0);
  return result;
}

}  // namespace percolator::internal
