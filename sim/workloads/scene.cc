// SPDX-License-Identifier: Apache-2.0

#include "sim/workloads/scene.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <utility>

#include "percolator/status_macros.h"
#include "src/base/strings.h"
#include "src/txn/write_record.h"

namespace percolator::sim {
namespace {

// The number of timestamps for reads of the past.
constexpr size_t kMoments = 64;

bool Covers(const std::string& table, const ScanOptions& options, const CellName& cell) {
  if (cell.table != table || cell.row < options.rows.start) return false;
  if (options.rows.limit.has_value() && cell.row >= *options.rows.limit) return false;
  return options.columns.empty() ||
         std::find(options.columns.begin(), options.columns.end(), cell.column) != options.columns.end();
}

}  // namespace

std::string KeyOf(const CellName& cell) { return StrCat(cell.table, "/", cell.row, ":", cell.column); }

int64_t NumberIn(const std::optional<std::string>& value) {
  int64_t number = 0;
  if (value.has_value()) std::from_chars(value->data(), value->data() + value->size(), number);
  return number;
}

// ----- Recorded

void Recorded::NoteStart() {
  if (view_.timestamp() != Timestamp()) handle_.Started(view_.timestamp());
}

absl::StatusOr<std::optional<std::string>> Recorded::Get(const CellName& cell) {
  absl::StatusOr<std::optional<std::string>> value = view_.Get(cell);
  NoteStart();
  if (value.ok()) handle_.Read(KeyOf(cell), *value);
  return value;
}

absl::StatusOr<std::vector<std::optional<std::string>>> Recorded::Get(const std::vector<CellName>& cells) {
  absl::StatusOr<std::vector<std::optional<std::string>>> values = view_.GetCells(cells);
  NoteStart();
  if (!values.ok()) return values;
  for (size_t i = 0; i < cells.size(); ++i) handle_.Read(KeyOf(cells[i]), (*values)[i]);
  return values;
}

absl::StatusOr<std::map<CellName, std::string>> Recorded::Scan(const std::string& table, const ScanOptions& options) {
  std::map<CellName, std::string> found;
  std::optional<std::string> last;
  absl::Status status;
  for (const absl::StatusOr<ScannedRow>& row : view_.Scan(table, options)) {
    status = row.status();
    if (!status.ok()) break;
    if (last.has_value() && (options.reverse ? row->key >= *last : row->key <= *last)) {
      actor_.scene().Fail("scan", StrCat("row ", row->key, " after ", *last));
    }
    last = row->key;
    for (const ScannedRow::Column& column : row->columns) {
      CellName cell{table, row->key, column.name};
      if (!Covers(table, options, cell)) actor_.scene().Fail("scan", StrCat(KeyOf(cell), " is outside of the scan"));
      found.emplace(std::move(cell), column.value);
    }
  }
  NoteStart();
  if (!status.ok()) return status;
  const std::vector<CellName>& all = actor_.scene().cells;
  for (const auto& [cell, value] : found) {
    if (!std::binary_search(all.begin(), all.end(), cell)) {
      actor_.scene().Fail("scan", StrCat(KeyOf(cell), " exists but was never written"));
    }
  }
  for (const CellName& cell : all) {
    if (!Covers(table, options, cell)) continue;
    const auto it = found.find(cell);
    handle_.Read(KeyOf(cell), it == found.end() ? std::nullopt : std::optional(it->second));
  }
  return found;
}

void Recorded::Set(const CellName& cell, std::string_view value) {
  writes_->Set(cell, value);
  if (writes_->status().ok()) handle_.Write(KeyOf(cell), value);
}

void Recorded::Delete(const CellName& cell) {
  writes_->Delete(cell);
  if (writes_->status().ok()) handle_.Delete(KeyOf(cell));
}

void Recorded::Verify(const CellName& cell) {
  writes_->Verify(cell);
  if (writes_->status().ok()) handle_.Verify(KeyOf(cell));
}

void Recorded::Notify(const CellName& cell) { writes_->Notify(cell); }

absl::Status Recorded::Append(const CellName& cell, int64_t element) {
  PERCOLATOR_ASSIGN_OR_RETURN(std::optional<std::string> value, Get(cell));
  std::string list(ListText(value));
  AppendToList(&list, element);
  writes_->Set(cell, list);
  if (writes_->status().ok()) handle_.Append(KeyOf(cell), element);
  return absl::OkStatus();
}

// ----- Actor

void Actor::Note(std::string_view what) {
  if (scene_.world.trace().on()) scene_.world.Note(client_.process(), what);
}

void Actor::Sleep(Duration most) {
  if (most > Duration(0))
    process().Sleep(Duration(static_cast<int64_t>(Draw(static_cast<uint64_t>(most.count()) + 1))));
}

std::vector<CellName> Actor::SomeCells() {
  const size_t count = std::min<size_t>(1 + Draw(scene_.plan.cells), scene_.cells.size());
  std::vector<CellName> chosen;
  while (chosen.size() < count) {
    const CellName& cell = AnyCell();
    if (std::find(chosen.begin(), chosen.end(), cell) == chosen.end()) chosen.push_back(cell);
  }
  return chosen;
}

std::string Actor::Value(std::string_view text) {
  std::string value(text);
  if (scene_.plan.long_values && Percent(50)) value.append(kInlineBytes, '~');
  return value;
}

TransactionOptions Actor::Options() {
  return {.timeout = scene_.plan.deadline, .prefetch_profile = scene_.plan.predict ? "transaction" : ""};
}

void Actor::Saw(Timestamp ts) {
  if (ts == Timestamp()) return;
  if (scene_.moments.size() < kMoments) {
    scene_.moments.push_back(ts);
  } else {
    scene_.moments[Draw(kMoments)] = ts;
  }
}

// A dead client cannot report what it believes about its transaction.
void Actor::Failed(HistoryRecorder::Handle handle, Timestamp start_ts) {
  if (!alive()) return;
  Note(StrCat("T", handle.id(), " has failed"));
  handle.Finish(TxnOutcome::kFail, start_ts);
  scene_.invariants.OnAborted(start_ts);
}

void Actor::Ended(HistoryRecorder::Handle handle, const CommitResult& result) {
  if (result.start_ts != Timestamp()) handle.Started(result.start_ts);
  if (!alive()) return;
  switch (result.outcome) {
    case CommitResult::Outcome::kCommitted:
      Note(StrCat("T", handle.id(), " is committed at ", result.commit_ts.ToString()));
      handle.Finish(TxnOutcome::kOk, result.start_ts, result.commit_ts);
      scene_.invariants.OnCommitted(result.start_ts, result.commit_ts);
      Saw(result.commit_ts);
      break;
    case CommitResult::Outcome::kAborted:
      Failed(handle, result.start_ts);
      break;
    case CommitResult::Outcome::kUnknown:
      Note(StrCat("T", handle.id(), " has an unknown outcome"));
      scene_.open.push_back({handle.id(), result});
      break;
  }
}

bool Actor::Transact(const Body& body) { return Percent(50) ? ByHand(body) : WithRetries(body); }

bool Actor::ByHand(const Body& body) {
  HistoryRecorder::Handle handle = scene_.history.Begin(number_);
  Note(StrCat("T", handle.id(), " begins"));
  Transaction t(cluster_, Options());
  Recorded recorded(this, &t, &t, handle);
  const absl::Status status = body(recorded);
  if (!status.ok()) {
    Failed(handle, t.timestamp());
    return false;
  }
  const CommitResult result = t.Commit();
  Ended(handle, result);
  return alive() && result.committed();
}

bool Actor::WithRetries(const Body& body) {
  std::optional<HistoryRecorder::Handle> last;
  Timestamp start_ts;
  CommitResult result;
  TransactionOptions options = Options();
  options.max_attempts = 5;
  const absl::Status status = cluster_.Transact(
      [&](ReadWrite& t) -> absl::Status {
        if (last.has_value()) Failed(*last,
                                     start_ts);  // it is run again only after a failure
        last = scene_.history.Begin(number_);
        start_ts = Timestamp();
        Note(StrCat("T", last->id(), " begins"));
        Recorded recorded(this, &t, &t, *last);
        // A read draws the start timestamp, which would not be known later.
        absl::Status of_body = recorded.Get(AnyCell()).status();
        if (of_body.ok()) of_body = body(recorded);
        start_ts = t.timestamp();
        return of_body;
      },
      options, &result);
  if (!alive() || !last.has_value()) return false;
  if (status.ok()) {
    Ended(*last, result);
    return true;
  }
  // Every error but this one says that the commit did not happen: percolator/status.h.
  if (const std::optional<CommitResult> unknown = GetUnknownCommit(status)) {
    Ended(*last, *unknown);
  } else {
    Failed(*last, start_ts);
  }
  return false;
}

void Actor::InspectLock(HistoryRecorder::Handle handle, absl::StatusOr<Snapshot> snapshot, const Body& body) {
  if (!snapshot.ok()) {
    Failed(handle, Timestamp());
    return;
  }
  Note(StrCat("T", handle.id(), " looks at ", snapshot->timestamp().ToString()));
  handle.Started(snapshot->timestamp());
  Recorded recorded(this, &*snapshot, nullptr, handle);
  const absl::Status status = body(recorded);
  if (alive()) handle.Finish(status.ok() ? TxnOutcome::kOk : TxnOutcome::kFail, snapshot->timestamp());
  if (status.ok()) Saw(snapshot->timestamp());
}

void Actor::Look(const Body& body) {
  const HistoryRecorder::Handle handle = scene_.history.Begin(number_);
  InspectLock(handle, cluster_.GetSnapshot(), body);
}

void Actor::LookBack(const Body& body) {
  if (scene_.moments.empty()) {
    Look(body);
    return;
  }
  const HistoryRecorder::Handle handle = scene_.history.Begin(number_);
  scene_.as_of.push_back(handle.id());
  InspectLock(handle, cluster_.GetSnapshotAt(scene_.moments[Draw(scene_.moments.size())]), body);
}

absl::Status Actor::Observe(ReadWrite& t, const Body& body) {
  const HistoryRecorder::Handle handle = scene_.history.Begin(number_);
  scene_.runs.push_back(handle.id());
  scene_.as_of.push_back(handle.id());  // it started before it could be recorded
  Note(StrCat("T", handle.id(), " observes at ", t.timestamp().ToString()));
  Recorded recorded(this, &t, &t, handle);
  recorded.NoteStart();
  return body(recorded);
}

void Actor::CollectGarbage() {
  const absl::StatusOr<Timestamp> safe_point = cluster_.CollectGarbage();
  if (safe_point.ok()) Note(StrCat("has collected garbage up to ", safe_point->ToString()));
}

}  // namespace percolator::sim
