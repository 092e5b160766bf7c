// SPDX-License-Identifier: Apache-2.0

#include "src/server/bigtable/read.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "percolator/status_macros.h"
#include "src/base/check.h"
#include "src/base/strings.h"
#include "src/server/bounded_read.h"

namespace percolator {
namespace {

namespace bt = google::bigtable::v2;

constexpr size_t kRowKeyBytes = 4 << 10;
constexpr int64_t kMaxRanges = 100'000;  // row keys and ranges per request
constexpr size_t kKeysAtOnce = 64;
// A page of single keys ends with the row that reaches this size, like a page of a scan.
constexpr size_t kKeysBytes = StoreLimits().max_scan_bytes;
constexpr size_t kPageRows = 1000;
constexpr size_t kFewRows = 64;
// A page ends with the row at which its filter reaches this work, so that other requests get the thread.
constexpr size_t kPageWork = BigtableFilter::kMaxRowWork / 5;

std::string Successor(std::string key) {
  key.push_back('\0');
  return key;
}

// Returns `key`, or, if it is too long for a row key, the next key that is not. Returns an empty string if there is none.
std::string AtOrAbove(const std::string& key) {
  if (key.size() <= kRowKeyBytes) return key;
  return RowRange::Prefix(std::string_view(key).substr(0, kRowKeyBytes)).limit.value_or("");
}

// Returns a key close below `key`, or an empty string if there is none.
std::string Below(std::string key) {
  if (key.empty()) return key;
  const auto last = static_cast<unsigned char>(key.back());
  key.pop_back();
  if (last == 0) return key;
  key.push_back(static_cast<char>(last - 1));
  if (key.size() < kRowKeyBytes) key.push_back('\xff');
  return key;
}

// An empty start is not a single key, because row keys are not empty.
bool IsSingle(const RowRange& range) {
  return !range.start.empty() && range.limit.has_value() && range.limit->size() == range.start.size() + 1 &&
         range.limit->back() == '\0' && range.limit->starts_with(range.start);
}

absl::Status CheckBorder(std::string_view key) {
  if (key.size() <= kRowKeyBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("an end of a row range has ", key.size(), " bytes; the limit is ", kRowKeyBytes));
}

// An empty start means the first row and an empty end the last, as in Bigtable.
absl::StatusOr<RowRange> ToRange(const bt::RowRange& range) {
  RowRange out;
  const std::string& start = range.has_start_key_open() ? range.start_key_open() : range.start_key_closed();
  const std::string& end = range.has_end_key_open() ? range.end_key_open() : range.end_key_closed();
  for (const std::string* border : {&start, &end}) {
    PERCOLATOR_RETURN_IF_ERROR(CheckBorder(*border));
  }
  if (!end.empty() && start > end) {
    return absl::InvalidArgumentError(
        StrCat("the start of a row range ", Quoted(start), " is after its end ", Quoted(end)));
  }
  out.start = range.has_start_key_open() ? Successor(start) : start;
  if (!end.empty()) out.limit = range.has_end_key_closed() ? Successor(end) : end;
  return out;
}

// REQUIRES: `ranges` are sorted by start.
std::vector<RowRange> Merge(std::vector<RowRange> ranges) {
  PERCOLATOR_DCHECK(std::is_sorted(ranges.begin(), ranges.end(),
                                   [](const RowRange& a, const RowRange& b) { return a.start < b.start; }));
  std::vector<RowRange> merged;
  for (RowRange& range : ranges) {
    if (range.limit.has_value() && *range.limit <= range.start) continue;
    // Adjacent ranges are not merged, because single keys are read differently.
    if (merged.empty() || (merged.back().limit.has_value() && *merged.back().limit <= range.start)) {
      merged.push_back(std::move(range));
      continue;
    }
    std::optional<std::string>& limit = merged.back().limit;
    if (!limit.has_value()) break;
    if (!range.limit.has_value() || *range.limit > *limit) limit = std::move(range.limit);
  }
  return merged;
}

// --- Filters as selectors

constexpr int kMaxSelectors = 10'000;

bool IsExact(const bt::ColumnRange& range) {
  return range.has_start_qualifier_closed() && range.has_end_qualifier_closed() &&
         range.start_qualifier_closed() == range.end_qualifier_closed();
}

bool IsWhole(const bt::ColumnRange& range) {
  return range.start_qualifier_case() == bt::ColumnRange::START_QUALIFIER_NOT_SET &&
         range.end_qualifier_case() == bt::ColumnRange::END_QUALIFIER_NOT_SET;
}

std::vector<Selector> AllFamilies(const BigtableTable& table) {
  std::vector<Selector> selectors;
  for (const Family family : table.families()) selectors.push_back({.family = family});
  return selectors;
}

// Returns the selectors of a filter that selects columns, or nullopt if it does not, or selectors cannot express it.
std::optional<std::vector<Selector>> ColumnsOf(const BigtableTable& table, const bt::RowFilter& filter) {
  const bool by_name = filter.has_family_name_regex_filter();
  if (!by_name && !filter.has_column_range_filter()) return std::nullopt;
  const bt::ColumnRange& range = filter.column_range_filter();
  const std::string& family = by_name ? filter.family_name_regex_filter() : range.family_name();
  if (!table.HasFamily(family)) {
    return by_name ? std::nullopt : std::optional<std::vector<Selector>>(std::in_place);
  }
  if (by_name || IsWhole(range)) {
    // The names of the four families contain no special characters of regular expressions.
    if (!table.native()) return std::nullopt;
    return std::vector<Selector>{{.family = table.PlaceOf(family, "").family}};
  }
  if (!IsExact(range)) return std::nullopt;
  BigtableTable::Place place = table.PlaceOf(family, range.start_qualifier_closed());
  if (place.column.size() > StoreLimits().max_column_bytes) return std::nullopt;
  return std::vector<Selector>{{.family = place.family, .column = std::move(place.column)}};
}

// The selectors for the first `done` filters of a chain.
struct Selected {
  std::vector<Selector> selectors;
  int done = 0;
};

Selected SelectFrom(const BigtableTable& table, const std::vector<const bt::RowFilter*>& filters) {
  Selected out;
  const auto next = [&]() -> const bt::RowFilter* {
    return static_cast<size_t>(out.done) < filters.size() ? filters[static_cast<size_t>(out.done)] : nullptr;
  };
  if (std::optional<std::vector<Selector>> columns = ColumnsOf(table, *next()); columns.has_value()) {
    out.selectors = *std::move(columns);
    ++out.done;
  } else {
    out.selectors = AllFamilies(table);
  }
  if (const bt::RowFilter* filter = next(); filter != nullptr && filter->has_timestamp_range_filter()) {
    const bt::TimestampRange& range = filter->timestamp_range_filter();
    for (Selector& selector : out.selectors) {
      selector.range.from = Timestamp(static_cast<uint64_t>(range.start_timestamp_micros() / kMicrosPerTick));
      if (range.end_timestamp_micros() == 0) continue;
      selector.range.until = Timestamp(static_cast<uint64_t>(range.end_timestamp_micros() / kMicrosPerTick));
    }
    ++out.done;
  }
  if (const bt::RowFilter* filter = next(); filter != nullptr && filter->cells_per_column_limit_filter() > 0) {
    for (Selector& selector : out.selectors) {
      selector.newest = static_cast<uint32_t>(filter->cells_per_column_limit_filter());
    }
    ++out.done;
  }
  return out;
}

// Returns the filters of a chain. Any other filter counts as a chain of one.
std::vector<const bt::RowFilter*> Links(const bt::RowFilter& filter) {
  if (!filter.has_chain()) return {&filter};
  std::vector<const bt::RowFilter*> links;
  for (const bt::RowFilter& link : filter.chain().filters()) links.push_back(&link);
  return links;
}

// Returns nullopt if selectors cannot express a branch.
std::optional<std::vector<Selector>> InterleavedSelectors(const BigtableTable& table, const bt::RowFilter& filter) {
  std::vector<Selector> all;
  for (const bt::RowFilter& branch : filter.interleave().filters()) {
    if (!ToSelectors(table, branch, &all) || all.size() > kMaxSelectors) return std::nullopt;
  }
  return all;
}

}  // namespace

absl::Status CheckRowKey(std::string_view key) {
  if (key.empty()) return absl::InvalidArgumentError("Row key must be non-empty");
  if (key.size() <= kRowKeyBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("the row key has ", key.size(), " bytes; the limit is ", kRowKeyBytes));
}

absl::StatusOr<std::vector<RowRange>> RangesOf(const bt::RowSet& rows) {
  if (rows.row_keys().empty() && rows.row_ranges().empty()) return std::vector<RowRange>{RowRange::All()};
  const int64_t count = int64_t{rows.row_keys_size()} + rows.row_ranges_size();
  if (count > kMaxRanges) {
    return absl::InvalidArgumentError(StrCat("there are ", count, " row keys and ranges; the limit is ", kMaxRanges));
  }
  std::vector<RowRange> ranges;
  for (const std::string& key : rows.row_keys()) {
    PERCOLATOR_RETURN_IF_ERROR(CheckRowKey(key));
    ranges.push_back(RowRange::Single(key));
  }
  for (const bt::RowRange& range : rows.row_ranges()) {
    PERCOLATOR_ASSIGN_OR_RETURN(RowRange converted, ToRange(range));
    ranges.push_back(std::move(converted));
  }
  std::sort(ranges.begin(), ranges.end(), [](const RowRange& a, const RowRange& b) { return a.start < b.start; });
  return Merge(std::move(ranges));
}

bool ToSelectors(const BigtableTable& table, const bt::RowFilter& filter, std::vector<Selector>* selectors) {
  const std::vector<const bt::RowFilter*> links = Links(filter);
  if (links.empty()) return false;
  Selected selected = SelectFrom(table, links);
  if (static_cast<size_t>(selected.done) != links.size()) return false;
  selectors->insert(selectors->end(), selected.selectors.begin(), selected.selectors.end());
  return true;
}

absl::StatusOr<ReadPlan> PlanRead(const BigtableTable& table, const bt::RowFilter& filter) {
  const std::vector<const bt::RowFilter*> links = Links(filter);
  Selected selected;
  if (!links.empty() && links.front()->has_interleave()) {
    std::optional<std::vector<Selector>> selectors = InterleavedSelectors(table, *links.front());
    selected.done = selectors.has_value() ? 1 : 0;
    selected.selectors = selectors.has_value() ? *std::move(selectors) : AllFamilies(table);
  } else if (!links.empty()) {
    selected = SelectFrom(table, links);
  }
  PERCOLATOR_ASSIGN_OR_RETURN(BigtableFilter rest, BigtableFilter::CompileRest(filter, selected.done));
  return ReadPlan{std::move(selected.selectors), std::move(rest)};
}

// --- RowChunker

void RowChunker::Add(std::string_view key, const BigtableCells& cells) {
  PERCOLATOR_DCHECK(!cells.empty());
  constexpr size_t kOverhead = 32;  // an estimate per cell
  size_t bytes = key.size();
  for (const BigtableCell& cell : cells) bytes += cell.qualifier.size() + cell.value.size() + kOverhead;
  if (messages_.empty() || bytes_ + bytes > kMessageBytes) {
    messages_.emplace_back();
    bytes_ = 0;
  }
  bytes_ += bytes;
  all_bytes_ += bytes;
  bt::ReadRowsResponse& message = messages_.back();
  const BigtableCell* last = nullptr;
  for (const BigtableCell& cell : cells) {
    const bool new_family = last == nullptr || last->family != cell.family;
    bt::ReadRowsResponse::CellChunk* chunk = message.add_chunks();
    if (last == nullptr) chunk->set_row_key(std::string(key));
    if (new_family) chunk->mutable_family_name()->set_value(std::string(cell.family));
    if (new_family || last->qualifier != cell.qualifier) {
      chunk->mutable_qualifier()->set_value(std::string(cell.qualifier));
    }
    chunk->set_timestamp_micros(cell.timestamp_micros);
    if (!cell.label.empty()) chunk->add_labels(std::string(cell.label));
    std::string_view value = cell.value;
    for (; value.size() > kPieceBytes; value.remove_prefix(kPieceBytes)) {
      chunk->set_value(value.data(), kPieceBytes);
      chunk->set_value_size(static_cast<int32_t>(cell.value.size()));
      chunk = message.add_chunks();
    }
    chunk->set_value(value.data(), value.size());
    last = &cell;
  }
  message.mutable_chunks(message.chunks_size() - 1)->set_commit_row(true);
}

std::vector<bt::ReadRowsResponse> RowChunker::Take() {
  bytes_ = 0;
  all_bytes_ = 0;
  return std::exchange(messages_, {});
}

// --- RowReader

RowReader::RowReader(Store* store, std::shared_ptr<const BigtableTable> table, ReadPlan plan,
                     std::vector<RowRange> ranges, int64_t limit, bool reverse, RequestMemory* memory)
    : store_(store),
      table_(std::move(table)),
      plan_(std::move(plan)),
      reverse_(reverse),
      ranges_(std::move(ranges)),
      memory_(memory),
      left_(limit == 0 ? -1 : limit) {
  if (reverse_) std::reverse(ranges_.begin(), ranges_.end());
  if (plan_.selectors.empty()) next_ = ranges_.size();  // no cell is selected
}

absl::StatusOr<std::unique_ptr<RowReader>> RowReader::Open(Store* store, BigtableTables* tables,
                                                           const bt::ReadRowsRequest& request, RequestMemory* memory) {
  PERCOLATOR_ASSIGN_OR_RETURN(std::shared_ptr<const BigtableTable> table, tables->Find(request.table_name()));
  if (request.rows_limit() < 0)
    return absl::InvalidArgumentError("Error in field 'rows_limit': it must not be negative");
  PERCOLATOR_ASSIGN_OR_RETURN(std::vector<RowRange> ranges, RangesOf(request.rows()));
  PERCOLATOR_ASSIGN_OR_RETURN(ReadPlan plan, PlanRead(*table, request.filter()));
  return std::unique_ptr<RowReader>(new RowReader(store, std::move(table), std::move(plan), std::move(ranges),
                                                  request.rows_limit(), request.reversed(), memory));
}

// Returns the number of rows to read: those that may be needed, and a few more if the filter may drop some.
size_t RowReader::PageRows() const {
  if (left_ < 0) return kPageRows;
  const size_t wanted = std::min(static_cast<size_t>(left_), kPageRows);
  return plan_.rest.passes_all() && table_->native() ? wanted : std::max(wanted, kFewRows);
}

// Reads the next single keys. One key at a time, because the size of a row is unknown before it is read.
absl::StatusOr<std::vector<Row>> RowReader::ReadKeys() {
  std::vector<Row> rows;
  size_t bytes = 0;
  while (next_ < ranges_.size() && rows.size() < kKeysAtOnce && bytes < kKeysBytes && IsSingle(ranges_[next_])) {
    RowRead read{table_->id(), std::move(ranges_[next_].start), plan_.selectors};
    PERCOLATOR_ASSIGN_OR_RETURN(Row row, ReadBounded(store_, memory_, std::move(read), &share_));
    ++next_;
    for (const Cell& cell : row.cells) bytes += cell.column.size() + cell.value.size();
    rows.push_back(std::move(row));
  }
  return rows;
}

absl::StatusOr<std::vector<Row>> RowReader::ScanRange() {
  ScanRequest request{table_->id(), ranges_[next_], plan_.selectors, PageRows(), reverse_};
  PERCOLATOR_ASSIGN_OR_RETURN(ScanPage page, ScanBounded(store_, memory_, request, &share_));
  if (page.resume.has_value()) {
    request.ContinueAt(*std::move(page.resume));
    ranges_[next_] = std::move(request.rows);
  } else {
    ++next_;
  }
  return std::move(page.rows);
}

absl::StatusOr<std::vector<bt::ReadRowsResponse>> RowReader::Next(const std::function<bool()>& cancelled) {
  if (next_row_ == rows_.size()) {
    PERCOLATOR_ASSIGN_OR_RETURN(std::vector<Row> rows, IsSingle(ranges_[next_]) ? ReadKeys() : ScanRange());
    rows_ = std::move(rows);
    next_row_ = 0;
  }
  RowChunker chunker;
  size_t work = 0;
  while (next_row_ < rows_.size() && chunker.bytes() < kKeysBytes && work < kPageWork) {
    if (cancelled()) return absl::CancelledError("the client is gone");
    const Row& row = rows_[next_row_++];
    PERCOLATOR_ASSIGN_OR_RETURN(const BigtableCells cells, plan_.rest.Apply(row.key, table_->CellsOf(row), &work));
    if (cells.empty()) continue;
    chunker.Add(row.key, cells);
    reported_ = row.key;
    if (left_ > 0 && --left_ == 0) {
      next_ = ranges_.size();
      next_row_ = rows_.size();
    }
  }
  if (next_row_ == rows_.size()) {
    rows_ = {};
    share_ = {};
    next_row_ = 0;
  }
  std::vector<bt::ReadRowsResponse> messages = chunker.Take();
  if (messages.empty() && !AtEnd()) AddPosition(&messages);
  return messages;
}

// Returns the last key that is done: all requested rows below the start of the remaining range or, in reverse, from its limit
// on are done.
std::string RowReader::Scanned() const {
  if (next_row_ < rows_.size()) return rows_[next_row_ - 1].key;
  const RowRange& range = ranges_[next_];
  return reverse_ ? AtOrAbove(range.limit.value_or("")) : Below(range.start);
}

// Adds a message with the position.
void RowReader::AddPosition(std::vector<bt::ReadRowsResponse>* messages) {
  std::string scanned = Scanned();
  if (scanned.empty()) return;
  if (!reported_.empty() && (reverse_ ? scanned >= reported_ : scanned <= reported_)) return;
  reported_ = std::move(scanned);
  messages->emplace_back().set_last_scanned_row_key(reported_);
}

}  // namespace percolator
