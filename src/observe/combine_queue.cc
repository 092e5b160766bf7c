// Folding is done by a weak observer, of which several may run at once over the same deltas. What keeps a delta from being
// counted twice is not the worker but the transaction: each run deletes what it folds, so of two that fold the same delta
// one is in conflict; and each run that changes a value writes it, so of two that change the same value one is, too.

#include "percolator/combine_queue.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "src/base/stable_hash.h"
#include "src/base/strings.h"
#include "src/observe/journal.h"

namespace percolator {
namespace {

constexpr char kFold[] = "fold";
constexpr char kValuePrefix[] = "v/";

absl::StatusOr<int64_t> NumberOf(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    return absl::InvalidArgumentError(StrCat("\"", text, "\" is no whole number of 64 bits"));
  }
  return number;
}

}  // namespace

absl::StatusOr<std::string> AddDecimals(std::string_view a, std::string_view b) {
  const absl::StatusOr<int64_t> first = NumberOf(a);
  if (!first.ok()) return first.status();
  const absl::StatusOr<int64_t> second = NumberOf(b);
  if (!second.ok()) return second.status();
  int64_t sum = 0;
  if (__builtin_add_overflow(*first, *second, &sum)) {
    return absl::OutOfRangeError(StrCat(a, " + ", b, " does not fit into 64 bits"));
  }
  return std::to_string(sum);
}

class CombineQueue::Impl {
 public:
  Impl(std::string table, CombineFunction combine, CombineQueueOptions options)
      : table_(std::move(table)),
        combine_(std::move(combine)),
        options_(std::move(options)),
        buckets_(std::max<uint32_t>(options_.buckets, 1)),
        journal_(table_, kFold) {}

  const std::string& table() const { return table_; }
  const Journal& journal() const { return journal_; }

  uint32_t BucketOf(std::string_view key) const { return static_cast<uint32_t>(StableHash(key) % buckets_); }

  bool IsNeutral(const std::string& value) const { return options_.neutral.has_value() && value == *options_.neutral; }

  absl::Status CombineInto(std::optional<std::string>* value, std::string_view delta) const {
    // Combined with the neutral one, where there is one, so that the function sees every delta: what is none must not
    // become a value.
    if (!value->has_value()) *value = options_.neutral;
    if (!value->has_value()) {
      *value = std::string(delta);
      return absl::OkStatus();
    }
    absl::StatusOr<std::string> combined = combine_(**value, delta);
    if (!combined.ok()) return combined.status();
    *value = *std::move(combined);
    return absl::OkStatus();
  }

  // The observer: folds what is in an epoch of a bucket.
  absl::Status Fold(ReadWrite& t, const Notification& notification) const {
    const absl::StatusOr<Journal::Epoch> epoch = journal_.EpochOf(notification.cell.row);
    if (!epoch.ok()) return epoch.status();
    const absl::StatusOr<JournalPage> page =
        journal_.Read(t, epoch->shard, epoch->range, std::max<size_t>(options_.batch, 1));
    if (!page.ok()) return page.status();
    std::map<std::string, std::optional<std::string>> sums;
    for (const JournalCell& cell : page->cells) {
      for (const JournalEntry& entry : cell.entries) {
        if (absl::Status s = CombineInto(&sums[entry.key], entry.payload); !s.ok()) return s;
      }
      if (absl::Status s = journal_.Delete(t, epoch->shard, cell); !s.ok()) return s;
    }
    if (absl::Status s = AddToValues(t, sums); !s.ok()) return s;
    return page->next.has_value() ? journal_.Notify(t, *epoch) : absl::OkStatus();
  }

 private:
  absl::Status AddToValues(ReadWrite& t, const std::map<std::string, std::optional<std::string>>& sums) const {
    std::vector<CellName> cells;
    for (const auto& [key, sum] : sums) cells.push_back({table_, ValueRow(key), std::string(kValueColumn)});
    absl::StatusOr<std::vector<std::optional<std::string>>> values = t.Get(cells);
    if (!values.ok()) return values.status();
    size_t i = 0;
    for (const auto& [key, sum] : sums) {
      const CellName& cell = cells[i];
      std::optional<std::string>& value = (*values)[i++];
      const bool existed = value.has_value();
      if (absl::Status s = CombineInto(&value, *sum); !s.ok()) return s;
      absl::Status written;
      if (!IsNeutral(*value)) {
        written = t.Set(cell.table, cell.row, cell.column, *value);
      } else if (existed) {
        written = t.Delete(cell.table, cell.row, cell.column);
      }
      if (!written.ok()) return written;
    }
    return absl::OkStatus();
  }

  const std::string table_;
  const CombineFunction combine_;
  const CombineQueueOptions options_;
  const uint32_t buckets_;
  const Journal journal_;
};

CombineQueue::CombineQueue(std::string table, CombineFunction combine, CombineQueueOptions options)
    : impl_(std::make_shared<const Impl>(std::move(table), std::move(combine), std::move(options))) {}

TableSchema CombineQueue::Schema() { return {.notify_only_columns = {kFold}}; }

ObserverSpec CombineQueue::Observer() const {
  return {
      .name = "fold-" + impl_->table(),
      .table = impl_->table(),
      .column = kFold,
      .kind = NotificationKind::kWeak,
      .run = [impl = impl_](ReadWrite& t, const Notification& notification) { return impl->Fold(t, notification); }};
}

absl::Status CombineQueue::Add(ReadWrite& t, std::string_view key, std::string_view delta) const {
  return impl_->journal().Append(t, {{impl_->BucketOf(key), std::string(key), std::string(delta)}});
}

absl::Status CombineQueue::Add(ReadWrite& t, const std::map<std::string, std::string>& deltas) const {
  std::vector<JournalEntry> entries;
  entries.reserve(deltas.size());
  for (const auto& [key, delta] : deltas) entries.push_back({impl_->BucketOf(key), key, delta});
  return impl_->journal().Append(t, entries);
}

absl::StatusOr<std::optional<std::string>> CombineQueue::Get(ReadView& view, std::string_view key) const {
  return view.Get(impl_->table(), ValueRow(key), kValueColumn);
}

absl::StatusOr<std::optional<std::string>> CombineQueue::GetExact(ReadView& view, std::string_view key) const {
  absl::StatusOr<std::optional<std::string>> value = Get(view, key);
  if (!value.ok()) return value.status();
  TimestampRange rest = TimestampRange::All();
  for (bool more = true; more;) {
    const absl::StatusOr<JournalPage> page = impl_->journal().Read(view, impl_->BucketOf(key), rest, SIZE_MAX);
    if (!page.ok()) return page.status();
    for (const JournalCell& cell : page->cells) {
      for (const JournalEntry& entry : cell.entries) {
        if (entry.key != key) continue;
        if (absl::Status s = impl_->CombineInto(&*value, entry.payload); !s.ok()) return s;
      }
    }
    more = page->next.has_value();
    if (more) rest.from = *page->next;
  }
  if (value->has_value() && impl_->IsNeutral(**value)) value->reset();
  return value;
}

absl::Status CombineQueue::ForEach(ReadView& view,
                                   const std::function<void(std::string_view key, std::string_view value)>& fn) const {
  const std::unique_ptr<RowIterator> rows = view.Scan(
      {.table = impl_->table(), .rows = RowRange::Prefix(kValuePrefix), .columns = {std::string(kValueColumn)}});
  while (rows->Next()) {
    std::string_view key = rows->row().key;
    ConsumePrefix(&key, kValuePrefix);
    fn(key, rows->row().columns[0].value);
  }
  return rows->status();
}

absl::Status CombineQueue::NotifyAll(ReadWrite& t) const { return impl_->journal().NotifyAll(t); }

std::string CombineQueue::ValueRow(std::string_view key) { return StrCat(kValuePrefix, key); }

std::string_view CombineQueue::KeyOf(std::string_view value_row) {
  return value_row.substr(std::string_view(kValuePrefix).size());
}

}  // namespace percolator
