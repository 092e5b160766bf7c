// SPDX-License-Identifier: Apache-2.0

#include "tests/txn/world.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "percolator/spi/assemble.h"
#include "src/base/strings.h"
#include "src/txn/columns.h"
#include "src/txn/commit.h"
#include "src/txn/get.h"
#include "src/txn/one_step.h"
#include "src/txn/prewrite.h"
#include "src/txn/tables.h"

namespace percolator {
namespace {

std::string Value(const std::string& value) {
  return value.size() <= 20 ? absl::CHexEscape(value) : StrCat("(", value.size(), " bytes)");
}

// The common part of a lock and of a record.
std::string Write(WriteKind kind, const std::optional<std::string>& value, Timestamp verified) {
  std::string text(WriteKindName(kind));
  if (kind == WriteKind::kPut) text += value.has_value() ? StrCat(" ", Value(*value)) : std::string(" long");
  if (kind == WriteKind::kVerify) text += StrCat(" ", verified.ToString());
  return text;
}

std::string LockText(const Cell& cell) {
  const absl::StatusOr<Lock> lock = DecodeLock(cell.value);
  if (!lock.ok()) return lock.status().ToString();
  return StrCat(Write(lock->kind, lock->value, lock->verified),
                lock->primary.has_value() ? StrCat(" of ", lock->primary->row) : std::string(" primary"));
}

std::string RecordText(const Cell& cell) {
  const absl::StatusOr<WriteRecord> record = DecodeWriteRecord(cell.value);
  if (!record.ok()) return record.status().ToString();
  return StrCat(Write(record->kind, record->value, record->verified), " from ", record->start_ts.ToString());
}

std::string CellText(const Cell& cell) {
  const std::string at = StrCat("@", cell.timestamp.ToString());
  if (cell.family == Family::kWrite && cell.column == RollbackColumn()) return StrCat("rollback", at);
  const std::string place =
      StrCat(FamilyName(cell.family),
             cell.column == kColumn ? std::string() : StrCat(" ", absl::CHexEscape(cell.column)), at, " ");
  switch (cell.family) {
    case Family::kLock:
      return StrCat(place, LockText(cell));
    case Family::kWrite:
      return StrCat(place, RecordText(cell));
    default:
      return StrCat(place, Value(cell.value));
  }
}

RowWrites* FindRow(Writes* writes, const PlannedWrite& planned) {
  for (RowWrites& row : writes->rows) {
    if (row.table == planned.table && row.row == planned.row) return &row;
  }
  return &writes->rows.emplace_back(RowWrites{planned.table, planned.row, {}});
}

const RowWrites& RowOf(const Writes& writes, const std::string& row) {
  for (const RowWrites& candidate : writes.rows) {
    if (candidate.row == row) return candidate;
  }
  ADD_FAILURE() << "the transaction does not write " << row;
  return writes.rows[0];
}

bool Arrive(Store* store, const RowMutation& mutation) {
  const absl::StatusOr<MutateResult> result = store->Mutate({mutation})[0];
  EXPECT_THAT(result, IsOk());
  return result.ok() && *result == MutateResult::kApplied;
}

}  // namespace

World::World(const StoreLimits& limits)
    : store(std::make_unique<HookedStore>(NewMemoryStore(limits))), oracle(1, &runtime) {
  EXPECT_THAT(store->CreateTable({kTable, EncodeSchema({})}), IsOk());
}

Client::Client(World* world, const ClusterOptions& options)
    : world_(world),
      wire_(world->store.get(), &world->oracle),
      session_(world->coordinator.OpenSession().value()),
      env_{.store = Borrow(wire_.store()),
           .oracle = Borrow(wire_.oracle()),
           .coordinator = Borrow<Coordinator>(&world->coordinator),
           .runtime = &world->runtime,
           .session = session_->id(),
           .options = options,
           .verdicts = {},
           .counters = {}} {}

void Client::Die(bool session_ends) {
  wire_.Die();
  if (session_ends) world_->coordinator.EndSession(session());
}

namespace {

// The id of the session that the coordinator opens next.
SessionId NextSession(TestCoordinator* coordinator) { return coordinator->OpenSession().value()->id() + 1; }

}  // namespace

Process::Process(World* world, const ClusterOptions& options)
    : world_(world), wire_(world->store.get(), &world->oracle), session_(NextSession(&world->coordinator)) {
  const absl::StatusOr<Cluster> cluster = Assemble({.store = Borrow(wire_.store()),
                                                    .oracle = Borrow(wire_.oracle()),
                                                    .coordinator = Borrow(&world->coordinator),
                                                    .runtime = Borrow(&world->runtime)},
                                                   options);
  EXPECT_THAT(cluster, IsOk());
  cluster_ = *cluster;
  wire_.CountFromHere();
}

void Process::Die(bool session_ends) {
  wire_.Die();
  if (session_ends) LoseSession();
}

void Process::LoseSession() { world_->coordinator.EndSession(session_); }

PlannedWrite PlannedWrite::In(std::string other_table) const {
  PlannedWrite planned = *this;
  planned.table = std::move(other_table);
  return planned;
}

PlannedWrite PlannedWrite::Of(std::string other_column) const {
  PlannedWrite planned = *this;
  planned.column = std::move(other_column);
  return planned;
}

PlannedWrite Put(std::string row, std::string value) {
  return {.row = std::move(row), .kind = WriteKind::kPut, .value = std::move(value)};
}
PlannedWrite Del(std::string row) { return {.row = std::move(row), .kind = WriteKind::kDelete}; }
PlannedWrite Relied(std::string row, uint64_t verified) {
  return {.row = std::move(row), .kind = WriteKind::kVerify, .verified = Timestamp(verified)};
}

std::string CellsOf(Store* store, const std::string& row, const std::string& table) {
  const absl::StatusOr<std::vector<Row>> rows =
      store->Read({{table, row, {{Family::kLock}, {Family::kWrite}, {Family::kData}, {Family::kNotify}}}});
  if (!rows.ok()) return rows.status().ToString();
  std::vector<std::string> texts;
  for (const Cell& cell : rows->front().cells) texts.push_back(CellText(cell));
  return absl::StrJoin(texts, " | ");
}

std::vector<std::string> AllLocks(Store* store) {
  std::vector<std::string> locks;
  const std::vector<TableInfo> tables = store->ListTables().value();
  for (const TableInfo& table : tables) {
    ScanRequest request{table.name, RowRange::All(), {{Family::kLock}}};
    for (bool more = true; more;) {
      const ScanPage page = store->Scan(request).value();
      for (const Row& row : page.rows) {
        for (const percolator::Cell& cell : row.cells) {
          locks.push_back(StrCat(table.name, "/", row.key, "/", cell.column, "@", cell.timestamp.ToString()));
        }
      }
      more = page.resume.has_value();
      if (more) request.rows.start = *page.resume;
    }
  }
  return locks;
}

void ExpectConflict(const absl::Status& status, Conflict::Kind kind, const std::string& row, uint64_t other_start,
                    uint64_t other_commit) {
  const std::optional<Conflict> conflict = GetConflict(status);
  ASSERT_TRUE(conflict.has_value()) << status;
  EXPECT_TRUE(IsConflict(status));
  EXPECT_EQ(conflict->kind, kind) << status;
  EXPECT_EQ(conflict->cell.row, row) << status;
  if (other_start != 0) {
    EXPECT_EQ(conflict->other_start_ts, Timestamp(other_start)) << status;
  }
  if (other_commit != 0) {
    EXPECT_EQ(conflict->other_commit_ts, Timestamp(other_commit)) << status;
  }
}

void ExpectOutcome(const CommitResult& result, CommitResult::Outcome outcome) {
  EXPECT_EQ(static_cast<int>(result.outcome), static_cast<int>(outcome)) << result.status;
  EXPECT_EQ(result.status.ok(), outcome == CommitResult::Outcome::kCommitted) << result.status;
  EXPECT_EQ(absl::IsUnknown(result.status), outcome == CommitResult::Outcome::kUnknown) << result.status;
}

// --- StepsTest

void StepsTest::PassTimestamp(uint64_t ts) { world_.oracle.SetNext(std::max(ts + 1, world_.oracle.next().value())); }

ClusterOptions StepsTest::Options() {
  ClusterOptions options;
  options.lock_lease = Duration(kLease);
  options.gc_retention = Duration(10 * kLease);
  options.call_timeout = std::chrono::seconds(1);
  return options;
}

StepsTest::StepsTest() : me_(&world_, Options()), other_(&world_, Options()) {}

Writes StepsTest::BeginBy(Client& client, uint64_t start_ts, const std::vector<PlannedWrite>& planned) {
  PassTimestamp(start_ts);
  Writes writes{Timestamp(start_ts), {}};
  for (const PlannedWrite& plan : planned) {
    CellWrite cell{plan.column, {}, {}};
    cell.lock.kind = plan.kind;
    cell.lock.session = client.session();
    cell.lock.refreshed = Timestamp(start_ts);
    cell.lock.verified = plan.verified;
    if (!writes.rows.empty()) cell.lock.primary = writes.primary();
    if (plan.kind == WriteKind::kPut && plan.value.size() <= kInlineBytes) {
      cell.lock.value = plan.value;
    } else {
      cell.long_value = plan.value;
    }
    FindRow(&writes, plan)->cells.push_back(std::move(cell));
  }
  return writes;
}

void StepsTest::MustPrewriteBy(Client& client, const Writes& writes) {
  ASSERT_THAT(TryPrewriteBy(client, writes), IsOk());
}

absl::Status StepsTest::TryPrewriteBy(Client& client, const Writes& writes) {
  return Prewrite(client.env(), writes, client.deadline()).status();
}

bool StepsTest::ArrivePrewrite(const Writes& writes, const std::string& row) {
  return Arrive(world_.store.get(), BuildPrewriteRow(RowOf(writes, row), writes.start_ts));
}

bool StepsTest::ArriveCommit(const Writes& writes, const std::string& row, uint64_t commit_ts) {
  return Arrive(world_.store.get(), BuildCommitRow(RowOf(writes, row), writes.start_ts, Timestamp(commit_ts)));
}

CommitResult StepsTest::TryCommitPrimary(const Writes& writes, uint64_t commit_ts) {
  PassTimestamp(commit_ts);
  return CommitPrimary(me_.env(), writes, Timestamp(commit_ts), me_.deadline());
}

void StepsTest::MustCommitPrimary(const Writes& writes, uint64_t commit_ts) {
  const CommitResult result = TryCommitPrimary(writes, commit_ts);
  ExpectOutcome(result, CommitResult::Outcome::kCommitted);
  EXPECT_EQ(result.commit_ts, Timestamp(commit_ts));
  EXPECT_EQ(result.start_ts, writes.start_ts);
  EXPECT_EQ(result.primary, writes.primary());
}

void StepsTest::MustCommitSecondaries(const Writes& writes, uint64_t commit_ts) {
  for (const auto& result : world_.store->Mutate(BuildSecondaryCommitRows(writes, Timestamp(commit_ts)))) {
    ASSERT_THAT(result, IsOk());
  }
}

void StepsTest::MustCommit(const Writes& writes, uint64_t commit_ts) {
  MustPrewrite(writes);
  MustCommitPrimary(writes, commit_ts);
  MustCommitSecondaries(writes, commit_ts);
}

void StepsTest::MustCommitOneStep(const Writes& writes, uint64_t commit_ts) {
  world_.oracle.SetNext(commit_ts);
  const CommitResult result = CommitInOneStep(me_.env(), writes, me_.deadline());
  ExpectOutcome(result, CommitResult::Outcome::kCommitted);
  EXPECT_EQ(result.commit_ts, Timestamp(commit_ts));
}

void StepsTest::RollBack(const Writes& writes) { RollBackOwn(me_.env(), writes, me_.deadline()); }

absl::StatusOr<std::optional<std::string>> StepsTest::Read(Client& client, const CellName& cell, uint64_t at) {
  const absl::StatusOr<std::vector<std::optional<Version>>> versions =
      GetCells(client.env(), Timestamp(at), {{cell, true}}, client.deadline());
  if (!versions.ok()) return versions.status();
  return (*versions)[0]->value;
}

void StepsTest::MustRead(const std::string& row, uint64_t at, const std::string& value) {
  const absl::StatusOr<std::optional<std::string>> read = Read(other_, Cell(row), at);
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(*read, value) << row << " at " << at << ": " << Cells(row);
}

void StepsTest::MustReadNothing(const std::string& row, uint64_t at) {
  const absl::StatusOr<std::optional<std::string>> read = Read(other_, Cell(row), at);
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(*read, std::nullopt) << row << " at " << at << ": " << Cells(row);
}

void StepsTest::MustWrite(const std::string& row, const std::string& value, uint64_t start_ts, uint64_t commit_ts) {
  const Writes writes = BeginBy(other_, start_ts, {Put(row, value)});
  MustPrewriteBy(other_, writes);
  PassTimestamp(commit_ts);
  ExpectOutcome(CommitPrimary(other_.env(), writes, Timestamp(commit_ts), other_.deadline()),
                CommitResult::Outcome::kCommitted);
}

FoundLock StepsTest::Met(const std::string& row, uint64_t start_ts, const std::string& table) {
  const std::vector<Row> rows =
      world_.store->Read({{table, row, {{Family::kLock, kColumn, TimestampRange::Exactly(Timestamp(start_ts))}}}})
          .value();
  if (rows[0].cells.empty()) {
    ADD_FAILURE() << row << " is not locked at " << start_ts;
    return {};
  }
  return {{table, row, kColumn}, Timestamp(start_ts), DecodeLock(rows[0].cells[0].value).value()};
}

// --- ClusterTest

ClusterOptions ClusterTest::Options(bool one_step) {
  ClusterOptions options;
  options.one_step_commit = one_step;
  options.gc_period = Duration(0);
  return options;
}

ClusterTest::ClusterTest(const ClusterOptions& options, const StoreLimits& limits)
    : world_(limits), cluster_(&world_, options) {}

void ClusterTest::Buffer(ReadWrite& t, const std::vector<PlannedWrite>& writes) {
  for (const PlannedWrite& write : writes) {
    switch (write.kind) {
      case WriteKind::kPut:
        t.Set({write.table, write.row, write.column}, write.value);
        break;
      case WriteKind::kDelete:
        t.Delete({write.table, write.row, write.column});
        break;
      default:
        t.Verify({write.table, write.row, write.column});
    }
    ASSERT_THAT(t.status(), IsOk());
  }
}

Timestamp ClusterTest::MustSet(const std::vector<PlannedWrite>& writes) {
  Transaction t(*cluster_);
  Buffer(t, writes);
  const CommitResult result = t.Commit();
  ExpectOutcome(result, CommitResult::Outcome::kCommitted);
  return result.commit_ts;
}

std::optional<std::string> ClusterTest::Get(const ReadView& view, const std::string& row, const std::string& column) {
  const absl::StatusOr<std::optional<std::string>> value = view.Get({kTable, row, column});
  EXPECT_THAT(value, IsOk());
  return value.ok() ? *value : std::nullopt;
}

std::optional<std::string> ClusterTest::Now(const std::string& row, const std::string& column) {
  absl::StatusOr<Snapshot> snapshot = cluster_->GetSnapshot();
  EXPECT_THAT(snapshot, IsOk());
  return Get(*snapshot, row, column);
}

std::string ClusterTest::Scanned(const ReadView& view, const ScanOptions& options, std::string_view table) {
  std::vector<std::string> texts;
  for (const absl::StatusOr<ScannedRow>& row : view.Scan(table, options)) {
    EXPECT_THAT(row, IsOk());
    if (!row.ok()) break;
    texts.push_back(StrCat(row->key, "{",
                           absl::StrJoin(row->columns, " ",
                                         [](std::string* out, const ScannedRow::Column& c) {
                                           *out += StrCat(c.name, "=", Value(c.value));
                                         }),
                           "}"));
  }
  return absl::StrJoin(texts, " ");
}

}  // namespace percolator
