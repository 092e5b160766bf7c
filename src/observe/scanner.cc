// SPDX-License-Identifier: Apache-2.0

#include "src/observe/scanner.h"

#include <algorithm>
#include <utility>

#include "percolator/status_macros.h"
#include "src/base/coding.h"
#include "src/txn/columns.h"
#include "src/txn/tables.h"

namespace percolator {
namespace {

// Rows with marks in one page: few, because a mark may be outdated when the last of them is handled.
constexpr size_t kPage = 64;
// The first wait is this part of the scan period.
constexpr int kFirstWait = 100;
// One in this many circles scans all tables.
constexpr uint64_t kAllTables = 16;
// After this many teleports in a row, claimed rows are only skipped: otherwise a row that is claimed for long could
// hide others.
constexpr int kTeleports = 4;
// The borders of a range may be a little longer than the longest key: with a long common part, there is no choice.
constexpr size_t kLongCommonPart = 1024;

uint64_t EightBytes(std::string_view bytes) {
  std::string eight(bytes.substr(0, 8));
  eight.resize(8, '\0');
  return DecodeFixed64(eight.data());
}

}  // namespace

std::string KeyBetween(const std::string& start, const std::optional<std::string>& limit, uint64_t random) {
  size_t common = 0;
  while (limit.has_value() && common < std::min(start.size(), limit->size()) && start[common] == (*limit)[common]) {
    ++common;
  }
  if (common > kLongCommonPart) return start;
  const uint64_t low = EightBytes(std::string_view(start).substr(common));
  const uint64_t high = limit.has_value() ? EightBytes(std::string_view(*limit).substr(common)) : UINT64_MAX;
  if (high <= low) return start;
  std::string key = start.substr(0, common);
  AppendFixed64(&key, low + random % (high - low));
  return std::max(key, start);
}

std::vector<ScanPiece> Circle(std::vector<ScanPiece> pieces, size_t first, const std::string& key) {
  std::rotate(pieces.begin(), pieces.begin() + static_cast<std::ptrdiff_t>(first), pieces.end());
  if (key > pieces.front().rows.start) {
    ScanPiece rest = pieces.front();
    rest.rows.limit = key;
    pieces.front().rows.start = key;
    pieces.push_back(std::move(rest));
  }
  return pieces;
}

Scanner::Scanner(Engine* engine, Dispatch* dispatch, const WorkerOptions& options, ScannerCallbacks callbacks)
    : engine_(engine),
      dispatch_(dispatch),
      options_(options),
      callbacks_(std::move(callbacks)),
      changed_(engine->env.runtime->NewWaitQueue()) {}

Scanner::~Scanner() { Stop(); }

void Scanner::Start() {
  {
    MutexLock lock(&mutex_);
    tasks_ = options_.scanners;
  }
  for (int i = 0; i < options_.scanners; ++i) engine_->env.runtime->Start([this] { Loop(); });
}

void Scanner::Stop() {
  MutexLock lock(&mutex_);
  stopping_ = true;
  changed_->WakeAll();
  while (tasks_ > 0) changed_->Wait(&mutex_);
}

void Scanner::Wake() {
  MutexLock lock(&mutex_);
  ++wakes_;
  changed_->WakeAll();
}

bool Scanner::IsStopping() const {
  MutexLock lock(&mutex_);
  return stopping_;
}

void Scanner::WaitFor(Duration timeout) {
  Runtime* const runtime = engine_->env.runtime;
  const Duration end = runtime->Elapsed() + timeout;
  MutexLock lock(&mutex_);
  const uint64_t wakes = wakes_;
  for (Duration now = runtime->Elapsed(); now < end && wakes == wakes_ && !stopping_; now = runtime->Elapsed()) {
    changed_->WaitFor(&mutex_, end - now);
  }
}

void Scanner::Loop() {
  const Duration longest = std::clamp(options_.scan_period, Duration(2), kForever);
  const Duration shortest = std::max(longest / kFirstWait, Duration(1));
  Duration wait = shortest;
  int teleports = 0;
  for (uint64_t circles = 0; !IsStopping(); ++circles) {
    // The first circle too: a worker that has just started may have removed observers.
    const absl::StatusOr<Sweep> sweep =
        SweepOnce(circles % kAllTables == 0, options_.teleport && teleports < kTeleports);
    if (sweep.ok() && *sweep == Sweep::kTeleport) {
      ++teleports;
      continue;
    }
    teleports = 0;
    // Wait also after a find: a circle reads every mark, and those left out for want of room are still there.
    if (sweep.ok() && *sweep != Sweep::kNothing) wait = shortest;
    WaitFor(wait);
    wait = std::min(wait * 2, longest);
  }
  MutexLock lock(&mutex_);
  if (--tasks_ == 0) changed_->WakeAll();
}

absl::StatusOr<std::set<std::string>> Scanner::AllTables() {
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<TableInfo> infos, ListOwnTables(engine_->env.store.get()));
  std::set<std::string> tables;
  for (const TableInfo& info : infos) {
    if (info.name != kSystemTable) tables.insert(info.name);
  }
  return tables;
}

// Returns the tablets of the tables, if the store reports them.
absl::StatusOr<std::vector<ScanPiece>> Scanner::Pieces(bool all_tables) {
  std::set<std::string> tables = dispatch_->ObservedTables();
  if (all_tables) {
    PERCOLATOR_ASSIGN_OR_RETURN(std::set<std::string> all, AllTables());
    tables = std::move(all);
  }
  std::vector<ScanPiece> pieces;
  for (const std::string& table : tables) {
    const absl::StatusOr<std::vector<std::string>> borders = engine_->env.store->SampleRowKeys(table);
    if (absl::IsNotFound(borders.status())) continue;  // it was dropped
    if (!borders.ok()) return borders.status();
    std::string start;
    for (const std::string& border : *borders) {
      if (border <= start) continue;
      pieces.push_back({table, {start, border}});
      start = border;
    }
    pieces.push_back({table, {start, std::nullopt}});
  }
  return pieces;
}

absl::StatusOr<Scanner::Sweep> Scanner::SweepOnce(bool all_tables, bool may_teleport) {
  Runtime* const runtime = engine_->env.runtime;
  if (dispatch_->doubts_observers()) {
    PERCOLATOR_RETURN_IF_ERROR(callbacks_.reload());
  }
  PERCOLATOR_ASSIGN_OR_RETURN(std::vector<ScanPiece> pieces, Pieces(all_tables));
  if (pieces.empty()) return Sweep::kNothing;
  const size_t first = runtime->Random() % pieces.size();
  const RowRange& range = pieces[first].rows;
  const std::string key = KeyBetween(range.start, range.limit, runtime->Random());
  bool found = false;
  for (ScanPiece& piece : Circle(std::move(pieces), first, key)) {
    for (bool done = false; !done;) {
      if (IsStopping()) return Sweep::kNothing;
      if (!dispatch_->HasRoom()) return Sweep::kFull;
      const absl::StatusOr<std::vector<FoundMark>> marks =
          ScanMarks(&engine_->env, piece.table, &piece.rows, kPage, &done);
      if (absl::IsNotFound(marks.status())) break;  // it was dropped
      if (!marks.ok()) return marks.status();
      PERCOLATOR_ASSIGN_OR_RETURN(const Handled handled, Handle(*marks));
      found = found || handled.found;
      if (may_teleport && 2 * handled.met_others > marks->size()) return Sweep::kTeleport;
    }
  }
  return found ? Sweep::kFound : Sweep::kNothing;
}

absl::StatusOr<Scanner::Handled> Scanner::Handle(const std::vector<FoundMark>& marks) {
  Handled handled;
  PERCOLATOR_RETURN_IF_ERROR(HandlePending(marks));
  bool reloaded = false;
  for (const FoundMark& mark : marks) {
    const CellName& cell = mark.cell;
    if (mark.pending) continue;
    Dispatch::Interest interest = dispatch_->InterestIn(cell.table, cell.column);
    if (interest == Dispatch::Interest::kNone && !reloaded) {
      PERCOLATOR_RETURN_IF_ERROR(callbacks_.reload());
      reloaded = true;
      interest = dispatch_->InterestIn(cell.table, cell.column);
    }
    if (interest == Dispatch::Interest::kNone) {
      PERCOLATOR_RETURN_IF_ERROR(RemoveMarks(&engine_->env, cell, mark.timestamp));
      handled.found = true;
    } else if (interest == Dispatch::Interest::kOurs) {
      OfferCell(cell, &handled);
    }
  }
  return handled;
}

void Scanner::OfferCell(const CellName& cell, Handled* handled) {
  if (dispatch_->Has(cell)) return;
  if (options_.claims && !callbacks_.claim(cell)) {
    ++handled->met_others;
  } else if (dispatch_->Offer(cell, options_.claims)) {
    handled->found = true;
  } else if (options_.claims) {
    callbacks_.release(cell);
  }
}

// Ages are measured by the oracle's time, because the clocks of processes differ. A settled mark does not count as
// found: if its owner is alive, nothing has happened; otherwise the final mark will be found.
absl::Status Scanner::HandlePending(const std::vector<FoundMark>& marks) {
  if (std::none_of(marks.begin(), marks.end(), [](const FoundMark& mark) { return mark.pending; })) {
    return absl::OkStatus();
  }
  PERCOLATOR_ASSIGN_OR_RETURN(const Timestamp now, engine_->env.oracle->GetTimestamp());
  const auto lease = static_cast<uint64_t>(engine_->env.options.lock_lease.count());
  for (const FoundMark& mark : marks) {
    if (!mark.pending || mark.timestamp.value() + lease >= now.value()) continue;
    PERCOLATOR_RETURN_IF_ERROR(SettlePending(engine_, mark));
  }
  return absl::OkStatus();
}

// Reads a page of each table that has marks; the scanners handle the rest.
absl::StatusOr<std::optional<FoundMark>> Scanner::LookEverywhere() {
  PERCOLATOR_ASSIGN_OR_RETURN(const std::set<std::string> tables, AllTables());
  std::optional<FoundMark> example;
  for (const std::string& table : tables) {
    RowRange rows = RowRange::All();
    for (bool done = false; !done;) {
      const absl::StatusOr<std::vector<FoundMark>> marks = ScanMarks(&engine_->env, table, &rows, kPage, &done);
      if (absl::IsNotFound(marks.status())) break;  // it was dropped
      if (!marks.ok()) return marks.status();
      if (marks->empty()) continue;
      if (!example.has_value()) example = marks->front();
      PERCOLATOR_RETURN_IF_ERROR(Handle(*marks).status());
      break;
    }
  }
  return example;
}

}  // namespace percolator
