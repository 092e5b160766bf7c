// SPDX-License-Identifier: Apache-2.0

#include "src/observe/quarantine.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "percolator/status_macros.h"
#include "src/base/coding.h"
#include "src/base/stable_hash.h"
#include "src/base/strings.h"
#include "src/observe/ack.h"
#include "src/txn/columns.h"
#include "src/txn/record_coding.h"
#include "src/txn/transaction_core.h"

namespace percolator {
namespace {

constexpr std::string_view kEntryRecord = "quarantine entry";
constexpr std::string_view kRowPrefix = "quarantine/";
constexpr size_t kMaxErrorBytes = 4096;
// The limit of a cell's name within a column's name: a row key and a column together may be longer than a column may
// be.
constexpr size_t kMaxNameBytes = 2048;

void AppendName(std::string* out, const CellName& cell) {
  AppendOrderedString(out, cell.table);
  AppendOrderedString(out, cell.row);
  AppendOrderedString(out, cell.column);
}

CellName EntryCell(std::string_view observer, const CellName& cell) {
  CellName entry{std::string(kSystemTable), StrCat(kRowPrefix, observer), {}};
  AppendName(&entry.column, cell);
  if (entry.column.size() > kMaxNameBytes) {
    const uint64_t hash = StableHash(entry.column);
    const uint64_t other_hash = StableHash(StrCat("and another", entry.column));
    entry.column.resize(kMaxNameBytes);
    AppendFixed64(&entry.column, hash);
    AppendFixed64(&entry.column, other_hash);
  }
  return entry;
}

// Reads the entry and puts its removal into the transaction. Returns NotFound if it does not exist.
absl::StatusOr<Quarantined> TakeEntry(TransactionCore* core, const Quarantined& entry) {
  const CellName cell = EntryCell(entry.observer, entry.cell);
  const absl::StatusOr<std::optional<std::string>> value = core->Get(cell.table, cell.row, cell.column);
  if (!value.ok() && !absl::IsNotFound(value.status())) return value.status();
  if (!value.ok() || !value->has_value()) {
    return absl::NotFoundError(
        StrCat("cell ", ToString(entry.cell), " is not in quarantine for observer ", entry.observer));
  }
  PERCOLATOR_RETURN_IF_ERROR(core->Buffer(WriteKind::kDelete, cell.table, cell.row, cell.column, {}));
  return DecodeQuarantined(entry.observer, **value);
}

absl::Status CommitOrStatus(TransactionCore* core) {
  const CommitResult result = core->Commit();
  return result.committed() ? absl::OkStatus() : result.status;
}

// Runs `change` in a transaction and commits it. Retries after a conflict until the call timeout.
absl::Status Transact(Engine* engine, const std::function<absl::Status(TransactionCore* core)>& change) {
  Environment& env = engine->env;
  const Deadline deadline(env.runtime, env.options.call_timeout);
  for (Backoff backoff(env.runtime);; backoff.Wait()) {
    TransactionCore core(engine, TransactionOptions{});
    absl::Status status = change(&core);
    if (status.ok()) status = CommitOrStatus(&core);
    if (!IsConflict(status) || deadline.passed()) return status;
  }
}

// Removes the entry, and lets the observer run again.
absl::Status Replay(TransactionCore* core, const ObserverInfo& observer, const Quarantined& entry) {
  PERCOLATOR_ASSIGN_OR_RETURN(const Quarantined taken, TakeEntry(core, entry));
  if (observer.kind == NotificationKind::kWeak) {
    core->writes().MarkCell(entry.cell);
    return absl::OkStatus();
  }
  const CellName ack = AckCell(observer, entry.cell);
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<Version> versions, core->GetVersions({ack}));
  // N2: if the observer has since run for a later change, it has seen this one too. Without an acknowledgement, the
  // cell was deleted, and garbage collection has removed it with the delete.
  const std::optional<std::string>& seen = versions[0].value;
  if (!seen.has_value() || *seen == EncodeAck(taken.since)) {
    core->writes().Acknowledge(ack, {});
    core->writes().MarkCell(entry.cell);
  }
  return absl::OkStatus();
}

}  // namespace

std::string EncodeQuarantined(const Quarantined& entry) {
  std::string out(1, static_cast<char>(kRecordVersion));
  AppendFixed32(&out, static_cast<uint32_t>(entry.attempts));
  AppendFixed64(&out, entry.since.value());
  AppendName(&out, entry.cell);
  out.append(entry.error);
  return out;
}

absl::StatusOr<Quarantined> DecodeQuarantined(std::string_view observer, std::string_view bytes) {
  PERCOLATOR_RETURN_IF_ERROR(ConsumeRecordVersion(kEntryRecord, &bytes));
  Quarantined entry;
  entry.observer = observer;
  uint32_t attempts = 0;
  if (!ConsumeFixed32(&bytes, &attempts) || !ConsumeTimestamp(&bytes, &entry.since) ||
      !ConsumeOrderedString(&bytes, &entry.cell.table) || !ConsumeOrderedString(&bytes, &entry.cell.row) ||
      !ConsumeOrderedString(&bytes, &entry.cell.column)) {
    return CorruptRecord(kEntryRecord);
  }
  entry.attempts = static_cast<int>(attempts);
  entry.error = bytes;
  return entry;
}

absl::StatusOr<Timestamp> Quarantine(Engine* engine, const ObserverInfo& observer, const CellName& cell,
                                     Timestamp tried_at, int attempts, const absl::Status& error) {
  TransactionCore core(engine, TransactionOptions{});
  const bool strong = observer.kind == NotificationKind::kStrong;
  if (strong) {
    const CellName ack = AckCell(observer, cell);
    PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<Version> versions, core.GetVersions({cell, ack}));
    const absl::StatusOr<bool> dirty = IsDirty(versions[0], versions[1]);
    if (!dirty.ok()) {
      return AtCell(dirty.status(), ack.table, ack.row, {Family::kWrite, ack.column, versions[1].commit_ts, {}});
    }
    if (!*dirty) return core.start_ts();  // another worker has run it
    if (versions[0].commit_ts > tried_at) return absl::AbortedError("the observed cell has changed since the run");
    core.writes().Acknowledge(ack, EncodeAck(core.start_ts()));
  } else if (absl::Status s = core.MayRead(); !s.ok()) {
    return s;
  }
  const CellName place = EntryCell(observer.name, cell);
  const std::string value = EncodeQuarantined({.observer = observer.name,
                                               .cell = cell,
                                               .attempts = attempts,
                                               .error = error.ToString().substr(0, kMaxErrorBytes),
                                               .since = core.start_ts()});
  PERCOLATOR_RETURN_IF_ERROR(core.Buffer(WriteKind::kPut, place.table, place.row, place.column, value));
  PERCOLATOR_RETURN_IF_ERROR(CommitOrStatus(&core));
  return strong ? core.start_ts() : std::min(tried_at, core.start_ts());
}

absl::StatusOr<std::vector<Quarantined>> ListQuarantined(Engine* engine) {
  TransactionCore core(engine, TransactionOptions{});
  std::vector<Quarantined> entries;
  for (const absl::StatusOr<ScannedRow>& row : core.Scan(kSystemTable, {.rows = RowRange::Prefix(kRowPrefix)})) {
    if (absl::IsNotFound(row.status())) return entries;  // no worker has ever started
    if (!row.ok()) return row.status();
    const std::string_view observer = std::string_view(row->key).substr(kRowPrefix.size());
    for (const ScannedRow::Column& column : row->columns) {
      PERCOLATOR_ASSIGN_OR_RETURN(Quarantined entry, DecodeQuarantined(observer, column.value));
      entries.push_back(std::move(entry));
    }
  }
  return entries;
}

absl::Status ReplayQuarantined(Engine* engine, const ObserverInfo& observer, const Quarantined& entry) {
  return Transact(engine, [&](TransactionCore* core) { return Replay(core, observer, entry); });
}

absl::Status ReplayQuarantined(Engine* engine, const Quarantined& entry) {
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<ObserverInfo> infos, LoadObservers(engine));
  for (const ObserverInfo& info : infos) {
    if (info.name == entry.observer && info.table == entry.cell.table && info.column == entry.cell.column) {
      return ReplayQuarantined(engine, info, entry);
    }
  }
  return absl::FailedPreconditionError(StrCat("no observer \"", entry.observer, "\" observes ", entry.cell.table, ":\"",
                                              absl::CHexEscape(entry.cell.column),
                                              "\" now: start a worker that has it"));
}

absl::Status DropQuarantined(Engine* engine, const Quarantined& entry) {
  return Transact(engine, [&](TransactionCore* core) { return TakeEntry(core, entry).status(); });
}

}  // namespace percolator
