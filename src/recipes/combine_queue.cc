// SPDX-License-Identifier: Apache-2.0

// A weak observer folds deltas, and several of its runs may fold the same deltas at the same time. The transactions
// prevent that a delta is counted twice: each run deletes the deltas that it folds, so one of two runs that fold the
// same delta conflicts; and each run that changes a value writes it, so one of two runs that change the same value
// conflicts, too.

#include "percolator/combine_queue.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "percolator/status_macros.h"
#include "src/base/stable_hash.h"
#include "src/base/strings.h"
#include "src/recipes/journal.h"

namespace percolator {
namespace {

constexpr char kFold[] = "fold";
constexpr char kValueColumn[] = "value";
constexpr char kValuePrefix[] = "v/";

std::string ValueRow(std::string_view key) { return StrCat(kValuePrefix, key); }

std::string_view KeyOf(std::string_view value_row) { return value_row.substr(std::string_view(kValuePrefix).size()); }

}  // namespace

absl::StatusOr<int64_t> Sum(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) {
    return absl::InvalidArgumentError(StrCat(a, " + ", b, " does not fit into 64 bits"));
  }
  return sum;
}

namespace internal {

class RawCombineQueue::Impl {
 public:
  Impl(std::string table, Combine combine, std::optional<std::string> neutral, const CombineQueueOptions& options)
      : table_(std::move(table)),
        combine_(std::move(combine)),
        neutral_(std::move(neutral)),
        batch_(std::max<size_t>(options.batch, 1)),
        buckets_(std::max<uint32_t>(options.buckets, 1)),
        journal_(table_, kFold) {}

  const std::string& table() const { return table_; }
  const Journal& journal() const { return journal_; }

  uint32_t BucketOf(std::string_view key) const { return static_cast<uint32_t>(StableHash(key) % buckets_); }

  // A value that is equal to the neutral one is deleted.
  bool IsNeutral(const std::string& value) const { return neutral_.has_value() && value == *neutral_; }

  // Returns the error of the user's function, with the queue and the key.
  absl::Status AtKey(std::string_view key, const absl::Status& status) const {
    return absl::Status(status.code(), StrCat("combine queue ", table_, ", key ", Quoted(key), ": ", status.message()));
  }

  // Without a value, combines with the neutral one, so that the function sees every delta: bytes that it refuses must
  // not become a value.
  absl::Status CombineInto(std::string_view key, std::optional<std::string>* value, std::string_view delta) const {
    if (!value->has_value() && !neutral_.has_value()) {
      *value = std::string(delta);
      return absl::OkStatus();
    }
    absl::StatusOr<std::string> combined = combine_(value->has_value() ? **value : *neutral_, delta);
    if (!combined.ok()) return AtKey(key, combined.status());
    *value = *std::move(combined);
    return absl::OkStatus();
  }

  // The observer: folds the deltas of an epoch of a bucket.
  absl::Status Fold(ReadWrite& t, const Notification& notification) const {
    PERCOLATOR_ASSIGN_OR_RETURN(const Journal::Epoch epoch, journal_.EpochOf(notification.cell.row));
    PERCOLATOR_ASSIGN_OR_RETURN(const JournalPage page, journal_.Read(t, epoch.shard, epoch.range, batch_));
    std::map<std::string, std::optional<std::string>> sums;
    for (const JournalCell& cell : page.cells) {
      for (const JournalEntry& entry : cell.entries) {
        PERCOLATOR_RETURN_IF_ERROR(CombineInto(entry.key, &sums[entry.key], entry.payload));
      }
      journal_.Delete(t, epoch.shard, cell);
    }
    PERCOLATOR_RETURN_IF_ERROR(AddToValues(t, sums));
    if (page.next.has_value()) journal_.Notify(t, epoch);
    return absl::OkStatus();
  }

  // Returns the value with the deltas that are not folded yet.
  absl::StatusOr<std::optional<std::string>> GetExact(const ReadView& view, std::string_view key) const {
    PERCOLATOR_ASSIGN_OR_RETURN(std::optional<std::string> value, view.Get({table_, ValueRow(key), kValueColumn}));
    TimestampRange rest = TimestampRange::All();
    for (bool more = true; more;) {
      PERCOLATOR_ASSIGN_OR_RETURN(const JournalPage page, journal_.Read(view, BucketOf(key), rest, SIZE_MAX));
      for (const JournalCell& cell : page.cells) {
        for (const JournalEntry& entry : cell.entries) {
          if (entry.key != key) continue;
          PERCOLATOR_RETURN_IF_ERROR(CombineInto(key, &value, entry.payload));
        }
      }
      more = page.next.has_value();
      if (more) rest.from = *page.next;
    }
    if (value.has_value() && IsNeutral(*value)) value.reset();
    return value;
  }

 private:
  absl::Status AddToValues(ReadWrite& t, const std::map<std::string, std::optional<std::string>>& sums) const {
    std::vector<CellName> cells;
    for (const auto& [key, sum] : sums) cells.push_back({table_, ValueRow(key), kValueColumn});
    PERCOLATOR_ASSIGN_OR_RETURN(std::vector<std::optional<std::string>> values, t.GetCells(cells));
    size_t i = 0;
    for (const auto& [key, sum] : sums) {
      const CellName& cell = cells[i];
      std::optional<std::string>& value = values[i++];
      const bool existed = value.has_value();
      PERCOLATOR_RETURN_IF_ERROR(CombineInto(key, &value, *sum));
      if (!IsNeutral(*value)) {
        t.Set(cell, *value);
      } else if (existed) {
        t.Delete(cell);
      }
    }
    return absl::OkStatus();
  }

  const std::string table_;
  const Combine combine_;
  const std::optional<std::string> neutral_;
  const size_t batch_;
  const uint32_t buckets_;
  const Journal journal_;
};

RawCombineQueue::RawCombineQueue(std::string table, Combine combine, std::optional<std::string> neutral,
                                 const CombineQueueOptions& options)
    : impl_(std::make_shared<const Impl>(std::move(table), std::move(combine), std::move(neutral), options)) {}

const std::string& RawCombineQueue::table() const { return impl_->table(); }

TableSchema RawCombineQueue::Schema() { return {.notify_only_columns = {kFold}}; }

void RawCombineQueue::Attach(Worker& worker) const {
  worker.Observe({.name = "fold-" + impl_->table(),
                  .table = impl_->table(),
                  .column = kFold,
                  .kind = NotificationKind::kWeak,
                  .run = [impl = impl_](ReadWrite& t, const Notification& n) { return impl->Fold(t, n); }});
}

void RawCombineQueue::Observe(Worker& worker, std::string name, ObserverFunction fn,
                              const ObserverOptions& options) const {
  ObserverFunction with_key;  // stays empty if `fn` is, which Start refuses
  if (!(fn == nullptr)) {
    with_key = [fn = std::move(fn)](ReadWrite& t, const Notification& n) {
      return fn(t, {{n.cell.table, std::string(KeyOf(n.cell.row)), n.cell.column}, n.commit_ts});
    };
  }
  worker.Observe({.name = std::move(name),
                  .table = impl_->table(),
                  .column = kValueColumn,
                  .run = with_key,
                  .max_concurrency = options.max_concurrency,
                  .max_attempts = options.max_attempts});
}

void RawCombineQueue::Add(ReadWrite& t, const std::map<std::string, std::string>& deltas) const {
  std::vector<JournalEntry> entries;
  entries.reserve(deltas.size());
  for (const auto& [key, delta] : deltas) entries.push_back({impl_->BucketOf(key), key, delta});
  impl_->journal().Append(t, entries);
}

absl::StatusOr<std::optional<std::string>> RawCombineQueue::Get(const ReadView& view, std::string_view key) const {
  return view.Get({impl_->table(), ValueRow(key), kValueColumn});
}

absl::StatusOr<std::vector<std::optional<std::string>>> RawCombineQueue::Get(const ReadView& view,
                                                                             absl::Span<const std::string> keys) const {
  std::vector<CellName> cells;
  cells.reserve(keys.size());
  for (const std::string& key : keys) cells.push_back({impl_->table(), ValueRow(key), kValueColumn});
  return view.GetCells(cells);
}

absl::StatusOr<std::optional<std::string>> RawCombineQueue::GetExact(const ReadView& view, std::string_view key) const {
  absl::StatusOr<std::optional<std::string>> value = impl_->GetExact(view, key);
  if (!value.ok()) return NoteReadError(view, std::move(value).status());
  return value;
}

absl::Status RawCombineQueue::ForEach(
    const ReadView& view, absl::FunctionRef<absl::Status(std::string_view key, std::string_view value)> fn) const {
  for (const absl::StatusOr<ScannedRow>& row :
       view.Scan(impl_->table(), {.rows = RowRange::Prefix(kValuePrefix), .columns = {kValueColumn}})) {
    if (!row.ok()) return row.status();
    absl::Status status = fn(KeyOf(row->key), row->columns[0].value);
    if (!status.ok()) return NoteReadError(view, std::move(status));
  }
  return absl::OkStatus();
}

absl::Status RawCombineQueue::NotifyAll(ReadWrite& t) const { return NoteReadError(t, impl_->journal().NotifyAll(t)); }

absl::Status RawCombineQueue::NotAValue(std::string_view bytes) {
  return absl::DataLossError(StrCat("not a value of the queue's type: ", Quoted(bytes)));
}

}  // namespace internal
}  // namespace percolator
