// SPDX-License-Identifier: Apache-2.0

#include "src/store/rocks/lock_table.h"

#include <algorithm>
#include <utility>

#include "src/base/check.h"
#include "src/base/coding.h"

namespace percolator {

static_assert(sizeof(size_t) == 8, "ShardOf takes the top six bits of a 64-bit hash");

namespace {

[[maybe_unused]] bool IsOfColumn(std::string_view cell_prefix, std::string_view column) {
  std::string encoded;
  AppendOrderedString(&encoded, column);
  return cell_prefix.ends_with(encoded);
}

}  // namespace

void LockTable::Set(const HashedPrefix& cell, Timestamp ts, std::string_view value) {
  Shard& shard = shards_[ShardOf(cell)];
  MutexLock lock(&shard.mutex);
  Versions& versions = shard.cells[cell.prefix];
  shard.NoteSize();
  auto at = std::find_if(versions.begin(), versions.end(), [&](const Version& v) { return v.timestamp <= ts; });
  if (at != versions.end() && at->timestamp == ts) {
    at->value.assign(value.data(), value.size());
  } else {
    versions.insert(at, Version{ts, std::string(value)});
  }
}

void LockTable::Erase(const HashedPrefix& cell, const TimestampRange& range) {
  Shard& shard = shards_[ShardOf(cell)];
  MutexLock lock(&shard.mutex);
  auto found = shard.cells.find(cell.prefix, cell.hash);
  if (found == shard.cells.end()) return;
  std::erase_if(found->second, [&](const Version& v) { return range.Contains(v.timestamp); });
  if (found->second.empty()) shard.cells.erase(found);
  shard.NoteSize();
}

void LockTable::EraseTable(std::string_view table_prefix) {
  for (Shard& shard : shards_) {
    MutexLock lock(&shard.mutex);
    absl::erase_if(shard.cells, [&](const auto& entry) { return entry.first.starts_with(table_prefix); });
    shard.NoteSize();
  }
}

bool LockTable::Exists(const HashedPrefix& cell, const TimestampRange& range) const {
  const Shard& shard = shards_[ShardOf(cell)];
  if (shard.IsEmpty()) return false;
  MutexLock lock(&shard.mutex);
  auto found = shard.cells.find(cell.prefix, cell.hash);
  if (found == shard.cells.end()) return false;
  return std::any_of(found->second.begin(), found->second.end(),
                     [&](const Version& v) { return range.Contains(v.timestamp); });
}

std::vector<Timestamp> LockTable::Timestamps(const HashedPrefix& cell, const TimestampRange& range) const {
  const Shard& shard = shards_[ShardOf(cell)];
  MutexLock lock(&shard.mutex);
  std::vector<Timestamp> timestamps;
  auto found = shard.cells.find(cell.prefix, cell.hash);
  if (found == shard.cells.end()) return timestamps;
  for (const Version& v : found->second) {
    if (range.Contains(v.timestamp)) timestamps.push_back(v.timestamp);
  }
  return timestamps;
}

void LockTable::Select(const HashedPrefix& cell, const Selector& selector, std::vector<Cell>* out) const {
  PERCOLATOR_DCHECK(selector.column.has_value() && IsOfColumn(cell.prefix, *selector.column));
  const Shard& shard = shards_[ShardOf(cell)];
  if (shard.IsEmpty()) return;
  MutexLock lock(&shard.mutex);
  auto found = shard.cells.find(cell.prefix, cell.hash);
  if (found == shard.cells.end()) return;
  uint32_t taken = 0;
  for (const Version& v : found->second) {
    if (!selector.range.Contains(v.timestamp)) continue;
    out->push_back(Cell{Family::kLock, *selector.column, v.timestamp, v.value});
    if (++taken == selector.newest) break;
  }
}

}  // namespace percolator
