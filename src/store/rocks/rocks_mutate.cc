#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "src/store/rocks/rocks_store.h"
#include "src/store/validate.h"

namespace percolator {
namespace {

// So many row mutations share a write at most: enough to make one write cheap for each, few enough not to
// hold too many latches for too long.
constexpr size_t kGroupRows = 1024;
constexpr size_t kGroupBytes = 8 << 20;

bool IsExact(const TimestampRange& range) { return !range.empty() && range.from.Next() == range.until; }

bool ErasesRanges(const RowMutation& mutation) {
  return std::any_of(mutation.mutations.begin(), mutation.mutations.end(),
                     [](const Mutation& m) { return m.kind == Mutation::Kind::kErase && !IsExact(m.range); });
}

size_t BytesIn(const RowMutation& mutation) {
  size_t bytes = 0;
  for (const Mutation& m : mutation.mutations) bytes += m.column.size() + m.value.size();
  return bytes;
}

// The versions that a row mutation has set so far: a range erase later in it removes them too.
using SetSoFar = std::map<std::pair<Family, std::string>, std::set<Timestamp>>;

}  // namespace

struct RocksStore::Entry {
  const RowMutation* mutation;
  const Table* table;
  std::string row_prefix;
  absl::StatusOr<MutateResult>* result;
};

std::vector<absl::StatusOr<MutateResult>> RocksStore::Mutate(const std::vector<RowMutation>& mutations) {
  std::vector<absl::StatusOr<MutateResult>> results(mutations.size(), MutateResult::kConditionFailed);
  std::vector<Entry> entries;
  entries.reserve(mutations.size());
  for (size_t i = 0; i < mutations.size(); ++i) {
    absl::StatusOr<Entry> entry = Admit(mutations[i], &results[i]);
    if (entry.ok()) {
      entries.push_back(*std::move(entry));
    } else {
      results[i] = entry.status();
    }
  }
  // Rows of a group are distinct: a row that comes again begins a new group, and sees what the last one did.
  absl::flat_hash_set<std::string_view, StringHash> rows;
  std::vector<Entry*> group;
  size_t bytes = 0;
  for (Entry& entry : entries) {
    if (group.size() == kGroupRows || bytes >= kGroupBytes || !rows.insert(entry.row_prefix).second) {
      ApplyGroup(group);
      group.clear();
      bytes = 0;
      rows.clear();
      rows.insert(entry.row_prefix);
    }
    group.push_back(&entry);
    bytes += BytesIn(*entry.mutation);
  }
  if (!group.empty()) ApplyGroup(group);
  return results;
}

absl::StatusOr<RocksStore::Entry> RocksStore::Admit(const RowMutation& mutation,
                                                    absl::StatusOr<MutateResult>* result) const {
  if (closed_) return StoreClosed();
  if (absl::Status s = ValidateMutation(mutation, options_.limits); !s.ok()) return s;
  absl::StatusOr<Table*> table = FindTable(mutation.table);
  if (!table.ok()) return table.status();
  return Entry{&mutation, *table, RowPrefix((*table)->id, mutation.row), result};
}

// The atomic step (T15): from the latches on, nobody else changes these rows; all that is applied goes into
// one batch, which RocksDB writes whole or not at all.
void RocksStore::ApplyGroup(const std::vector<Entry*>& group) {
  std::vector<uint32_t> stripes;
  stripes.reserve(group.size());
  for (const Entry* entry : group) stripes.push_back(LatchTable::StripeOf(entry->row_prefix));
  LatchTable::Guard latches(&latches_, std::move(stripes));

  PointReader reader(&pools_);
  rocksdb::WriteBatch batch;
  std::vector<Entry*> applied;
  const absl::Status may_write = MayWrite();
  for (Entry* entry : group) {
    const absl::StatusOr<bool> holds = may_write.ok() ? Holds(*entry, &reader) : may_write;
    if (!holds.ok()) {
      *entry->result = holds.status();
    } else if (*holds) {
      const absl::Status staged = Stage(*entry, &reader, &batch);
      *entry->result = staged.ok() ? absl::StatusOr<MutateResult>(MutateResult::kApplied) : staged;
      if (staged.ok()) applied.push_back(entry);
    }
  }
  if (batch.Count() == 0) return;

  latches.BeginWrite();
  const absl::Status written = Write(&batch, options_.durability == Durability::kSync);
  for (Entry* entry : applied) {
    if (written.ok()) {
      UpdateLocks(*entry);
    } else {
      *entry->result = written;
    }
  }
  latches.EndWrite();
}

absl::StatusOr<bool> RocksStore::Holds(const Entry& entry, PointReader* reader) const {
  if (entry.table->dropped) return UnknownTable(entry.mutation->table);
  const Condition& condition = entry.mutation->condition;
  if (condition.cells.empty()) return true;
  CellPrefixes prefixes(entry.row_prefix);
  // One cell decides as soon as it exists (none, any) or does not (all).
  const bool decisive = condition.quantifier != Condition::Quantifier::kAll;
  for (const CellRange& cell : condition.cells) {
    const absl::StatusOr<bool> exists = Exists(prefixes.Of(cell.column), cell, reader);
    if (!exists.ok()) return exists.status();
    if (*exists == decisive) return condition.quantifier == Condition::Quantifier::kAny;
  }
  return condition.quantifier != Condition::Quantifier::kAny;
}

absl::StatusOr<bool> RocksStore::Exists(std::string_view cell_prefix, const CellRange& cell,
                                        PointReader* reader) const {
  if (cell.family == Family::kLock) return locks_.Exists(cell_prefix, cell.range);
  if (!sketch_->MayHaveFrom(cell.family, cell_prefix, cell.range.from)) return false;
  bool exists = false;
  absl::Status status =
      reader->VisitVersions(cell.family, cell_prefix, cell.range, [&](Timestamp /*ts*/, std::string_view /*value*/) {
        exists = true;
        return false;
      });
  if (!status.ok()) return status;
  return exists;
}

// Puts the row's mutations into the batch; on an error, none of them.
absl::Status RocksStore::Stage(const Entry& entry, PointReader* reader, rocksdb::WriteBatch* batch) {
  const bool erases_ranges = ErasesRanges(*entry.mutation);
  if (erases_ranges) batch->SetSavePoint();
  CellPrefixes prefixes(entry.row_prefix);
  SetSoFar set_so_far;
  for (const Mutation& m : entry.mutation->mutations) {
    const std::string& cell_prefix = prefixes.Of(m.column);
    rocksdb::ColumnFamilyHandle* cf = family(m.family);
    if (m.kind == Mutation::Kind::kSet) {
      sketch_->Raise(m.family, cell_prefix, m.range.from);
      batch->Put(cf, CellKey(cell_prefix, m.range.from), m.value);
      if (erases_ranges) set_so_far[{m.family, m.column}].insert(m.range.from);
    } else if (IsExact(m.range)) {
      batch->Delete(cf, CellKey(cell_prefix, m.range.from));
    } else {
      const absl::StatusOr<std::vector<Timestamp>> versions = VersionsInRange(cell_prefix, m, reader);
      if (!versions.ok()) {
        batch->RollbackToSavePoint();
        return versions.status();
      }
      for (const Timestamp ts : *versions) batch->Delete(cf, CellKey(cell_prefix, ts));
      for (const Timestamp ts : set_so_far[{m.family, m.column}]) {
        if (m.range.Contains(ts)) batch->Delete(cf, CellKey(cell_prefix, ts));
      }
    }
  }
  if (erases_ranges) batch->PopSavePoint();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Timestamp>> RocksStore::VersionsInRange(std::string_view cell_prefix, const Mutation& erase,
                                                                   PointReader* reader) const {
  if (erase.family == Family::kLock) return locks_.Timestamps(cell_prefix, erase.range);
  std::vector<Timestamp> versions;
  absl::Status status =
      reader->VisitVersions(erase.family, cell_prefix, erase.range, [&](Timestamp ts, std::string_view /*value*/) {
        versions.push_back(ts);
        return true;
      });
  if (!status.ok()) return status;
  return versions;
}

void RocksStore::UpdateLocks(const Entry& entry) {
  CellPrefixes prefixes(entry.row_prefix);
  for (const Mutation& m : entry.mutation->mutations) {
    if (m.family != Family::kLock) continue;
    if (m.kind == Mutation::Kind::kSet) {
      locks_.Set(prefixes.Of(m.column), m.range.from, m.value);
    } else {
      locks_.Erase(prefixes.Of(m.column), m.range);
    }
  }
}

}  // namespace percolator
