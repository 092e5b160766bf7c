// SPDX-License-Identifier: Apache-2.0

// The steps of an entry, each in one transaction:
//
//   Add       the user's transaction writes it to the journal (journal.h)
//   Number    moves it from the journal to the next number of its shard
//   Deliver   sends it to the outside system, and deletes it
//
//   row q/SHARD           numbered    the largest number given
//                         floor       no entry that started before it waits to be numbered; but see below
//                         delivered   all numbers up to it are delivered
//                         deliver     notify-only
//   row s/SHARD/NUMBER    entry       an ordered string, the key; then the payload
//
// Both observers are weak, so several runs may work on a shard at the same time. All numbering runs write `numbered`,
// all delivering runs write `delivered`: only one of them commits. A delivery whose transaction fails was made
// nevertheless. But a run that delivers a number has seen all earlier ones delivered (`delivered` in its snapshot), or
// delivers them first. So late repetitions are of known numbers.
//
// ORDER  If one transaction starts after another has committed, a run that sees the later one sees the earlier one too;
// and it numbers all that it sees in the order of start timestamps. It reads the journal from `floor` on, to skip the
// remains of entries that were numbered long ago. The floor is the timestamp of a run that has numbered all entries
// that it saw, less `longest_transaction`: below it, only a longer transaction can still appear. That one is found by
// the notification of its own epoch.

#include "percolator/export_queue.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include "percolator/status_macros.h"
#include "src/base/coding.h"
#include "src/base/stable_hash.h"
#include "src/base/strings.h"
#include "src/recipes/journal.h"

namespace percolator {
namespace {

constexpr char kNumberColumn[] = "number";
constexpr char kDeliverColumn[] = "deliver";
constexpr char kNumbered[] = "numbered";
constexpr char kFloor[] = "floor";
constexpr char kDelivered[] = "delivered";
constexpr char kEntry[] = "entry";
constexpr size_t kQueueDigits = 8;
// Numbered entries that are read in one request: they may be large.
constexpr size_t kReadTogether = 16;

std::string ShardRow(uint32_t shard) { return StrCat("q/", Hex(shard)); }
std::string EntryRow(uint32_t shard, uint64_t sequence) { return StrCat("s/", Hex(shard), "/", Hex(sequence)); }

absl::Status MalformedQueue(std::string_view table, std::string_view what) {
  return absl::DataLossError(StrCat("the export queue ", table, " has a malformed or missing cell: ", what));
}

bool ParseNumber(std::string_view text, uint64_t* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

Timestamp Before(Timestamp ts, Duration duration) {
  const auto less = static_cast<uint64_t>(std::max<int64_t>(duration.count(), 0));
  return Timestamp(ts.value() - std::min(less, ts.value()));
}

}  // namespace

class ExportQueue::Impl {
 public:
  Impl(std::string table, const ExportQueueOptions& options)
      : table_(std::move(table)),
        shards_(std::max<uint32_t>(options.shards, 1)),
        batch_(std::max<size_t>(options.batch, 1)),
        longest_transaction_(options.longest_transaction),
        journal_(table_, kNumberColumn) {}

  const std::string& table() const { return table_; }
  const Journal& journal() const { return journal_; }
  uint32_t ShardOf(std::string_view key) const { return static_cast<uint32_t>(StableHash(key) % shards_); }

  // Returns numbers from a shard's row; zero for those that are absent.
  absl::StatusOr<std::vector<uint64_t>> Counts(const ReadView& view, uint32_t shard,
                                               const std::vector<std::string>& columns) const {
    std::vector<CellName> cells;
    for (const std::string& column : columns) cells.push_back({table_, ShardRow(shard), column});
    PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<std::optional<std::string>> values, view.GetCells(cells));
    std::vector<uint64_t> counts(columns.size(), 0);
    for (size_t i = 0; i < columns.size(); ++i) {
      const std::optional<std::string>& value = values[i];
      if (value.has_value() && !ParseNumber(*value, &counts[i])) return MalformedQueue(table_, columns[i]);
    }
    return counts;
  }

  absl::Status Number(ReadWrite& t, const Notification& notification) const {
    PERCOLATOR_ASSIGN_OR_RETURN(const Journal::Epoch epoch, journal_.EpochOf(notification.cell.row));
    const uint32_t shard = epoch.shard;
    PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<uint64_t> counts, Counts(t, shard, {kNumbered, kFloor}));
    uint64_t numbered = counts[0];
    const Timestamp floor(counts[1]);

    PERCOLATOR_ASSIGN_OR_RETURN(Found found, ReadFrom(t, epoch, floor));
    if (found.cells.empty()) return absl::OkStatus();
    for (const JournalCell& cell : found.cells) {
      for (const JournalEntry& entry : cell.entries) {
        std::string value;
        AppendOrderedString(&value, entry.key);
        value.append(entry.payload);
        t.Set({table_, EntryRow(shard, ++numbered), kEntry}, value);
      }
      journal_.Delete(t, shard, cell);
    }
    SetCount(t, shard, kNumbered, numbered);
    const Timestamp new_floor =
        std::max(floor, std::min(found.all_before, Before(t.timestamp(), longest_transaction_)));
    SetCount(t, shard, kFloor, new_floor.value());
    t.Notify({table_, ShardRow(shard), kDeliverColumn});
    if (found.all_before != Timestamp::Infinity()) journal_.Notify(t, epoch);
    return absl::OkStatus();
  }

  absl::Status Deliver(ReadWrite& t, const Notification& notification, const DeliverFunction& deliver) const {
    std::string_view row = notification.cell.row;
    uint64_t number = 0;
    if (!ConsumePrefix(&row, "q/") || !ConsumeHex(&row, kQueueDigits, &number) || !row.empty()) {
      return MalformedQueue(table_, notification.cell.row);
    }
    const auto shard = static_cast<uint32_t>(number);
    PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<uint64_t> counts, Counts(t, shard, {kNumbered, kDelivered}));
    const uint64_t numbered = counts[0];
    const uint64_t delivered = counts[1];
    if (delivered >= numbered) return absl::OkStatus();

    const uint64_t last = std::min<uint64_t>(numbered, delivered + batch_);
    PERCOLATOR_ASSIGN_OR_RETURN(const uint64_t reached, DeliverUpTo(t, shard, delivered, last, deliver));
    SetCount(t, shard, kDelivered, reached);
    if (reached != numbered) t.Notify({table_, ShardRow(shard), kDeliverColumn});
    return absl::OkStatus();
  }

  absl::Status NotifyDelivery(ReadWrite& t) const {
    for (const absl::StatusOr<ScannedRow>& row :
         t.Scan(table_, {.rows = RowRange::Prefix("q/"), .columns = {kNumbered}, .keys_only = true})) {
      if (!row.ok()) return row.status();
      t.Notify({table_, row->key, kDeliverColumn});
    }
    return absl::OkStatus();
  }

 private:
  struct Found {
    std::vector<JournalCell> cells;
    // The entries include all that the transaction sees and that started before this. Infinity: all.
    Timestamp all_before = Timestamp::Infinity();
  };

  // Returns the entries of the notified epoch, and from the floor on, up to a batch.
  absl::StatusOr<Found> ReadFrom(const ReadView& view, const Journal::Epoch& epoch, Timestamp floor) const {
    Found found;
    size_t entries = 0;
    const auto read = [&](TimestampRange range) -> absl::Status {
      if (range.empty() || found.all_before != Timestamp::Infinity()) return absl::OkStatus();
      if (entries >= batch_) {
        found.all_before = range.from;
        return absl::OkStatus();
      }
      PERCOLATOR_ASSIGN_OR_RETURN(JournalPage page, journal_.Read(view, epoch.shard, range, batch_ - entries));
      for (JournalCell& cell : page.cells) {
        entries += cell.entries.size();
        found.cells.push_back(std::move(cell));
      }
      if (page.next.has_value()) found.all_before = *page.next;
      return absl::OkStatus();
    };
    PERCOLATOR_RETURN_IF_ERROR(read({epoch.range.from, std::min(epoch.range.until, floor)}));
    PERCOLATOR_RETURN_IF_ERROR(read(TimestampRange::From(floor)));
    return found;
  }

  // Delivers and deletes the entries with the numbers first + 1 to last. Stops at an error, but keeps the earlier
  // deliveries: otherwise a system that fails once in a batch would never see the end of one. The next run begins with
  // the entry that failed; if that fails again, there is nothing to keep, and the error is returned.
  absl::StatusOr<uint64_t> DeliverUpTo(ReadWrite& t, uint32_t shard, uint64_t first, uint64_t last,
                                       const DeliverFunction& deliver) const {
    uint64_t reached = first;
    while (reached < last) {
      PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<Export> entries,
                                  ReadEntries(t, shard, reached, std::min<uint64_t>(last, reached + kReadTogether)));
      for (const Export& entry : entries) {
        if (absl::Status s = deliver(entry); !s.ok()) {
          if (reached == first) return s;
          return reached;
        }
        t.Delete({table_, EntryRow(shard, entry.sequence), kEntry});
        PERCOLATOR_RETURN_IF_ERROR(t.status());
        reached = entry.sequence;
      }
    }
    return reached;
  }

  // Returns the entries with the numbers first + 1 to last.
  absl::StatusOr<std::vector<Export>> ReadEntries(const ReadView& view, uint32_t shard, uint64_t first,
                                                  uint64_t last) const {
    std::vector<CellName> cells;
    for (uint64_t number = first + 1; number <= last; ++number) {
      cells.push_back({table_, EntryRow(shard, number), kEntry});
    }
    PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<std::optional<std::string>> values, view.GetCells(cells));
    std::vector<Export> entries;
    for (const std::optional<std::string>& value : values) {
      Export entry{.shard = shard, .sequence = first + 1 + entries.size(), .key = {}, .payload = {}};
      std::string_view in = value.has_value() ? std::string_view(*value) : std::string_view();
      if (!ConsumeOrderedString(&in, &entry.key)) return MalformedQueue(table_, EntryRow(shard, entry.sequence));
      entry.payload = std::string(in);
      entries.push_back(std::move(entry));
    }
    return entries;
  }

  void SetCount(ReadWrite& t, uint32_t shard, std::string_view column, uint64_t count) const {
    t.Set({table_, ShardRow(shard), column}, std::to_string(count));
  }

  const std::string table_;
  const uint32_t shards_;
  const size_t batch_;
  const Duration longest_transaction_;
  const Journal journal_;
};

ExportQueue::ExportQueue(std::string table, const ExportQueueOptions& options)
    : impl_(std::make_shared<const Impl>(std::move(table), options)) {}

const std::string& ExportQueue::table() const { return impl_->table(); }

TableSchema ExportQueue::Schema() { return {.notify_only_columns = {kNumberColumn, kDeliverColumn}}; }

void ExportQueue::Attach(Worker& worker, DeliverFunction deliver) const {
  worker.Observe({.name = "number-" + impl_->table(),
                  .table = impl_->table(),
                  .column = kNumberColumn,
                  .kind = NotificationKind::kWeak,
                  .run = [impl = impl_](ReadWrite& t, const Notification& n) { return impl->Number(t, n); }});
  worker.Observe({.name = "deliver-" + impl_->table(),
                  .table = impl_->table(),
                  .column = kDeliverColumn,
                  .kind = NotificationKind::kWeak,
                  .run = [impl = impl_, deliver = std::move(deliver)](
                             ReadWrite& t, const Notification& n) { return impl->Deliver(t, n, deliver); },
                  // The outside system may be unreachable for long: waiting entries must not go to quarantine.
                  .max_attempts = std::numeric_limits<int>::max()});
}

void ExportQueue::Add(ReadWrite& t, std::string_view key, std::string_view payload) const {
  impl_->journal().Append(t, {{impl_->ShardOf(key), std::string(key), std::string(payload)}});
}

void ExportQueue::Add(ReadWrite& t, std::string_view payload) const {
  const absl::StatusOr<Timestamp> start_ts = t.Start();
  if (!start_ts.ok()) return t.Fail(start_ts.status());
  impl_->journal().Append(t, {{impl_->ShardOf(start_ts->ToString()), "", std::string(payload)}});
}

absl::StatusOr<ExportQueue::Progress> ExportQueue::GetProgress(const ReadView& view, uint32_t shard) const {
  const absl::StatusOr<std::vector<uint64_t>> counts = impl_->Counts(view, shard, {kNumbered, kDelivered});
  if (!counts.ok()) return internal::NoteReadError(view, counts.status());
  return Progress{(*counts)[0], (*counts)[1]};
}

uint32_t ExportQueue::GetShard(std::string_view key) const { return impl_->ShardOf(key); }

absl::Status ExportQueue::NotifyAll(ReadWrite& t) const {
  PERCOLATOR_RETURN_IF_ERROR(internal::NoteReadError(t, impl_->journal().NotifyAll(t)));
  return impl_->NotifyDelivery(t);
}

}  // namespace percolator
