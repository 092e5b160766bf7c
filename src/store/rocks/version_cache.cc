// SPDX-License-Identifier: Apache-2.0

#include "src/store/rocks/version_cache.h"

#include <iterator>

namespace percolator {

static_assert(sizeof(size_t) == 8, "ShardOf takes the top six bits of a 64-bit hash");

bool VersionCache::Find(const HashedPrefix& cell, uint64_t changes, const TimestampRange& range, Cell* out) {
  Shard& shard = ShardOf(cell);
  MutexLock lock(&shard.mutex);
  const auto found = shard.index.find(cell.prefix, cell.hash);
  if (found == shard.index.end()) return false;
  Entry& entry = **found;
  if (entry.changes != changes || !range.Contains(entry.timestamp)) return false;
  entry.used = true;
  out->timestamp = entry.timestamp;
  out->value = entry.value();
  return true;
}

void VersionCache::Fill(const HashedPrefix& cell, uint64_t changes, Timestamp ts, std::string_view value) {
  const size_t bytes = cell.prefix.size() + value.size();
  if (BytesFor(bytes) > shard_capacity_) return;
  Shard& shard = ShardOf(cell);
  MutexLock lock(&shard.mutex);
  const auto found = shard.index.find(cell.prefix, cell.hash);
  const bool is_new = found == shard.index.end();
  const auto entry = is_new ? shard.entries.emplace(shard.entries.end()) : *found;
  if (is_new) {
    entry->bytes.reserve(bytes);
    entry->bytes = cell.prefix;
    entry->prefix_bytes = static_cast<uint32_t>(cell.prefix.size());
    shard.index.insert(entry);
  } else {
    shard.bytes -= BytesFor(entry->bytes.size());
    entry->bytes.resize(entry->prefix_bytes);
  }
  entry->bytes.append(value);
  entry->changes = changes;
  entry->timestamp = ts;
  shard.bytes += BytesFor(bytes);
  MakeRoom(&shard);
}

size_t VersionCache::bytes() const {
  size_t bytes = 0;
  for (const Shard& shard : shards_) {
    MutexLock lock(&shard.mutex);
    bytes += shard.bytes;
  }
  return bytes;
}

void VersionCache::MakeRoom(Shard* shard) const {
  while (shard->bytes > shard_capacity_) {
    const auto first = shard->entries.begin();
    if (first->used) {
      first->used = false;
      shard->entries.splice(shard->entries.end(), shard->entries, first);
    } else {
      shard->bytes -= BytesFor(first->bytes.size());
      shard->index.erase(first);
      shard->entries.erase(first);
    }
  }
}

}  // namespace percolator
