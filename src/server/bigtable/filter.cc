// SPDX-License-Identifier: Apache-2.0

#include "src/server/bigtable/filter.h"

#include <re2/re2.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "percolator/spi/runtime.h"
#include "percolator/status_macros.h"
#include "src/base/strings.h"

namespace percolator {
namespace {

namespace bt = google::bigtable::v2;

using Step = BigtableFilter::Step;
using RowState = BigtableFilter::RowState;

constexpr int64_t kMicrosPerMilli = 1000;
// The limits of the result of a row. A larger row may have a result of its own size.
constexpr size_t kMaxRowCells = 1'000'000;
constexpr size_t kMaxRowBytes = size_t{16} << 20;
// Memory for the automata of all regular expressions of a filter, and the minimum for one.
constexpr int64_t kRegexMemory = int64_t{8} << 20;
constexpr int64_t kMinRegexMemory = int64_t{32} << 10;
constexpr int kMaxRegexProgram = 32'768;  // RE2's instructions, in all regular expressions of a filter
// Work of a step on one cell, which it may copy, in units of about 4 ns.
constexpr size_t kCellWork = 4;

size_t CellBytes(const BigtableCells& cells) {
  size_t bytes = 0;
  for (const BigtableCell& cell : cells) bytes += cell.qualifier.size() + cell.value.size();
  return bytes;
}

absl::Status Invalid(std::string_view field, std::string_view what) {
  return absl::InvalidArgumentError(StrCat("Error in field '", field, "': ", what));
}

// The regular expressions of a whole filter.
struct Regexes {
  int64_t count = 0;
  int program = 0;  // instructions of those that are compiled
};

// The position of a filter in the whole filter, on which some rules depend.
struct Place {
  Regexes* regexes;
  int depth = 1;
  bool in_condition = false;

  Place Below() const { return {regexes, depth + 1, in_condition}; }
  Place InCondition() const { return {regexes, depth + 1, true}; }
};

absl::StatusOr<Step> CompileAt(const bt::RowFilter& filter, Place place);

// --- Filters of single cells

template <typename Keep>
Step KeepIf(Keep keep) {
  return [keep = std::move(keep)](RowState& /*row*/, BigtableCells& cells) {
    std::erase_if(cells, [&](const BigtableCell& cell) { return !keep(cell); });
  };
}

using Regex = std::shared_ptr<const RE2>;

absl::StatusOr<Regex> CompileRegex(std::string_view pattern, std::string_view field, Regexes* all) {
  RE2::Options options(RE2::Latin1);
  options.set_log_errors(false);
  options.set_max_mem(std::max(kMinRegexMemory, kRegexMemory / std::max<int64_t>(1, all->count)));
  auto regex = std::make_shared<const RE2>(re2::StringPiece(pattern.data(), pattern.size()), options);
  if (!regex->ok()) return Invalid(field, regex->error());
  all->program += regex->ProgramSize();
  if (all->program <= kMaxRegexProgram) return regex;
  return Invalid(field, StrCat("the regular expressions of the filter are compiled to more than ", kMaxRegexProgram,
                               " instructions, which is the limit"));
}

// False also if the row has cost too much.
bool Matches(RowState& row, const RE2& regex, std::string_view text) {
  return row.Spend(text.size() * static_cast<size_t>(regex.ProgramSize())) &&
         RE2::FullMatch(re2::StringPiece(text.data(), text.size()), regex);
}

// Keeps the cells whose text matches.
template <typename TextOf>
Step KeepMatches(Regex regex, TextOf text_of) {
  return [regex = std::move(regex), text_of](RowState& row, BigtableCells& cells) {
    std::erase_if(cells, [&](const BigtableCell& cell) { return !Matches(row, *regex, text_of(cell)); });
  };
}

absl::StatusOr<Step> RowKeyRegex(const std::string& pattern, Place place) {
  PERCOLATOR_ASSIGN_OR_RETURN(Regex regex, CompileRegex(pattern, "row_key_regex_filter", place.regexes));
  return Step([regex = std::move(regex)](RowState& row, BigtableCells& cells) {
    if (!Matches(row, *regex, row.key)) cells.clear();
  });
}

absl::StatusOr<Step> FamilyRegex(const std::string& pattern, Place place) {
  if (pattern.find(':') != std::string::npos) {
    return Invalid("family_name_regex_filter", "the pattern must not contain ':'");
  }
  PERCOLATOR_ASSIGN_OR_RETURN(Regex regex, CompileRegex(pattern, "family_name_regex_filter", place.regexes));
  return KeepMatches(std::move(regex), [](const BigtableCell& cell) { return cell.family; });
}

absl::StatusOr<Step> QualifierRegex(const std::string& pattern, Place place) {
  PERCOLATOR_ASSIGN_OR_RETURN(Regex regex, CompileRegex(pattern, "column_qualifier_regex_filter", place.regexes));
  return KeepMatches(std::move(regex), [](const BigtableCell& cell) { return cell.qualifier; });
}

absl::StatusOr<Step> ValueRegex(const std::string& pattern, Place place) {
  PERCOLATOR_ASSIGN_OR_RETURN(Regex regex, CompileRegex(pattern, "value_regex_filter", place.regexes));
  return KeepMatches(std::move(regex), [](const BigtableCell& cell) { return cell.value; });
}

Step InColumnRange(const bt::ColumnRange& range) {
  return KeepIf([&range](const BigtableCell& cell) {
    if (cell.family != range.family_name()) return false;
    if (range.has_start_qualifier_closed() && cell.qualifier < range.start_qualifier_closed()) return false;
    if (range.has_start_qualifier_open() && cell.qualifier <= range.start_qualifier_open()) return false;
    if (range.has_end_qualifier_closed() && cell.qualifier > range.end_qualifier_closed()) return false;
    return !range.has_end_qualifier_open() || cell.qualifier < range.end_qualifier_open();
  });
}

Step InValueRange(const bt::ValueRange& range) {
  return KeepIf([&range](const BigtableCell& cell) {
    if (range.has_start_value_closed() && cell.value < range.start_value_closed()) return false;
    if (range.has_start_value_open() && cell.value <= range.start_value_open()) return false;
    if (range.has_end_value_closed() && cell.value > range.end_value_closed()) return false;
    return !range.has_end_value_open() || cell.value < range.end_value_open();
  });
}

absl::StatusOr<Step> InTimestampRange(const bt::TimestampRange& range) {
  PERCOLATOR_RETURN_IF_ERROR(CheckTimestampRange(range, "timestamp_range_filter"));
  return KeepIf([start = range.start_timestamp_micros(), end = range.end_timestamp_micros()](const BigtableCell& cell) {
    return cell.timestamp_micros >= start && (end == 0 || cell.timestamp_micros < end);
  });
}

// --- Filters that count

absl::Status CheckCount(int count, std::string_view field) {
  return count < 0 ? Invalid(field, StrCat(count, " is negative")) : absl::OkStatus();
}

absl::StatusOr<Step> RowOffset(int count) {
  PERCOLATOR_RETURN_IF_ERROR(CheckCount(count, "cells_per_row_offset_filter"));
  return Step([count](RowState& /*row*/, BigtableCells& cells) {
    cells.erase(cells.begin(), cells.begin() + std::min<ptrdiff_t>(count, std::ssize(cells)));
  });
}

absl::StatusOr<Step> RowLimit(int count) {
  PERCOLATOR_RETURN_IF_ERROR(CheckCount(count, "cells_per_row_limit_filter"));
  return Step([count](RowState& /*row*/, BigtableCells& cells) {
    cells.erase(cells.begin() + std::min<ptrdiff_t>(count, std::ssize(cells)), cells.end());
  });
}

absl::StatusOr<Step> ColumnLimit(int count) {
  PERCOLATOR_RETURN_IF_ERROR(CheckCount(count, "cells_per_column_limit_filter"));
  return Step([count](RowState& /*row*/, BigtableCells& cells) {
    std::string_view family;
    std::string_view qualifier;
    int left = count;
    bool first = true;
    std::erase_if(cells, [&](const BigtableCell& cell) {
      if (first || cell.qualifier != qualifier || cell.family != family) left = count;
      first = false;
      family = cell.family;
      qualifier = cell.qualifier;
      return left-- <= 0;
    });
  });
}

absl::StatusOr<Step> Sample(double probability) {
  if (!(probability > 0 && probability < 1)) {
    return Invalid("row_sample_filter", "the probability must be between 0 and 1, both excluded");
  }
  return Step([probability](RowState& /*row*/, BigtableCells& cells) {
    constexpr double kTwoTo64 = 18446744073709551616.0;
    if (static_cast<double>(Runtime::Real()->Random()) >= probability * kTwoTo64) cells.clear();
  });
}

// --- Filters that change or redirect cells

Step StripValue() {
  return [](RowState& /*row*/, BigtableCells& cells) {
    for (BigtableCell& cell : cells) cell.value = {};
  };
}

absl::StatusOr<Step> Label(const std::string& label) {
  const auto allowed = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  constexpr size_t kMaxLabelBytes = 15;
  if (label.empty() || label.size() > kMaxLabelBytes || !std::all_of(label.begin(), label.end(), allowed)) {
    return Invalid("apply_label_transformer", "a label has 1 to 15 of the characters a-z, 0-9 and '-'");
  }
  return Step([&label](RowState& /*row*/, BigtableCells& cells) {
    for (BigtableCell& cell : cells) cell.label = label;
  });
}

Step PassAll() {
  return [](RowState& /*row*/, BigtableCells& /*cells*/) {};
}

Step BlockAll() {
  return [](RowState& /*row*/, BigtableCells& cells) { cells.clear(); };
}

absl::StatusOr<Step> Sink(Place place) {
  if (place.in_condition) return Invalid("sink", "a sink is not allowed inside a condition");
  return Step([](RowState& row, BigtableCells& cells) {
    row.too_many = row.too_many || row.sunk.size() + cells.size() > kMaxRowCells;
    if (!row.too_many) row.sunk.insert(row.sunk.end(), cells.begin(), cells.end());
    cells.clear();
  });
}

// Compiles a filter that is a flag, which must be true.
absl::StatusOr<Step> IfSet(bool set, std::string_view field, absl::StatusOr<Step> step) {
  return set ? std::move(step) : Invalid(field, "it must be true or absent");
}

// --- Filters of filters

int64_t CountRegexes(const bt::RowFilter& filter) {
  const auto sum = [](const auto& filters) {
    int64_t count = 0;
    for (const bt::RowFilter& one : filters) count += CountRegexes(one);
    return count;
  };
  switch (filter.filter_case()) {
    case bt::RowFilter::kChain:
      return sum(filter.chain().filters());
    case bt::RowFilter::kInterleave:
      return sum(filter.interleave().filters());
    case bt::RowFilter::kCondition:
      return CountRegexes(filter.condition().predicate_filter()) + CountRegexes(filter.condition().true_filter()) +
             CountRegexes(filter.condition().false_filter());
    default:
      return filter.has_row_key_regex_filter() || filter.has_family_name_regex_filter() ||
             filter.has_column_qualifier_regex_filter() || filter.has_value_regex_filter();
  }
}

bool HasLabel(const bt::RowFilter& filter) {
  const auto any = [](const auto& filters) { return std::any_of(filters.begin(), filters.end(), HasLabel); };
  switch (filter.filter_case()) {
    case bt::RowFilter::kChain:
      return any(filter.chain().filters());
    case bt::RowFilter::kInterleave:
      return any(filter.interleave().filters());
    case bt::RowFilter::kCondition:
      return HasLabel(filter.condition().true_filter()) || HasLabel(filter.condition().false_filter());
    default:
      return filter.has_apply_label_transformer();
  }
}

template <typename Filters>
absl::StatusOr<std::vector<Step>> CompileAll(const Filters& filters, Place place, std::string_view field) {
  if (filters.size() < 2) return Invalid(field, "it must have at least two filters");
  std::vector<Step> steps;
  for (const bt::RowFilter& filter : filters) {
    PERCOLATOR_ASSIGN_OR_RETURN(Step step, CompileAt(filter, place.Below()));
    steps.push_back(std::move(step));
  }
  return steps;
}

// One step of a filter of filters. No cells are left if the row has cost too much.
void Take(const Step& step, RowState& row, BigtableCells& cells) {
  if (!row.Spend(kCellWork * (1 + cells.size()))) return cells.clear();
  step(row, cells);
}

Step Sequence(std::vector<Step> steps) {
  return [steps = std::move(steps)](RowState& row, BigtableCells& cells) {
    for (const Step& step : steps) {
      if (cells.empty()) return;
      Take(step, row, cells);
    }
  };
}

absl::StatusOr<std::vector<Step>> Links(const bt::RowFilter::Chain& chain, Place place) {
  PERCOLATOR_ASSIGN_OR_RETURN(std::vector<Step> steps, CompileAll(chain.filters(), place, "chain"));
  if (std::count_if(chain.filters().begin(), chain.filters().end(), HasLabel) > 1) {
    return Invalid("chain", "only one of its filters may apply labels");
  }
  return steps;
}

absl::StatusOr<Step> Chain(const bt::RowFilter::Chain& chain, Place place) {
  PERCOLATOR_ASSIGN_OR_RETURN(std::vector<Step> steps, Links(chain, place));
  return Sequence(std::move(steps));
}

void PutInOrder(BigtableCells& cells) {
  std::stable_sort(cells.begin(), cells.end(),
                   [](const BigtableCell& a, const BigtableCell& b) { return a.position < b.position; });
}

absl::StatusOr<Step> Interleave(const bt::RowFilter::Interleave& interleave, Place place) {
  PERCOLATOR_ASSIGN_OR_RETURN(std::vector<Step> steps, CompileAll(interleave.filters(), place, "interleave"));
  return Step([steps = std::move(steps)](RowState& row, BigtableCells& cells) {
    BigtableCells all;
    for (const Step& step : steps) {
      if (!row.Spend(kCellWork * (1 + cells.size()))) return cells.clear();
      BigtableCells branch = cells;
      step(row, branch);
      row.too_many = row.too_many || all.size() + branch.size() > std::max(kMaxRowCells, cells.size());
      if (row.too_many) return cells.clear();
      all.insert(all.end(), branch.begin(), branch.end());
    }
    PutInOrder(all);
    cells = std::move(all);
  });
}

absl::StatusOr<Step> Conditional(const bt::RowFilter::Condition& condition, Place place) {
  if (!condition.has_predicate_filter()) return Invalid("condition", "it has no predicate_filter");
  PERCOLATOR_ASSIGN_OR_RETURN(Step predicate, CompileAt(condition.predicate_filter(), place.InCondition()));
  Step if_true = BlockAll();
  if (condition.has_true_filter()) {
    PERCOLATOR_ASSIGN_OR_RETURN(if_true, CompileAt(condition.true_filter(), place.InCondition()));
  }
  Step if_false = BlockAll();
  if (condition.has_false_filter()) {
    PERCOLATOR_ASSIGN_OR_RETURN(if_false, CompileAt(condition.false_filter(), place.InCondition()));
  }
  return Step([predicate = std::move(predicate), if_true = std::move(if_true), if_false = std::move(if_false)](
                  RowState& row, BigtableCells& cells) {
    BigtableCells tried = cells;
    Take(predicate, row, tried);
    Take(tried.empty() ? if_false : if_true, row, cells);
  });
}

// Compiles a filter without a known kind: it is empty, or from a newer client.
absl::StatusOr<Step> Unset(const bt::RowFilter& filter) {
  if (filter.ByteSizeLong() == 0) return PassAll();
  return absl::InvalidArgumentError("unknown kind of filter");
}

absl::StatusOr<Step> CompileAt(const bt::RowFilter& filter, Place place) {
  if (place.depth > BigtableFilter::kMaxDepth) {
    return absl::InvalidArgumentError(StrCat("the filter is too deep; the limit is ", BigtableFilter::kMaxDepth));
  }
  switch (filter.filter_case()) {
    case bt::RowFilter::kChain:
      return Chain(filter.chain(), place);
    case bt::RowFilter::kInterleave:
      return Interleave(filter.interleave(), place);
    case bt::RowFilter::kCondition:
      return Conditional(filter.condition(), place);
    case bt::RowFilter::kRowKeyRegexFilter:
      return RowKeyRegex(filter.row_key_regex_filter(), place);
    case bt::RowFilter::kFamilyNameRegexFilter:
      return FamilyRegex(filter.family_name_regex_filter(), place);
    case bt::RowFilter::kColumnQualifierRegexFilter:
      return QualifierRegex(filter.column_qualifier_regex_filter(), place);
    case bt::RowFilter::kColumnRangeFilter:
      return InColumnRange(filter.column_range_filter());
    case bt::RowFilter::kTimestampRangeFilter:
      return InTimestampRange(filter.timestamp_range_filter());
    case bt::RowFilter::kValueRegexFilter:
      return ValueRegex(filter.value_regex_filter(), place);
    case bt::RowFilter::kCellsPerRowOffsetFilter:
      return RowOffset(filter.cells_per_row_offset_filter());
    case bt::RowFilter::kCellsPerRowLimitFilter:
      return RowLimit(filter.cells_per_row_limit_filter());
    case bt::RowFilter::kCellsPerColumnLimitFilter:
      return ColumnLimit(filter.cells_per_column_limit_filter());
    case bt::RowFilter::kStripValueTransformer:
      return IfSet(filter.strip_value_transformer(), "strip_value_transformer", StripValue());
    case bt::RowFilter::kRowSampleFilter:
      return Sample(filter.row_sample_filter());
    case bt::RowFilter::kValueRangeFilter:
      return InValueRange(filter.value_range_filter());
    case bt::RowFilter::kSink:
      return IfSet(filter.sink(), "sink", Sink(place));
    case bt::RowFilter::kPassAllFilter:
      return IfSet(filter.pass_all_filter(), "pass_all_filter", PassAll());
    case bt::RowFilter::kBlockAllFilter:
      return IfSet(filter.block_all_filter(), "block_all_filter", BlockAll());
    case bt::RowFilter::kApplyLabelTransformer:
      return Label(filter.apply_label_transformer());
    case bt::RowFilter::FILTER_NOT_SET:
      return Unset(filter);
  }
  return Unset(filter);
}

}  // namespace

absl::Status CheckTimestampRange(const bt::TimestampRange& range, std::string_view field) {
  for (const int64_t end : {range.start_timestamp_micros(), range.end_timestamp_micros()}) {
    if (end < 0) return Invalid(field, StrCat("timestamp ", end, " is negative"));
    if (end % kMicrosPerMilli != 0) {
      return Invalid(field, StrCat("Timestamp granularity mismatch. Expected a multiple of 1000 (millisecond "
                                   "granularity), but got ",
                                   end));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<BigtableFilter> BigtableFilter::Compile(const bt::RowFilter& filter) { return CompileRest(filter, 0); }

absl::StatusOr<BigtableFilter> BigtableFilter::CompileRest(const bt::RowFilter& filter, int done) {
  const size_t bytes = filter.ByteSizeLong();
  if (bytes == 0) return BigtableFilter();
  if (bytes > kMaxBytes) {
    return absl::InvalidArgumentError(
        StrCat("the filter has ", bytes, " bytes when serialized; the limit is ", kMaxBytes));
  }
  Regexes regexes{.count = CountRegexes(filter)};
  const Place whole{&regexes};
  if (!filter.has_chain()) {
    PERCOLATOR_ASSIGN_OR_RETURN(Step step, CompileAt(filter, whole));
    return done == 0 ? BigtableFilter(std::move(step)) : BigtableFilter();
  }
  PERCOLATOR_ASSIGN_OR_RETURN(std::vector<Step> steps, Links(filter.chain(), whole));  // checks all filters
  steps.erase(steps.begin(), steps.begin() + std::min<ptrdiff_t>(done, std::ssize(steps)));
  return steps.empty() ? BigtableFilter() : BigtableFilter(Sequence(std::move(steps)));
}

absl::StatusOr<BigtableCells> BigtableFilter::Apply(std::string_view row_key, BigtableCells cells, size_t* work) const {
  if (!step_) return cells;
  const size_t before = cells.size();
  const size_t bytes_before = CellBytes(cells);
  RowState row{.key = row_key, .max_work = kMaxRowWork + kMaxWorkPerByte * bytes_before};
  Take(step_, row, cells);
  if (work != nullptr) *work += std::min(row.work, row.max_work);
  if (row.work > row.max_work) {
    return absl::InvalidArgumentError(StrCat(
        "the filter costs too much on row ", Quoted(row_key), ", which has ", bytes_before,
        " bytes: about a second of processor time is the limit; use simpler regular expressions or fewer filters"));
  }
  if (row.too_many) {
    return absl::InvalidArgumentError(StrCat("the filter returns more than the limit of ", kMaxRowCells,
                                             " cells for the row ", Quoted(row_key), ", which has ", before));
  }
  if (!row.sunk.empty()) {
    cells.insert(cells.end(), row.sunk.begin(), row.sunk.end());
    PutInOrder(cells);
  }
  if (const size_t bytes = CellBytes(cells); bytes > std::max(kMaxRowBytes, bytes_before)) {
    return absl::InvalidArgumentError(StrCat("the filter returns ", bytes, " bytes for the row ", Quoted(row_key),
                                             ", which has ", bytes_before, "; the limit is ", kMaxRowBytes));
  }
  return cells;
}

}  // namespace percolator
