// SPDX-License-Identifier: Apache-2.0

#include "src/txn/get.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "percolator/status_macros.h"
#include "src/base/check.h"
#include "src/txn/record_coding.h"

namespace percolator {
namespace {

CellName NameOf(CellView cell) { return {std::string(cell.table), std::string(cell.row), std::string(cell.column)}; }

[[maybe_unused]] bool AreDistinct(const std::vector<WantedCell>& cells) {
  std::set<CellName> seen;
  return std::all_of(cells.begin(), cells.end(), [&seen](const WantedCell& w) { return seen.insert(w.cell).second; });
}

// The cells of one row, as one RowRead.
struct RowGroup {
  std::vector<size_t> cells;  // indices into the requested cells
};

// Groups those of `cells` that `pending` names by row.
std::vector<RowGroup> GroupByRow(const std::vector<WantedCell>& cells, const std::vector<size_t>& pending) {
  if (pending.size() == 1) return {{pending}};
  std::map<std::pair<std::string_view, std::string_view>, size_t> index;
  std::vector<RowGroup> groups;
  for (const size_t i : pending) {
    const std::string_view table = cells[i].cell.table;
    const std::string_view row = cells[i].cell.row;
    const auto [it, is_new] = index.emplace(std::pair(table, row), groups.size());
    if (is_new) groups.emplace_back();
    groups[it->second].cells.push_back(i);
  }
  return groups;
}

std::vector<RowRead> ReadsOf(const std::vector<WantedCell>& cells, const std::vector<RowGroup>& groups, Timestamp ts) {
  std::vector<RowRead> reads;
  reads.reserve(groups.size());
  for (const RowGroup& group : groups) {
    const CellName& first = cells[group.cells[0]].cell;
    RowRead& read = reads.emplace_back(RowRead{first.table, first.row, {}});
    read.selectors.reserve(2 * group.cells.size());
    for (const size_t i : group.cells) AddSelectors(cells[i].cell.column, ts, &read.selectors);
  }
  return reads;
}

ColumnState* FindColumn(std::vector<ColumnState>* columns, const std::string& column) {
  const auto it =
      std::lower_bound(columns->begin(), columns->end(), column,
                       [](const ColumnState& state, const std::string& name) { return state.column < name; });
  return it != columns->end() && it->column == column ? &*it : nullptr;
}

// Returns the version of the cell's newest record.
absl::StatusOr<Version> VersionOfNewest(Environment& env, Timestamp ts, CellView cell, Cell& newest,
                                        absl::FunctionRef<Deadline()> make_deadline) {
  absl::StatusOr<WriteRecord> record = TakeWriteRecord(std::move(newest.value));
  if (!record.ok()) return AtCell(record.status(), cell.table, cell.row, newest);
  Version version;
  if (record->kind == WriteKind::kVerify) {
    ColumnState state{.column = {}, .lock = {}, .record = *std::move(record), .commit_ts = newest.timestamp};
    PERCOLATOR_RETURN_IF_ERROR(FollowVerified(env, ts, {{NameOf(cell), &state}}, make_deadline()));
    version = VersionOf(&state);
  } else {
    version = VersionOf(*record, newest.timestamp);
  }
  if (version.data_ts != Timestamp()) {
    PERCOLATOR_RETURN_IF_ERROR(LoadValues(env, ts, {{NameOf(cell), &version}}, make_deadline()));
  }
  return version;
}

}  // namespace

absl::StatusOr<Version> GetCell(Environment& env, Timestamp ts, CellView cell,
                                absl::FunctionRef<Deadline()> make_deadline) {
  std::vector<RowRead> reads;
  RowRead& read = reads.emplace_back(RowRead{std::string(cell.table), std::string(cell.row), {}});
  read.selectors.reserve(2);
  AddSelectors(std::string(cell.column), ts, &read.selectors);
  std::optional<Deadline> deadline;
  const auto in_time = [&] {
    if (!deadline.has_value()) deadline = make_deadline();
    return *deadline;
  };
  for (Backoff backoff(env.runtime);;) {
    PERCOLATOR_ASSIGN_OR_RETURN(std::vector<Row> rows, ReadAt(env, ts, reads, in_time));
    std::vector<Cell>& found = rows.front().cells;  // the lock comes before the record
    if (found.empty()) return Version();
    if (found.front().family != Family::kLock) return VersionOfNewest(env, ts, cell, found.back(), in_time);
    absl::StatusOr<Lock> lock = DecodeLock(found.front().value);
    if (!lock.ok()) return AtCell(lock.status(), cell.table, cell.row, found.front());
    const FoundLock met{NameOf(cell), found.front().timestamp, *std::move(lock)};
    PERCOLATOR_RETURN_IF_ERROR(ResolveOrWait(env, {met}, in_time(), &backoff));
  }
}

absl::StatusOr<std::vector<std::optional<Version>>> GetCells(Environment& env, Timestamp ts,
                                                             const std::vector<WantedCell>& cells,
                                                             const Deadline& deadline) {
  PERCOLATOR_DCHECK(AreDistinct(cells));
  std::vector<std::optional<Version>> versions(cells.size());
  std::vector<size_t> pending(cells.size());
  for (size_t i = 0; i < cells.size(); ++i) pending[i] = i;
  for (Backoff backoff(env.runtime); !pending.empty();) {
    const std::vector<RowGroup> groups = GroupByRow(cells, pending);
    PERCOLATOR_ASSIGN_OR_RETURN(std::vector<Row> rows, ReadAt(env, ts, ReadsOf(cells, groups, ts), deadline));

    std::vector<std::vector<ColumnState>> states;
    std::vector<std::pair<CellName, ColumnState*>> verified;
    std::vector<std::pair<size_t, ColumnState*>> found;
    std::vector<FoundLock> locks;
    pending.clear();
    states.reserve(groups.size());
    for (size_t g = 0; g < groups.size(); ++g) {
      PERCOLATOR_ASSIGN_OR_RETURN(std::vector<ColumnState> columns,
                                  ParseRow(cells[groups[g].cells[0]].cell.table, std::move(rows[g])));
      states.push_back(std::move(columns));
      for (const size_t i : groups[g].cells) {
        ColumnState* state = FindColumn(&states.back(), cells[i].cell.column);
        if (state == nullptr) {
          versions[i].emplace();
        } else if (!state->lock.has_value()) {
          found.emplace_back(i, state);
          if (state->record->kind == WriteKind::kVerify) verified.emplace_back(cells[i].cell, state);
        } else if (cells[i].needed) {
          locks.push_back(*state->lock);
          pending.push_back(i);
        }
      }
    }
    PERCOLATOR_RETURN_IF_ERROR(FollowVerified(env, ts, verified, deadline));
    std::vector<std::pair<CellName, Version*>> to_load;
    for (const auto& [i, state] : found) {
      versions[i] = VersionOf(state);
      if (cells[i].needed && versions[i]->data_ts != Timestamp()) to_load.emplace_back(cells[i].cell, &*versions[i]);
    }
    PERCOLATOR_RETURN_IF_ERROR(LoadValues(env, ts, to_load, deadline));
    if (locks.empty()) break;
    PERCOLATOR_RETURN_IF_ERROR(ResolveOrWait(env, locks, deadline, &backoff));
  }
  return versions;
}

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

absl::StatusOr<std::vector<std::optional<std::string>>> GetValues(Environment& env, Timestamp ts,
                                                                  absl::Span<const CellName> cells,
                                                                  const Deadline& deadline) {
  const std::vector<WantedCell> wanted = WithoutRepeats(cells);
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<std::optional<Version>> versions, GetCells(env, ts, wanted, deadline));
  std::vector<std::optional<std::string>> values;
  values.reserve(cells.size());
  for (const CellName& cell : cells) {
    const auto found = std::lower_bound(wanted.begin(), wanted.end(), cell,
                                        [](const WantedCell& want, const CellName& c) { return want.cell < c; });
    values.push_back(versions[static_cast<size_t>(found - wanted.begin())]->value);
  }
  return values;
}

}  // namespace percolator
