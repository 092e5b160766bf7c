// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "percolator/status_macros.h"
#include "src/base/check.h"
#include "src/store/rocks/rocks_store.h"
#include "src/store/validate.h"

namespace percolator {
namespace {

// At most this many row mutations share a write: enough to make each cheap, few enough not to hold too many latches for
// too long.
constexpr size_t kGroupRows = 1024;
constexpr size_t kGroupBytes = 8 << 20;

bool IsExact(const TimestampRange& range) { return !range.empty() && range.from.Next() == range.until; }

bool ErasesRanges(const RowMutation& mutation) {
  return std::any_of(mutation.mutations.begin(), mutation.mutations.end(),
                     [](const Mutation& m) { return m.kind == Mutation::Kind::kErase && !IsExact(m.range); });
}

// Returns about the bytes that it takes in a batch.
size_t BytesIn(const RowMutation& mutation) {
  constexpr size_t kMore = 32;  // table, timestamp, ends of strings, lengths
  size_t bytes = 0;
  for (const Mutation& m : mutation.mutations) bytes += mutation.row.size() + m.column.size() + m.value.size() + kMore;
  return bytes;
}

// The versions that a row mutation has set so far: a later erase of a range in it removes them too.
using SetSoFar = std::map<std::pair<Family, std::string>, std::set<Timestamp>>;

}  // namespace

std::vector<absl::StatusOr<MutateResult>> RocksStore::Mutate(const std::vector<RowMutation>& mutations) {
  std::vector<absl::StatusOr<MutateResult>> results(mutations.size(), MutateResult::kConditionFailed);
  Entries entries;
  entries.reserve(mutations.size());
  for (size_t i = 0; i < mutations.size(); ++i) {
    absl::Status status = MayUse();
    if (status.ok()) status = ValidateMutation(mutations[i], options_.limits);
    if (status.ok()) status = AddEntry(mutations[i], &entries);
    if (status.ok()) {
      entries.back().result = &results[i];
    } else {
      results[i] = status;
    }
  }
  // Rows of a group are distinct: a repeated row begins a new group, and sees what the last group did.
  absl::flat_hash_set<std::string_view, StringHash> rows;
  size_t begin = 0;
  size_t bytes = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    const bool repeated = entries.size() > 1 && !rows.insert(entries[i].keys.row_prefix()).second;
    if (i - begin == kGroupRows || bytes >= kGroupBytes || repeated) {
      ApplyGroup(absl::MakeSpan(entries).subspan(begin, i - begin), bytes);
      begin = i;
      bytes = 0;
      rows.clear();
      rows.insert(entries[i].keys.row_prefix());
    }
    bytes += BytesIn(*entries[i].mutation);
  }
  if (begin < entries.size()) ApplyGroup(absl::MakeSpan(entries).subspan(begin), bytes);
  return results;
}

absl::Status RocksStore::AddEntry(const RowMutation& mutation, Entries* entries) const {
  const absl::StatusOr<Table*> table = FindTable(mutation.table);
  if (table.ok()) entries->emplace_back(mutation, **table);
  return table.status();
}

// The atomic step (T15): from the latches on, no other thread changes these rows; all changes go into one batch, which
// RocksDB writes whole or not at all.
void RocksStore::ApplyGroup(absl::Span<Entry> group, size_t bytes) {
  if (group.size() == 1) {  // as results stand at kConditionFailed, there is nothing left to do
    PointReader reader(&pools_);
    if (FailsAlready(&group.front(), &reader)) return;
  }
  LatchTable::Stripes stripes;
  stripes.reserve(group.size());
  for (const Entry& entry : group) stripes.push_back(entry.stripe);
  LatchTable::Guard latches(&latches_, std::move(stripes));

  PointReader reader(&pools_);
  rocksdb::WriteBatch batch(bytes);
  const absl::Status may_write = MayWrite();
  for (Entry& entry : group) {
    absl::Status may_apply = may_write;
    if (may_apply.ok() && SpaceGuard::OnlyAdds(*entry.mutation)) may_apply = space_->Take(BytesIn(*entry.mutation));
    const absl::StatusOr<bool> holds = may_apply.ok() ? Holds(&entry, &reader) : may_apply;
    if (!holds.ok()) {
      *entry.result = holds.status();
    } else if (*holds) {
      const absl::Status staged = Stage(absl::MakeSpan(&entry, 1), Timestamp(), &reader, &batch);
      *entry.result = staged.ok() ? absl::StatusOr<MutateResult>(MutateResult::kApplied) : staged;
      entry.staged = staged.ok();
    }
  }
  if (batch.Count() == 0) return;

  latches.BeginWrite();
  const absl::Status written = Write(&batch, options_.durability == Durability::kSync);
  for (Entry& entry : group) {
    if (!entry.staged) continue;
    if (written.ok()) {
      UpdateMemory(&entry, Timestamp());
    } else {
      *entry.result = written;
    }
  }
  latches.EndWrite();
}

absl::StatusOr<bool> RocksStore::Holds(Entry* entry, PointReader* reader) const {
  if (entry->table->dropped) return UnknownTable(entry->mutation->table);
  PERCOLATOR_RETURN_IF_ERROR(CheckSafePoint(*entry->mutation, catalog_.safe_point()));
  const Condition& condition = entry->mutation->condition;
  if (condition.cells.empty()) return true;
  // One cell decides as soon as it exists (none, any) or does not exist (all).
  const bool decisive = condition.quantifier != Condition::Quantifier::kAll;
  for (const CellRange& cell : condition.cells) {
    PERCOLATOR_ASSIGN_OR_RETURN(const bool exists, Exists(cell, &entry->keys, reader));
    if (exists == decisive) return condition.quantifier == Condition::Quantifier::kAny;
  }
  return condition.quantifier != Condition::Quantifier::kAny;
}

// Returns true if the row's latch is held by another writer and the condition does not hold: then there is no need to wait.
// Without the latch the cells are not looked at in one moment. For kNone that is enough, because one cell decides.
bool RocksStore::FailsAlready(Entry* entry, PointReader* reader) const {
  if (!latches_.IsHeld(entry->stripe)) return false;
  if (entry->mutation->condition.quantifier != Condition::Quantifier::kNone) return false;
  const absl::StatusOr<bool> holds = Holds(entry, reader);
  return holds.ok() && !*holds;
}

absl::StatusOr<bool> RocksStore::Exists(const CellRange& cell, RowKeys* keys, PointReader* reader) const {
  const HashedPrefix hashed = keys->GoTo(cell.column);
  if (cell.family == Family::kLock) return locks_.Exists(hashed, cell.range);
  if (!sketch_->MayHaveFrom(cell.family, hashed, cell.range.from)) return false;
  bool exists = false;
  absl::Status status =
      reader->VisitVersions(cell.family, keys, cell.range, [&](Timestamp /*ts*/, std::string_view /*value*/) {
        exists = true;
        return false;
      });
  if (!status.ok()) return status;
  return exists;
}

// Puts the mutations of the rows into the batch, those at JointMutation::AtCommit() at `at_commit`. After an error, the
// batch has none of them.
absl::Status RocksStore::Stage(absl::Span<Entry> rows, Timestamp at_commit, PointReader* reader,
                               rocksdb::WriteBatch* batch) {
  // Erasing a range takes a read, which may fail.
  const bool may_fail = std::any_of(rows.begin(), rows.end(), [](const Entry& e) { return ErasesRanges(*e.mutation); });
  if (may_fail) batch->SetSavePoint();
  for (Entry& row : rows) {
    if (absl::Status s = StageRow(&row, at_commit, reader, batch); !s.ok()) {
      batch->RollbackToSavePoint();
      return s;
    }
  }
  if (may_fail) batch->PopSavePoint();
  return absl::OkStatus();
}

absl::Status RocksStore::StageRow(Entry* entry, Timestamp at_commit, PointReader* reader, rocksdb::WriteBatch* batch) {
  const bool erases_ranges = ErasesRanges(*entry->mutation);
  RowKeys& keys = entry->keys;
  SetSoFar set_so_far;
  for (const Mutation& m : entry->mutation->mutations) {
    const HashedPrefix cell = keys.GoTo(m.column);
    rocksdb::ColumnFamilyHandle* cf = family(m.family);
    if (m.kind == Mutation::Kind::kSet) {
      const Timestamp ts = TimestampOfSet(m, at_commit);
      sketch_->Raise(m.family, cell, ts);
      batch->Put(cf, keys.At(ts), m.value);
      if (erases_ranges) set_so_far[{m.family, m.column}].insert(ts);
    } else if (IsExact(m.range)) {
      batch->Delete(cf, keys.At(m.range.from));
    } else {
      PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<Timestamp> versions, VersionsInRange(m, &keys, reader));
      for (const Timestamp ts : versions) batch->Delete(cf, keys.At(ts));
      for (const Timestamp ts : set_so_far[{m.family, m.column}]) {
        if (m.range.Contains(ts)) batch->Delete(cf, keys.At(ts));
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Timestamp>> RocksStore::VersionsInRange(const Mutation& erase, RowKeys* keys,
                                                                   PointReader* reader) const {
  if (erase.family == Family::kLock) return locks_.Timestamps(keys->GoTo(erase.column), erase.range);
  std::vector<Timestamp> versions;
  absl::Status status =
      reader->VisitVersions(erase.family, keys, erase.range, [&](Timestamp ts, std::string_view /*value*/) {
        versions.push_back(ts);
        return true;
      });
  if (!status.ok()) return status;
  return versions;
}

void RocksStore::UpdateMemory(Entry* entry, Timestamp at_commit) {
  PERCOLATOR_DCHECK(!LatchTable::IsQuiet(latches_.Count(entry->stripe)));
  for (const Mutation& m : entry->mutation->mutations) {
    const HashedPrefix cell = entry->keys.GoTo(m.column);
    if (m.family == Family::kWrite) sketch_->CountChange(m.family, cell);
    if (m.family != Family::kLock) continue;
    if (m.kind == Mutation::Kind::kSet) {
      locks_.Set(cell, TimestampOfSet(m, at_commit), m.value);
    } else {
      locks_.Erase(cell, m.range);
    }
  }
}

}  // namespace percolator
