// SPDX-License-Identifier: Apache-2.0

#include "src/store/bigtable/filters.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "percolator/status_macros.h"
#include "src/base/check.h"
#include "src/base/strings.h"

namespace percolator {
namespace {

namespace pb = google::bigtable::v2;

constexpr int64_t kMicrosPerTimestamp = 1000;
constexpr size_t kBorderBytes = 256;  // of a column name in a filter that may select more than was asked for

// --- Parts of filters

// Combines filters. One filter stays as it is, because a server refuses a chain or an interleave of one.
template <typename Whole>
pb::RowFilter Joined(std::vector<pb::RowFilter> parts, Whole* (pb::RowFilter::*mutable_whole)()) {
  if (parts.size() == 1) return std::move(parts.front());
  pb::RowFilter filter;
  Whole* whole = (filter.*mutable_whole)();
  for (pb::RowFilter& part : parts) *whole->add_filters() = std::move(part);
  return filter;
}

pb::RowFilter Chain(std::vector<pb::RowFilter> parts) {
  return Joined(std::move(parts), &pb::RowFilter::mutable_chain);
}

pb::RowFilter Interleave(std::vector<pb::RowFilter> parts) {
  return Joined(std::move(parts), &pb::RowFilter::mutable_interleave);
}

// As Interleave, but the top is one even for a single filter.
pb::RowFilter TopInterleave(std::vector<pb::RowFilter> parts) {
  if (parts.size() == 1) parts.emplace_back().set_block_all_filter(true);
  return Interleave(std::move(parts));
}

// Returns whether a version can be in the range.
bool CanHold(const TimestampRange& range) { return !range.empty() && range.from <= kLastWireTimestamp; }

int64_t Micros(Timestamp ts) { return static_cast<int64_t>(ts.value()) * kMicrosPerTimestamp; }

// REQUIRES: CanHold(range).
pb::TimestampRange WireRange(const TimestampRange& range) {
  PERCOLATOR_DCHECK(CanHold(range));
  pb::TimestampRange wire;
  wire.set_start_timestamp_micros(Micros(range.from));
  if (range.until <= kLastWireTimestamp) wire.set_end_timestamp_micros(Micros(range.until));  // otherwise without end
  return wire;
}

bool HoldsAll(const TimestampRange& range) { return range.from == Timestamp() && range.until > kLastWireTimestamp; }

void AddRange(const TimestampRange& range, std::vector<pb::RowFilter>* chain) {
  if (!HoldsAll(range)) *chain->emplace_back().mutable_timestamp_range_filter() = WireRange(range);
}

void AddLimit(uint32_t newest, std::vector<pb::RowFilter>* chain) {
  if (newest == Selector::kAllVersions) return;
  constexpr uint32_t kMax = std::numeric_limits<int32_t>::max();
  chain->emplace_back().set_cells_per_column_limit_filter(static_cast<int32_t>(std::min(newest, kMax)));
}

pb::RowFilter WholeFamily(Family family) {
  pb::RowFilter filter;
  filter.mutable_column_range_filter()->set_family_name(std::string(FamilyName(family)));
  return filter;
}

pb::RowFilter OneColumn(Family family, const std::string& column) {
  pb::RowFilter filter = WholeFamily(family);
  filter.mutable_column_range_filter()->set_start_qualifier_closed(column);
  filter.mutable_column_range_filter()->set_end_qualifier_closed(column);
  return filter;
}

// Passes all columns from the first to the last, and perhaps some beyond.
pb::RowFilter ColumnsAround(Family family, const std::string& first, const std::string& last) {
  pb::RowFilter filter = WholeFamily(family);
  pb::ColumnRange* range = filter.mutable_column_range_filter();
  range->set_start_qualifier_closed(first.substr(0, kBorderBytes));
  if (last.size() <= kBorderBytes) {
    range->set_end_qualifier_closed(last);
  } else if (RowRange beyond = RowRange::Prefix(last.substr(0, kBorderBytes)); beyond.limit.has_value()) {
    range->set_end_qualifier_open(*std::move(beyond.limit));
  }
  return filter;
}

bool Fits(const pb::RowFilter& filter) { return filter.ByteSizeLong() <= kFilterBytes; }

// --- Selectors

pb::RowFilter BranchOf(const Selector& selector) {
  std::vector<pb::RowFilter> chain;
  chain.push_back(selector.column.has_value() ? OneColumn(selector.family, *selector.column)
                                              : WholeFamily(selector.family));
  AddRange(selector.range, &chain);
  AddLimit(selector.newest, &chain);
  return Chain(std::move(chain));
}

// Columns that are selected in the same way, from the first to the last.
struct Hull {
  std::optional<std::string> first, last;  // absent: every column of the family

  void Add(const std::optional<std::string>& column) {
    if (!column.has_value() || !first.has_value()) {
      first = last = std::nullopt;
    } else if (*column < *first) {
      first = column;
    } else if (*column > *last) {
      last = column;
    }
  }
};

// The way in which columns are selected.
struct Manner {
  Family family = Family::kData;
  TimestampRange range;
  uint32_t newest = Selector::kAllVersions;

  friend bool operator<(const Manner& a, const Manner& b) {
    return std::tie(a.family, a.range.from, a.range.until, a.newest) <
           std::tie(b.family, b.range.from, b.range.until, b.newest);
  }
};

using Hulls = std::map<Manner, Hull>;

void AddToHull(const Manner& manner, const std::optional<std::string>& column, Hulls* hulls) {
  const auto [it, is_new] = hulls->try_emplace(manner, Hull{column, column});
  if (!is_new) it->second.Add(column);
}

pb::RowFilter FilterOfHulls(const Hulls& hulls) {
  std::vector<pb::RowFilter> branches;
  for (const auto& [manner, hull] : hulls) {
    std::vector<pb::RowFilter> chain;
    chain.push_back(hull.first.has_value() ? ColumnsAround(manner.family, *hull.first, *hull.last)
                                           : WholeFamily(manner.family));
    AddRange(manner.range, &chain);
    AddLimit(manner.newest, &chain);
    branches.push_back(Chain(std::move(chain)));
  }
  return TopInterleave(std::move(branches));
}

// Returns a smaller filter that passes at least as much: it combines columns that are selected in the same way, and
// includes the columns between them.
pb::RowFilter WiderFilterOf(const std::vector<const Selector*>& selectors) {
  Hulls hulls;
  for (const Selector* s : selectors) AddToHull({s->family, s->range, s->newest}, s->column, &hulls);
  pb::RowFilter filter = FilterOfHulls(hulls);
  if (Fits(filter)) return filter;
  std::map<Family, TimestampRange> ranges;
  for (const Selector* s : selectors) {
    TimestampRange& range = ranges.try_emplace(s->family, s->range).first->second;
    range = {std::min(range.from, s->range.from), std::max(range.until, s->range.until)};
  }
  hulls.clear();
  for (const Selector* s : selectors) {
    AddToHull({s->family, ranges[s->family], Selector::kAllVersions}, s->column, &hulls);
  }
  return FilterOfHulls(hulls);
}

std::optional<Family> FamilyNamed(std::string_view name) {
  for (int i = 0; i < kFamilyCount; ++i) {
    if (FamilyName(static_cast<Family>(i)) == name) return static_cast<Family>(i);
  }
  return std::nullopt;
}

// The order of the cells that CellsOf returns.
bool Before(const Cell& a, const Cell& b) {
  return std::tie(a.family, a.column, b.timestamp) < std::tie(b.family, b.column, a.timestamp);
}

bool SameVersion(const Cell& a, const Cell& b) {
  return a.family == b.family && a.timestamp == b.timestamp && a.column == b.column;
}

// --- Conditions

bool IsAscii(const std::string& column) {
  return std::all_of(column.begin(), column.end(), [](unsigned char c) { return absl::ascii_isascii(c); });
}

// Appends a pattern that matches exactly this text. REQUIRES: it is ASCII. A zero byte stands for itself: a pattern is
// not zero-terminated.
void AppendPattern(const std::string& text, std::string* pattern) {
  PERCOLATOR_DCHECK(IsAscii(text));
  for (const char c : text) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '\0') pattern->push_back('\\');
    pattern->push_back(c);
  }
}

// What a condition requires of one column.
using Demand = std::tuple<Family, Timestamp, Timestamp>;  // family and range

// Returns each cell once, by column.
std::map<std::string_view, std::vector<Demand>> DemandsByColumn(const std::vector<const CellRange*>& cells) {
  std::map<std::string_view, std::vector<Demand>> demands;
  for (const CellRange* cell : cells) {
    demands[cell->column].emplace_back(cell->family, cell->range.from, cell->range.until);
  }
  for (auto& [column, list] : demands) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return demands;
}

class PredicateMaker {
 public:
  // `counted`: exactly one version of every cell that exists must pass the filter.
  PredicateMaker(const std::vector<const CellRange*>& cells, bool counted)
      : demands_(DemandsByColumn(cells)), counted_(counted) {}

  size_t count() const {
    size_t count = 0;
    for (const auto& [column, demands] : demands_) count += demands.size();
    return count;
  }

  // Every cell by itself.
  pb::RowFilter Plain() const {
    std::vector<pb::RowFilter> branches;
    for (const auto& [column, demands] : demands_) AddBranches(std::string(column), demands, &branches);
    return Interleave(std::move(branches));
  }

  // Columns with the same demands as one pattern.
  pb::RowFilter Compressed() const {
    std::map<std::vector<Demand>, std::string> patterns;
    std::vector<pb::RowFilter> branches;
    for (const auto& [name, demands] : demands_) {
      const std::string column(name);
      if (!IsAscii(column)) {
        AddBranches(column, demands, &branches);
        continue;
      }
      const auto [it, is_new] = patterns.try_emplace(demands);
      if (!is_new) it->second.push_back('|');
      AppendPattern(column, &it->second);
    }
    for (auto& [demands, pattern] : patterns) {
      std::vector<pb::RowFilter> chain(1);
      chain[0].set_column_qualifier_regex_filter(pattern);
      std::vector<pb::RowFilter> parts;
      for (const Demand& demand : demands) parts.push_back(Branch(WholeFamily(std::get<Family>(demand)), demand));
      chain.push_back(Interleave(std::move(parts)));
      branches.push_back(Chain(std::move(chain)));
    }
    return Interleave(std::move(branches));
  }

 private:
  pb::RowFilter Branch(pb::RowFilter columns, const Demand& demand) const {
    std::vector<pb::RowFilter> chain;
    chain.push_back(std::move(columns));
    AddRange({std::get<1>(demand), std::get<2>(demand)}, &chain);
    if (counted_) AddLimit(1, &chain);
    return Chain(std::move(chain));
  }

  void AddBranches(const std::string& column, const std::vector<Demand>& demands,
                   std::vector<pb::RowFilter>* branches) const {
    for (const Demand& demand : demands) {
      branches->push_back(Branch(OneColumn(std::get<Family>(demand), column), demand));
    }
  }

  const std::map<std::string_view, std::vector<Demand>> demands_;
  const bool counted_;
};

// Matches if at least `count` cells pass.
pb::RowFilter AtLeast(size_t count, pb::RowFilter filter) {
  if (count == 1) return filter;
  std::vector<pb::RowFilter> chain;
  chain.push_back(std::move(filter));
  chain.emplace_back().set_cells_per_row_offset_filter(static_cast<int32_t>(count - 1));
  return Chain(std::move(chain));
}

absl::StatusOr<pb::RowFilter> PredicateFilter(const std::vector<const CellRange*>& cells, bool all) {
  const PredicateMaker maker(cells, all && cells.size() > 1);
  const size_t count = all ? maker.count() : 1;
  pb::RowFilter filter = AtLeast(count, maker.Plain());
  if (Fits(filter)) return filter;
  filter = AtLeast(count, maker.Compressed());
  if (Fits(filter)) return filter;
  return absl::InvalidArgumentError(
      StrCat("condition of a row mutation too large: ", cells.size(), " cells take a filter of ", filter.ByteSizeLong(),
             " bytes, more than Bigtable's limit of ", kFilterBytes, "; write fewer columns of one row at a time"));
}

}  // namespace

std::optional<pb::RowFilter> FilterOf(const std::vector<Selector>& selectors) {
  std::vector<const Selector*> possible;
  for (const Selector& selector : selectors) {
    if (CanHold(selector.range)) possible.push_back(&selector);
  }
  if (possible.empty()) return std::nullopt;
  std::vector<pb::RowFilter> branches;
  branches.reserve(possible.size());
  for (const Selector* selector : possible) branches.push_back(BranchOf(*selector));
  pb::RowFilter filter = TopInterleave(std::move(branches));
  return Fits(filter) ? std::move(filter) : WiderFilterOf(possible);
}

absl::StatusOr<std::vector<Cell>> CellsOf(WireRow row) {
  std::vector<Cell> cells;
  cells.reserve(row.cells.size());
  for (WireCell& cell : row.cells) {
    const std::optional<Family> family = FamilyNamed(cell.family);
    if (!family.has_value())
      return absl::InternalError(StrCat("invalid response from Bigtable: unknown family ", cell.family));
    if (cell.timestamp_micros < 0 || cell.timestamp_micros % kMicrosPerTimestamp != 0) {
      return absl::InternalError(StrCat("invalid response from Bigtable: timestamp ", cell.timestamp_micros,
                                        ", which Percolator did not write"));
    }
    const Timestamp ts(static_cast<uint64_t>(cell.timestamp_micros / kMicrosPerTimestamp));
    cells.push_back({*family, std::move(cell.column), ts, std::move(cell.value)});
  }
  std::stable_sort(cells.begin(), cells.end(), &Before);
  cells.erase(std::unique(cells.begin(), cells.end(), &SameVersion), cells.end());
  return cells;
}

std::vector<Cell> Select(const std::vector<Cell>& cells, const std::vector<Selector>& selectors) {
  std::vector<Cell> selected;
  for (const Selector& selector : selectors) {
    const Cell first{selector.family, selector.column.value_or(""), Timestamp::Infinity(), {}};
    uint32_t taken = 0;
    const std::string* column = nullptr;
    for (auto it = std::lower_bound(cells.begin(), cells.end(), first, &Before); it != cells.end(); ++it) {
      if (it->family != selector.family || (selector.column.has_value() && it->column != *selector.column)) break;
      if (column == nullptr || *column != it->column) taken = 0;
      column = &it->column;
      if (!selector.range.Contains(it->timestamp)) continue;
      if (selector.newest != Selector::kAllVersions && taken >= selector.newest) continue;
      ++taken;
      selected.push_back(*it);
    }
  }
  return selected;
}

absl::StatusOr<Predicate> PredicateOf(const Condition& condition) {
  using Holds = Predicate::Holds;
  if (condition.cells.empty()) return Predicate{Holds::kAlways, {}};
  std::vector<const CellRange*> possible;
  for (const CellRange& cell : condition.cells) {
    if (CanHold(cell.range)) possible.push_back(&cell);
  }
  const bool all = condition.quantifier == Condition::Quantifier::kAll;
  const bool none = condition.quantifier == Condition::Quantifier::kNone;
  if (all && possible.size() < condition.cells.size()) return Predicate{Holds::kNever, {}};
  if (possible.empty()) return Predicate{none ? Holds::kAlways : Holds::kNever, {}};
  PERCOLATOR_ASSIGN_OR_RETURN(pb::RowFilter filter, PredicateFilter(possible, all));
  return Predicate{none ? Holds::kUnlessMatched : Holds::kIfMatched, std::move(filter)};
}

pb::RowFilter ReadFilterOf(const pb::RowFilter& predicate) {
  return predicate.has_interleave() ? predicate : TopInterleave({predicate});
}

absl::Status CheckTimestamps(const RowMutation& mutation) {
  for (const Mutation& m : mutation.mutations) {
    if (m.kind == Mutation::Kind::kSet && m.range.from > kLastWireTimestamp) {
      return absl::InvalidArgumentError(StrCat("a cell cannot be set at ", m.range.from.ToString(),
                                               ": the last timestamp in Bigtable is ", kLastWireTimestamp.value()));
    }
  }
  return absl::OkStatus();
}

bool HasEffect(const RowMutation& mutation) {
  return std::any_of(mutation.mutations.begin(), mutation.mutations.end(),
                     [](const Mutation& m) { return m.kind == Mutation::Kind::kSet || CanHold(m.range); });
}

void AppendMutations(const std::vector<Mutation>& mutations, google::protobuf::RepeatedPtrField<pb::Mutation>* out) {
  for (const Mutation& m : mutations) {
    if (m.kind == Mutation::Kind::kSet) {
      PERCOLATOR_DCHECK(m.range.from <= kLastWireTimestamp);
      pb::Mutation::SetCell* set = out->Add()->mutable_set_cell();
      set->set_family_name(std::string(FamilyName(m.family)));
      set->set_column_qualifier(m.column);
      set->set_timestamp_micros(Micros(m.range.from));
      set->set_value(m.value);
    } else if (CanHold(m.range)) {
      pb::Mutation::DeleteFromColumn* erase = out->Add()->mutable_delete_from_column();
      erase->set_family_name(std::string(FamilyName(m.family)));
      erase->set_column_qualifier(m.column);
      *erase->mutable_time_range() = WireRange(m.range);
    }
  }
}

}  // namespace percolator
