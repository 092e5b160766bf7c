// SPDX-License-Identifier: Apache-2.0

#include "src/txn/read_cache.h"

#include <algorithm>
#include <set>

#include "percolator/status_macros.h"
#include "src/base/check.h"

namespace percolator {
namespace {

// Beyond this size, cells are read again.
constexpr size_t kCacheBytes = 16 << 20;

}  // namespace

const Version* ReadCache::Find(const CellName& cell) const {
  const auto it = entries_.find(cell);
  return it == entries_.end() ? nullptr : &it->second.version;
}

bool ReadCache::HasValue(const CellName& cell) const {
  const Version* const version = Find(cell);
  return version != nullptr && version->data_ts == Timestamp();
}

absl::Status ReadCache::Fetch(Environment& env, const Predictor& predictor, const WriteBuffer& writes, Timestamp ts,
                              const std::vector<CellName>& cells, const Deadline& deadline) {
  std::vector<WantedCell> wanted = WithoutRepeats(cells);
  const size_t asked = wanted.size();
  if (!profile_.empty()) AddPredicted(predictor, writes, &wanted);
  if (wanted.size() == 1) {
    CellName& cell = wanted[0].cell;
    PERCOLATOR_ASSIGN_OR_RETURN(Version version, GetCell(env, ts, cell, [&] { return deadline; }));
    Keep(std::move(cell), std::move(version), /*prefetched=*/false);
    return absl::OkStatus();
  }
  PERCOLATOR_ASSIGN_OR_RETURN(std::vector<std::optional<Version>> versions, GetCells(env, ts, wanted, deadline));
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!versions[i].has_value()) continue;
    Counters::Add(&env.counters.cells_prefetched, i >= asked ? 1 : 0);
    Keep(std::move(wanted[i].cell), *std::move(versions[i]), /*prefetched=*/i >= asked);
  }
  return absl::OkStatus();
}

void ReadCache::Keep(CellName cell, Version version, bool prefetched) {
  bytes_ += sizeof(Entry) + cell.row.size() + cell.column.size();
  if (version.value.has_value()) bytes_ += version.value->size();
  entries_.insert_or_assign(std::move(cell), Entry{std::move(version), prefetched});
}

void ReadCache::AddPredicted(const Predictor& predictor, const WriteBuffer& writes,
                             std::vector<WantedCell>* wanted) const {
  std::set<CellName> chosen;
  for (const WantedCell& want : *wanted) chosen.insert(want.cell);
  for (size_t i = 0, asked = wanted->size(); i < asked; ++i) {
    const CellName first = (*wanted)[i].cell;
    if (row_reads_.contains({first.table, first.row})) continue;  // predicted with the row's first read
    for (std::string& column : predictor.After(profile_, first.table, first.column)) {
      CellName cell{first.table, first.row, std::move(column)};
      if (writes.cells().contains(cell) || entries_.contains(cell) || !chosen.insert(cell).second) continue;
      wanted->push_back({std::move(cell), false});
    }
  }
}

const std::optional<std::string>& ReadCache::Value(const CellName& cell, Counters* counters) {
  PERCOLATOR_DCHECK(HasValue(cell));
  Entry& entry = entries_.at(cell);
  Counters::Add(&counters->prefetched_cells_used, entry.prefetched ? 1 : 0);
  entry.prefetched = false;
  return entry.version.value;
}

void ReadCache::NoteRead(const CellName& cell) {
  if (profile_.empty()) return;
  const auto [it, is_first] = row_reads_.try_emplace({cell.table, cell.row});
  RowReads& reads = it->second;
  if (is_first) {
    reads.first = cell.column;
  } else if (cell.column != reads.first &&
             std::find(reads.others.begin(), reads.others.end(), cell.column) == reads.others.end()) {
    reads.others.push_back(cell.column);
  }
}

void ReadCache::Shrink() {
  if (bytes_ <= kCacheBytes) return;
  entries_.clear();
  bytes_ = 0;
}

}  // namespace percolator
