// SPDX-License-Identifier: Apache-2.0

#include "src/observe/registry.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "percolator/status_macros.h"
#include "src/base/coding.h"
#include "src/txn/columns.h"
#include "src/txn/record_coding.h"
#include "src/txn/transaction_core.h"

namespace percolator {
namespace {

constexpr std::string_view kObserverRecord = "observer";
constexpr std::string_view kObserversRow = "observers";
// Every change of the observers writes this cell: so of two concurrent changes, one fails.
constexpr std::string_view kChangeRow = "change";
constexpr std::string_view kChangeColumn = "observers";

// Returns the observers as a transaction sees them.
absl::StatusOr<std::vector<ObserverInfo>> ReadObservers(TransactionCore* core) {
  std::vector<ObserverInfo> infos;
  for (const absl::StatusOr<ScannedRow>& row : core->Scan(kSystemTable, {.rows = RowRange::Single(kObserversRow)})) {
    if (absl::IsNotFound(row.status())) return infos;  // no worker has ever started
    if (!row.ok()) return row.status();
    for (const ScannedRow::Column& column : row->columns) {
      PERCOLATOR_ASSIGN_OR_RETURN(ObserverInfo info, DecodeObserver(column.name, column.value));
      infos.push_back(std::move(info));
    }
  }
  return infos;
}

void TellTransactions(Engine* engine, const std::vector<ObserverInfo>& infos, Timestamp at) {
  ObservedColumns::Columns columns;
  for (const ObserverInfo& info : infos) columns[info.table].insert(info.column);
  engine->env.observed.Assign(std::move(columns), at);
}

// Puts `infos` into the transaction, and returns all observers after it.
absl::StatusOr<std::vector<ObserverInfo>> Change(TransactionCore* core, std::vector<ObserverInfo> infos,
                                                 bool add_only) {
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<ObserverInfo> before, ReadObservers(core));
  for (const ObserverInfo& info : infos) {
    if (std::find(before.begin(), before.end(), info) != before.end()) continue;
    PERCOLATOR_RETURN_IF_ERROR(
        core->Buffer(WriteKind::kPut, kSystemTable, kObserversRow, info.name, EncodeObserver(info)));
  }
  for (const ObserverInfo& old : before) {
    const auto same_name = [&](const ObserverInfo& info) { return info.name == old.name; };
    if (std::any_of(infos.begin(), infos.end(), same_name)) continue;
    if (add_only) {
      infos.push_back(old);
    } else if (absl::Status s = core->Buffer(WriteKind::kDelete, kSystemTable, kObserversRow, old.name, {}); !s.ok()) {
      return s;
    }
  }
  if (core->writes().empty()) return infos;
  PERCOLATOR_RETURN_IF_ERROR(core->Buffer(WriteKind::kPut, kSystemTable, kChangeRow, kChangeColumn, {}));
  return infos;
}

}  // namespace

std::string EncodeObserver(const ObserverInfo& info) {
  std::string out;
  out.push_back(static_cast<char>(kRecordVersion));
  out.push_back(info.kind == NotificationKind::kStrong ? 1 : 2);
  AppendOrderedString(&out, info.table);
  AppendOrderedString(&out, info.column);
  return out;
}

absl::StatusOr<ObserverInfo> DecodeObserver(std::string_view name, std::string_view bytes) {
  PERCOLATOR_RETURN_IF_ERROR(ConsumeRecordVersion(kObserverRecord, &bytes));
  if (bytes.empty() || (bytes[0] != 1 && bytes[0] != 2)) return CorruptRecord(kObserverRecord);
  ObserverInfo info;
  info.name = name;
  info.kind = bytes[0] == 1 ? NotificationKind::kStrong : NotificationKind::kWeak;
  bytes.remove_prefix(1);
  if (!ConsumeOrderedString(&bytes, &info.table) || !ConsumeOrderedString(&bytes, &info.column) || !bytes.empty()) {
    return CorruptRecord(kObserverRecord);
  }
  return info;
}

absl::StatusOr<std::vector<ObserverInfo>> LoadObservers(Engine* engine) {
  TransactionCore core(engine, TransactionOptions{});
  absl::StatusOr<std::vector<ObserverInfo>> infos = ReadObservers(&core);
  if (infos.ok()) TellTransactions(engine, *infos, core.start_ts());
  return infos;
}

absl::StatusOr<std::vector<ObserverInfo>> StoreObservers(Engine* engine, const std::vector<ObserverInfo>& infos,
                                                         bool add_only) {
  Environment& env = engine->env;
  const absl::Status created = env.store->CreateTable({std::string(kSystemTable), EncodeSchema({})});
  if (!created.ok() && !absl::IsAlreadyExists(created)) return created;
  engine->tables->Forget();
  const Deadline deadline(env.runtime, env.options.call_timeout);
  for (Backoff backoff(env.runtime);; backoff.Wait()) {
    TransactionCore core(engine, TransactionOptions{});
    absl::StatusOr<std::vector<ObserverInfo>> all = Change(&core, infos, add_only);
    if (IsSnapshotTooOld(all.status()) && !deadline.passed()) continue;
    if (!all.ok()) return all.status();
    const CommitResult result = core.Commit();
    if (result.committed()) {
      TellTransactions(engine, *all, std::max(result.commit_ts, core.start_ts()));
      return all;
    }
    // Retried after an unknown outcome too, which is harmless: observers that exist already are not written again.
    if (!IsConflict(result.status) && result.outcome != CommitResult::Outcome::kUnknown) return result.status;
    if (deadline.passed()) return result.status;
  }
}

}  // namespace percolator
