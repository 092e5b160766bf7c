// SPDX-License-Identifier: Apache-2.0

#include "src/recipes/journal.h"

#include <charconv>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/escaping.h"
#include "src/base/coding.h"
#include "src/base/strings.h"

namespace percolator {
namespace {

constexpr char kEntries[] = "entries";
constexpr char kVersion = 1;
constexpr int kEpochBits = 20;
constexpr size_t kShardDigits = 8;
constexpr size_t kTimestampDigits = 16;
// One transaction takes this many bytes of a journal at most, plus the cell that exceeds it.
constexpr size_t kPageBytes = 4 << 20;

std::string HexOf(uint64_t number, size_t digits) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text(digits, '0');
  for (size_t i = digits; i-- > 0; number >>= 4) text[i] = kDigits[number & 15];
  return text;
}

std::string ShardPrefix(uint32_t shard) { return StrCat("j/", Hex(shard), "/"); }
std::string CellRow(uint32_t shard, Timestamp start_ts) { return ShardPrefix(shard) + Hex(start_ts.value()); }

Journal::Epoch EpochAt(uint32_t shard, Timestamp ts) {
  const uint64_t epoch = ts.value() >> kEpochBits;
  return {shard, {Timestamp(epoch << kEpochBits), Timestamp((epoch + 1) << kEpochBits)}};
}

// LETTER/SHARD/TIMESTAMP
bool ParseRow(std::string_view row, std::string_view letter, uint32_t* shard, Timestamp* ts) {
  uint64_t shard_number = 0;
  uint64_t timestamp = 0;
  if (!ConsumePrefix(&row, letter) || !ConsumeHex(&row, kShardDigits, &shard_number) || !ConsumePrefix(&row, "/") ||
      !ConsumeHex(&row, kTimestampDigits, &timestamp) || !row.empty()) {
    return false;
  }
  *shard = static_cast<uint32_t>(shard_number);
  *ts = Timestamp(timestamp);
  return true;
}

absl::Status MalformedJournal(std::string_view table, std::string_view row) {
  return absl::DataLossError(StrCat("table ", table, " has a row that does not belong to its queue: ",
                                    absl::CHexEscape(absl::string_view(row.data(), row.size()))));
}

void AppendEntry(std::string* out, const JournalEntry& entry) {
  AppendOrderedString(out, entry.key);
  AppendOrderedString(out, entry.payload);
}

bool DecodeEntries(std::string_view in, uint32_t shard, std::vector<JournalEntry>* entries) {
  if (in.empty() || in.front() != kVersion) return false;
  in.remove_prefix(1);
  while (!in.empty()) {
    JournalEntry entry{.shard = shard, .key = {}, .payload = {}};
    if (!ConsumeOrderedString(&in, &entry.key) || !ConsumeOrderedString(&in, &entry.payload)) return false;
    entries->push_back(std::move(entry));
  }
  return true;
}

}  // namespace

void Journal::Append(ReadWrite& t, const std::vector<JournalEntry>& entries) const {
  if (!t.status().ok()) return;
  const absl::StatusOr<Timestamp> start_ts = t.Start();
  if (!start_ts.ok()) return t.Fail(start_ts.status());
  std::map<uint32_t, std::string> added;
  for (const JournalEntry& entry : entries) AppendEntry(&added[entry.shard], entry);
  std::vector<CellName> cells;
  for (const auto& [shard, bytes] : added) cells.push_back({table_, CellRow(shard, *start_ts), kEntries});
  // No other transaction writes these cells, so their entries are earlier ones of this transaction.
  const absl::StatusOr<std::vector<std::optional<std::string>>> before = t.GetCells(cells);
  if (!before.ok()) return t.Fail(before.status());
  auto cell = before->begin();
  for (const auto& [shard, bytes] : added) {
    t.Set({table_, CellRow(shard, *start_ts), kEntries}, (cell++)->value_or(std::string(1, kVersion)) + bytes);
    Notify(t, EpochAt(shard, *start_ts));
  }
}

absl::StatusOr<JournalPage> Journal::Read(const ReadView& view, uint32_t shard, TimestampRange range,
                                          size_t limit) const {
  JournalPage page;
  size_t entries = 0;
  size_t bytes = 0;
  const RowRange rows{CellRow(shard, range.from), CellRow(shard, range.until)};
  for (const absl::StatusOr<ScannedRow>& row : view.Scan(table_, {.rows = rows, .columns = {kEntries}})) {
    if (!row.ok()) return row.status();
    JournalCell cell;
    uint32_t row_shard = 0;
    if (!ParseRow(row->key, "j/", &row_shard, &cell.start_ts)) return MalformedJournal(table_, row->key);
    if (entries >= limit || bytes >= kPageBytes) {
      page.next = cell.start_ts;
      return page;
    }
    if (!DecodeEntries(row->columns[0].value, shard, &cell.entries)) return MalformedJournal(table_, row->key);
    entries += cell.entries.size();
    bytes += row->columns[0].value.size();
    page.cells.push_back(std::move(cell));
  }
  return page;
}

void Journal::Delete(ReadWrite& t, uint32_t shard, const JournalCell& cell) const {
  t.Delete({table_, CellRow(shard, cell.start_ts), kEntries});
}

absl::StatusOr<Journal::Epoch> Journal::EpochOf(std::string_view row) const {
  uint32_t shard = 0;
  Timestamp ts;
  if (!ParseRow(row, "n/", &shard, &ts)) return MalformedJournal(table_, row);
  return EpochAt(shard, ts);
}

void Journal::Notify(ReadWrite& t, const Epoch& epoch) const {
  t.Notify({table_, StrCat("n/", Hex(epoch.shard), "/", Hex(epoch.range.from.value())), column_});
}

absl::Status Journal::NotifyAll(ReadWrite& t) const {
  for (const absl::StatusOr<ScannedRow>& row :
       t.Scan(table_, {.rows = RowRange::Prefix("j/"), .columns = {kEntries}, .keys_only = true})) {
    if (!row.ok()) return row.status();
    uint32_t shard = 0;
    Timestamp ts;
    if (!ParseRow(row->key, "j/", &shard, &ts)) return MalformedJournal(table_, row->key);
    Notify(t, EpochAt(shard, ts));
  }
  return absl::OkStatus();
}

std::string Hex(uint32_t number) { return HexOf(number, kShardDigits); }
std::string Hex(uint64_t number) { return HexOf(number, kTimestampDigits); }

bool ConsumeHex(std::string_view* in, size_t digits, uint64_t* number) {
  if (in->size() < digits) return false;
  const auto [end, error] = std::from_chars(in->data(), in->data() + digits, *number, 16);
  if (error != std::errc() || end != in->data() + digits) return false;
  in->remove_prefix(digits);
  return true;
}

}  // namespace percolator
