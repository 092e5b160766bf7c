// SPDX-License-Identifier: Apache-2.0

#include "src/server/bigtable/mutate.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "percolator/status_macros.h"
#include "src/base/check.h"
#include "src/base/clock.h"
#include "src/base/coding.h"
#include "src/base/strings.h"
#include "src/server/bigtable/filter.h"
#include "src/server/bigtable/read.h"
#include "src/server/bounded_read.h"

namespace percolator {
namespace {

namespace bt = google::bigtable::v2;

constexpr size_t kQualifierBytes = 16 << 10;

// Returns the milliseconds since 1970 as a timestamp of the store.
Timestamp ServerTime() {
  const auto epoch = Timestamp::Epoch().time_since_epoch().count();
  return Timestamp((static_cast<uint64_t>(epoch) + Clock::Real()->WallMicros()) / kMicrosPerTick);
}

absl::Status CheckQualifier(const BigtableTable& table, std::string_view family, std::string_view qualifier) {
  const size_t limit = kQualifierBytes - (table.native() ? 0 : family.size() + 1);
  if (qualifier.size() <= limit) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("a column qualifier of family \"", family, "\" has ", qualifier.size(), " bytes; the limit is ", limit));
}

absl::Status CheckColumn(const BigtableTable& table, std::string_view family, std::string_view qualifier) {
  PERCOLATOR_RETURN_IF_ERROR(table.CheckFamily(family));
  return CheckQualifier(table, family, qualifier);
}

absl::Status CheckTimestamp(const BigtableTable& table, int64_t micros) {
  if (micros == -1) {
    if (!table.native()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        StrCat("table ", table.id(),
               " needs explicit timestamps: it is a table of Percolator, so -1 (the server's time) is invalid"));
  }
  if (micros < 0) return absl::InvalidArgumentError(StrCat("timestamp ", micros, " is negative"));
  if (micros % kMicrosPerTick == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat(
      "Timestamp granularity mismatch. Expected a multiple of 1000 (millisecond granularity), but got ", micros));
}

absl::Status CheckTimeRange(const bt::TimestampRange& range) {
  PERCOLATOR_RETURN_IF_ERROR(CheckTimestampRange(range, "time_range"));
  const int64_t end = range.end_timestamp_micros();
  if (end == 0 || range.start_timestamp_micros() < end) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("Error in field 'time_range': the start ", range.start_timestamp_micros(),
                                           " is not before the end ", end));
}

absl::Status OnlyForeign(const BigtableTable& table, std::string_view request) {
  if (!table.native()) return absl::OkStatus();
  return absl::UnimplementedError(
      StrCat("table ", table.id(), " does not support ", request, ": it is a table of Percolator"));
}

absl::Status CheckMutation(const BigtableTable& table, const bt::Mutation& mutation) {
  switch (mutation.mutation_case()) {
    case bt::Mutation::kSetCell: {
      const bt::Mutation::SetCell& set = mutation.set_cell();
      PERCOLATOR_RETURN_IF_ERROR(CheckColumn(table, set.family_name(), set.column_qualifier()));
      return CheckTimestamp(table, set.timestamp_micros());
    }
    case bt::Mutation::kDeleteFromColumn: {
      const bt::Mutation::DeleteFromColumn& erase = mutation.delete_from_column();
      PERCOLATOR_RETURN_IF_ERROR(CheckColumn(table, erase.family_name(), erase.column_qualifier()));
      return CheckTimeRange(erase.time_range());
    }
    case bt::Mutation::kDeleteFromFamily:
      PERCOLATOR_RETURN_IF_ERROR(OnlyForeign(table, "DeleteFromFamily"));
      return table.CheckFamily(mutation.delete_from_family().family_name());
    case bt::Mutation::kDeleteFromRow:
      return OnlyForeign(table, "DeleteFromRow");
    case bt::Mutation::MUTATION_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("a mutation is empty or of an unknown kind");
}

template <typename Mutations>
absl::Status CheckMutations(const BigtableTable& table, const Mutations& mutations) {
  if (mutations.size() > BigtableMutator::kMaxMutations) {
    return absl::InvalidArgumentError(
        StrCat("the request has ", mutations.size(), " mutations; the limit is ", BigtableMutator::kMaxMutations));
  }
  for (const bt::Mutation& mutation : mutations) {
    PERCOLATOR_RETURN_IF_ERROR(CheckMutation(table, mutation));
  }
  return absl::OkStatus();
}

template <typename Mutations>
absl::Status CheckRow(const BigtableTable& table, const std::string& key, const Mutations& mutations) {
  PERCOLATOR_RETURN_IF_ERROR(CheckRowKey(key));
  if (mutations.empty()) return absl::InvalidArgumentError("No mutations provided");
  return CheckMutations(table, mutations);
}

template <typename Mutations>
bool NeedsRow(const Mutations& mutations) {
  return std::any_of(mutations.begin(), mutations.end(), [](const bt::Mutation& mutation) {
    return mutation.has_delete_from_family() || mutation.has_delete_from_row();
  });
}

// Translates checked mutations to those of the store.
class Translation {
 public:
  // `columns` are those of the row in a foreign table, if a mutation needs them.
  Translation(const BigtableTable& table, std::set<std::string> columns)
      : table_(table), columns_(std::move(columns)) {}

  void Add(const bt::Mutation& mutation) {
    if (mutation.has_set_cell()) {
      Set(mutation.set_cell());
    } else if (mutation.has_delete_from_column()) {
      EraseColumn(mutation.delete_from_column());
    } else if (mutation.has_delete_from_family()) {
      EraseColumns(mutation.delete_from_family().family_name() + '\0');
    } else {
      EraseColumns("");
    }
  }
  std::vector<Mutation> Take() { return std::move(out_); }

 private:
  void Set(const bt::Mutation::SetCell& set) {
    BigtableTable::Place place = table_.PlaceOf(set.family_name(), set.column_qualifier());
    const int64_t micros = set.timestamp_micros();
    const Timestamp ts = micros == -1 ? now_ : Timestamp(static_cast<uint64_t>(micros / kMicrosPerTick));
    if (!table_.native()) columns_.insert(place.column);
    out_.push_back(Mutation::Set(place.family, std::move(place.column), ts, set.value()));
  }

  void EraseColumn(const bt::Mutation::DeleteFromColumn& erase) {
    BigtableTable::Place place = table_.PlaceOf(erase.family_name(), erase.column_qualifier());
    const bt::TimestampRange& range = erase.time_range();
    TimestampRange all;
    all.from = Timestamp(static_cast<uint64_t>(range.start_timestamp_micros() / kMicrosPerTick));
    if (range.end_timestamp_micros() != 0) {
      all.until = Timestamp(static_cast<uint64_t>(range.end_timestamp_micros() / kMicrosPerTick));
    }
    out_.push_back(Mutation::Erase(place.family, std::move(place.column), all));
  }

  void EraseColumns(const std::string& prefix) {
    auto column = columns_.lower_bound(prefix);
    while (column != columns_.end() && column->starts_with(prefix)) {
      out_.push_back(Mutation::Erase(Family::kData, *column, TimestampRange::All()));
      column = columns_.erase(column);
    }
  }

  const BigtableTable& table_;
  std::set<std::string> columns_;  // the columns after the mutations so far
  const Timestamp now_ = ServerTime();
  std::vector<Mutation> out_;
};

// Returns no latches for a native table: the store applies its changes atomically.
std::vector<size_t> LatchesOf(const BigtableTable& table, const std::vector<const std::string*>& keys) {
  std::vector<size_t> latches;
  if (table.native()) return latches;
  latches.reserve(keys.size());
  for (const std::string* key : keys) latches.push_back(RowLatches::Of(table.id(), *key));
  return latches;
}

std::set<std::string> ColumnsOf(const Row& row) {
  std::set<std::string> columns;
  for (const Cell& cell : row.cells) {
    if (!cell.column.starts_with('\0')) columns.insert(cell.column);
  }
  return columns;
}

// --- Predicates that the store decides

constexpr size_t kMaxConditionCells = 20'000;  // per condition, because patterns and interleaves multiply cells

// Returns the filters of an interleave. Any other filter counts as an interleave of one.
std::vector<const bt::RowFilter*> Branches(const bt::RowFilter& filter) {
  if (!filter.has_interleave()) return {&filter};
  std::vector<const bt::RowFilter*> branches;
  for (const bt::RowFilter& branch : filter.interleave().filters()) branches.push_back(&branch);
  return branches;
}

// Returns true if the byte, with or without a backslash before it, matches only itself.
bool IsLiteral(char c, bool escaped) {
  if (!absl::ascii_isascii(static_cast<unsigned char>(c))) return false;
  const bool is_plain = absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '\0';
  return is_plain != escaped;
}

// Returns the names in a pattern that consists of names with "|" between them, or nullopt if it is another pattern. The store in
// Bigtable uses such patterns for many columns (src/store/bigtable/filters.cc).
std::optional<std::set<std::string>> NamesIn(std::string_view pattern) {
  std::set<std::string> names;
  std::string name;
  while (!pattern.empty()) {
    if (ConsumePrefix(&pattern, "|")) {
      names.insert(std::exchange(name, std::string()));
      continue;
    }
    const bool escaped = ConsumePrefix(&pattern, "\\");
    if (pattern.empty() || !IsLiteral(pattern.front(), escaped)) return std::nullopt;
    name.push_back(pattern.front());
    pattern.remove_prefix(1);
  }
  names.insert(std::move(name));
  return names;
}

// Returns the selector of a family or a column. With `needs_limit` the filter must have a limit of 1.
std::optional<Selector> ToSelector(const BigtableTable& table, const bt::RowFilter& filter, bool needs_limit) {
  std::vector<Selector> selectors;
  if (!ToSelectors(table, filter, &selectors) || selectors.size() != 1) return std::nullopt;
  if (selectors[0].newest > 1 || (needs_limit && selectors[0].newest != 1)) return std::nullopt;
  return std::move(selectors[0]);
}

bool AddCell(const BigtableTable& table, const bt::RowFilter& filter, bool needs_limit, std::vector<CellRange>* cells) {
  std::optional<Selector> selector = ToSelector(table, filter, needs_limit);
  if (!selector.has_value() || !selector->column.has_value()) return false;
  cells->push_back({selector->family, *std::move(selector->column), selector->range});
  return true;
}

// Adds chain{names, families}: all these columns in all these families.
bool AddPattern(const BigtableTable& table, const bt::RowFilter& filter, bool needs_limit,
                std::vector<CellRange>* cells) {
  if (filter.chain().filters_size() != 2 || !filter.chain().filters(0).has_column_qualifier_regex_filter())
    return false;
  const std::optional<std::set<std::string>> names = NamesIn(filter.chain().filters(0).column_qualifier_regex_filter());
  if (!names.has_value()) return false;
  for (const bt::RowFilter* family : Branches(filter.chain().filters(1))) {
    const std::optional<Selector> selector = ToSelector(table, *family, needs_limit);
    if (!selector.has_value() || selector->column.has_value()) return false;
    if (cells->size() + names->size() > kMaxConditionCells) return false;
    for (const std::string& name : *names) {
      if (name.size() > kQualifierBytes) return false;
      cells->push_back({selector->family, name, selector->range});
    }
  }
  return true;
}

// Converts a cell, a pattern, or an interleave of them. Returns nullopt if the filter is something else.
std::optional<std::vector<CellRange>> ToCellRanges(const BigtableTable& table, const bt::RowFilter& filter,
                                                   bool needs_limit) {
  std::vector<CellRange> cells;
  for (const bt::RowFilter* branch : Branches(filter)) {
    if (!AddCell(table, *branch, needs_limit, &cells) && !AddPattern(table, *branch, needs_limit, &cells)) {
      return std::nullopt;
    }
  }
  return cells;
}

// Returns the condition, kAny or kAll, under which the predicate matches, or nullopt if the store cannot decide it.
std::optional<Condition> ToCondition(const BigtableTable& table, const bt::RowFilter& filter) {
  if (std::optional<std::vector<CellRange>> cells = ToCellRanges(table, filter, false); cells.has_value()) {
    return Condition{Condition::Quantifier::kAny, *std::move(cells)};
  }
  if (filter.chain().filters_size() != 2) return std::nullopt;
  const bt::RowFilter& skip = filter.chain().filters(1);
  if (!skip.has_cells_per_row_offset_filter()) return std::nullopt;
  std::optional<std::vector<CellRange>> cells = ToCellRanges(table, filter.chain().filters(0), true);
  if (!cells.has_value() || std::ssize(*cells) - 1 != skip.cells_per_row_offset_filter()) return std::nullopt;
  return Condition{Condition::Quantifier::kAll, *std::move(cells)};
}

// --- Read-modify-write

// The newest version of a cell, before or after the rules.
struct Newest {
  bool exists = false;
  Timestamp ts;
  std::string value;
};

absl::Status Modify(const bt::ReadModifyWriteRule& rule, Newest* cell) {
  if (rule.rule_case() == bt::ReadModifyWriteRule::kAppendValue) {
    cell->value += rule.append_value();
    return absl::OkStatus();
  }
  constexpr size_t kNumberBytes = 8;
  if (cell->exists && cell->value.size() != kNumberBytes) {
    return absl::FailedPreconditionError(StrCat("Error in field 'increment_amount': the cell in family \"",
                                                rule.family_name(), "\" has ", cell->value.size(),
                                                " bytes; a number has 8"));
  }
  const uint64_t before = cell->exists ? DecodeFixed64(cell->value.data()) : 0;
  cell->value.clear();
  AppendFixed64(&cell->value, before + static_cast<uint64_t>(rule.increment_amount()));
  return absl::OkStatus();
}

absl::Status CheckRules(const BigtableTable& table, const bt::ReadModifyWriteRowRequest& request) {
  PERCOLATOR_RETURN_IF_ERROR(OnlyForeign(table, "ReadModifyWriteRow"));
  PERCOLATOR_RETURN_IF_ERROR(CheckRowKey(request.row_key()));
  if (request.rules().empty()) return absl::InvalidArgumentError("No rules provided");
  if (request.rules_size() > BigtableMutator::kMaxMutations) {
    return absl::InvalidArgumentError(
        StrCat("the request has ", request.rules_size(), " rules; the limit is ", BigtableMutator::kMaxMutations));
  }
  for (const bt::ReadModifyWriteRule& rule : request.rules()) {
    PERCOLATOR_RETURN_IF_ERROR(CheckColumn(table, rule.family_name(), rule.column_qualifier()));
    if (rule.rule_case() == bt::ReadModifyWriteRule::RULE_NOT_SET) {
      return absl::InvalidArgumentError("a rule is empty or of an unknown kind");
    }
  }
  return absl::OkStatus();
}

// REQUIRES: `cells` are in order.
void ToRow(const std::string& key, const BigtableCells& cells, bt::Row* row) {
  PERCOLATOR_DCHECK(std::is_sorted(cells.begin(), cells.end(), [](const BigtableCell& a, const BigtableCell& b) {
    return a.position < b.position;
  }));
  row->set_key(key);
  bt::Family* family = nullptr;
  for (const BigtableCell& cell : cells) {
    if (family == nullptr || family->name() != cell.family) {
      family = row->add_families();
      family->set_name(std::string(cell.family));
    }
    bt::Column* const column = family->add_columns();
    column->set_qualifier(std::string(cell.qualifier));
    bt::Cell* const version = column->add_cells();
    version->set_timestamp_micros(cell.timestamp_micros);
    version->set_value(cell.value.data(), cell.value.size());
  }
}

}  // namespace

absl::StatusOr<Row> BigtableMutator::ReadRow(const BigtableTable& table, const std::string& key,
                                             std::vector<Selector> selectors, RequestMemory::Share* share) {
  return ReadBounded(store_, memory_, {table.id(), key, std::move(selectors)}, share);
}

absl::StatusOr<RowMutation> BigtableMutator::ToRowMutation(const BigtableTable& table, const std::string& key,
                                                           const Mutations& mutations) {
  std::set<std::string> columns;
  if (NeedsRow(mutations)) {
    RequestMemory::Share share;
    PERCOLATOR_ASSIGN_OR_RETURN(const Row row, ReadRow(table, key, {{.family = Family::kData}}, &share));
    columns = ColumnsOf(row);
  }
  Translation translation(table, std::move(columns));
  for (const bt::Mutation& mutation : mutations) translation.Add(mutation);
  return RowMutation{table.id(), key, {}, translation.Take()};
}

absl::Status BigtableMutator::MutateRow(const bt::MutateRowRequest& request) {
  const BigtableTables::Writing writing(tables_);
  PERCOLATOR_ASSIGN_OR_RETURN(const std::shared_ptr<const BigtableTable> table,
                              tables_->FindToWrite(request.table_name()));
  PERCOLATOR_RETURN_IF_ERROR(CheckRow(*table, request.row_key(), request.mutations()));
  const RowLatches::Hold hold(&latches_, LatchesOf(*table, {&request.row_key()}));
  PERCOLATOR_ASSIGN_OR_RETURN(RowMutation mutation, ToRowMutation(*table, request.row_key(), request.mutations()));
  return store_->Mutate({std::move(mutation)}).front().status();
}

absl::StatusOr<bt::MutateRowsResponse> BigtableMutator::MutateRows(const bt::MutateRowsRequest& request) {
  const BigtableTables::Writing writing(tables_);
  PERCOLATOR_ASSIGN_OR_RETURN(const std::shared_ptr<const BigtableTable> table,
                              tables_->FindToWrite(request.table_name()));
  if (request.entries().empty()) return absl::InvalidArgumentError("No mutations provided");
  if (request.entries_size() > kMaxMutations) {
    return absl::InvalidArgumentError(
        StrCat("the request has ", request.entries_size(), " entries; the limit is ", kMaxMutations));
  }
  int64_t count = 0;
  std::vector<const std::string*> keys;
  for (const bt::MutateRowsRequest::Entry& entry : request.entries()) {
    count += entry.mutations_size();
    keys.push_back(&entry.row_key());
  }
  if (count > kMaxMutations) {
    return absl::InvalidArgumentError(StrCat("the request has ", count, " mutations; the limit is ", kMaxMutations));
  }
  const RowLatches::Hold hold(&latches_, LatchesOf(*table, keys));
  std::vector<absl::Status> statuses(static_cast<size_t>(request.entries_size()));
  std::vector<RowMutation> mutations;
  std::vector<size_t> entry_of;  // the index of the entry of each mutation
  const auto apply = [&] {
    const std::vector<absl::StatusOr<MutateResult>> results = store_->Mutate(mutations);
    for (size_t i = 0; i < results.size(); ++i) statuses[entry_of[i]] = results[i].status();
    mutations.clear();
    entry_of.clear();
  };
  for (size_t i = 0; i < statuses.size(); ++i) {
    const bt::MutateRowsRequest::Entry& entry = request.entries(static_cast<int>(i));
    statuses[i] = CheckRow(*table, entry.row_key(), entry.mutations());
    if (!statuses[i].ok()) continue;
    if (NeedsRow(entry.mutations())) apply();  // an earlier entry may change the same row
    absl::StatusOr<RowMutation> mutation = ToRowMutation(*table, entry.row_key(), entry.mutations());
    statuses[i] = mutation.status();
    if (!mutation.ok()) continue;
    mutations.push_back(*std::move(mutation));
    entry_of.push_back(i);
  }
  apply();
  bt::MutateRowsResponse response;
  for (size_t i = 0; i < statuses.size(); ++i) {
    bt::MutateRowsResponse::Entry* const entry = response.add_entries();
    entry->set_index(static_cast<int64_t>(i));
    entry->mutable_status()->set_code(static_cast<int>(statuses[i].code()));
    entry->mutable_status()->set_message(std::string(statuses[i].message()));
  }
  return response;
}

absl::Status BigtableMutator::CheckAndMutateRow(const bt::CheckAndMutateRowRequest& request,
                                                bt::CheckAndMutateRowResponse* response) {
  const BigtableTables::Writing writing(tables_);
  PERCOLATOR_ASSIGN_OR_RETURN(const std::shared_ptr<const BigtableTable> table,
                              tables_->FindToWrite(request.table_name()));
  PERCOLATOR_RETURN_IF_ERROR(CheckRowKey(request.row_key()));
  if (request.true_mutations().empty() && request.false_mutations().empty()) {
    return absl::InvalidArgumentError("No mutations provided");
  }
  for (const Mutations* mutations : {&request.true_mutations(), &request.false_mutations()}) {
    PERCOLATOR_RETURN_IF_ERROR(CheckMutations(*table, *mutations));
  }
  bool matched = false;
  absl::Status status = table->native() ? CheckAndMutateNative(*table, request, &matched)
                                        : CheckAndMutateForeign(*table, request, &matched);
  response->set_predicate_matched(matched);
  return status;
}

absl::Status BigtableMutator::CheckAndMutateNative(const BigtableTable& table,
                                                   const bt::CheckAndMutateRowRequest& request, bool* matched) {
  PERCOLATOR_RETURN_IF_ERROR(BigtableFilter::Compile(request.predicate_filter()).status());
  std::optional<Condition> condition = ToCondition(table, request.predicate_filter());
  const bool if_true = !request.true_mutations().empty();
  const bool possible = condition.has_value() && if_true == request.false_mutations().empty() &&
                        (if_true || condition->quantifier == Condition::Quantifier::kAny);
  if (!possible) {
    return OnlyForeign(
        table,
        "CheckAndMutateRow with mutations for both outcomes, or with a predicate other than the presence of "
        "single columns");
  }
  if (!if_true) condition->quantifier = Condition::Quantifier::kNone;
  PERCOLATOR_ASSIGN_OR_RETURN(
      RowMutation mutation,
      ToRowMutation(table, request.row_key(), if_true ? request.true_mutations() : request.false_mutations()));
  mutation.condition = *std::move(condition);
  PERCOLATOR_ASSIGN_OR_RETURN(const MutateResult result, store_->Mutate({std::move(mutation)}).front());
  *matched = (result == MutateResult::kApplied) == if_true;
  return absl::OkStatus();
}

absl::Status BigtableMutator::CheckAndMutateForeign(const BigtableTable& table,
                                                    const bt::CheckAndMutateRowRequest& request, bool* matched) {
  PERCOLATOR_ASSIGN_OR_RETURN(const ReadPlan plan, PlanRead(table, request.predicate_filter()));
  const RowLatches::Hold hold(&latches_, LatchesOf(table, {&request.row_key()}));
  RequestMemory::Share share;
  PERCOLATOR_ASSIGN_OR_RETURN(const Row row, ReadRow(table, request.row_key(), plan.selectors, &share));
  PERCOLATOR_ASSIGN_OR_RETURN(const BigtableCells left, plan.rest.Apply(request.row_key(), table.CellsOf(row)));
  *matched = !left.empty();
  const Mutations& mutations = *matched ? request.true_mutations() : request.false_mutations();
  if (mutations.empty()) return absl::OkStatus();
  PERCOLATOR_ASSIGN_OR_RETURN(RowMutation mutation, ToRowMutation(table, request.row_key(), mutations));
  return store_->Mutate({std::move(mutation)}).front().status();
}

absl::Status BigtableMutator::ReadModifyWriteRow(const bt::ReadModifyWriteRowRequest& request,
                                                 bt::ReadModifyWriteRowResponse* response) {
  const BigtableTables::Writing writing(tables_);
  PERCOLATOR_ASSIGN_OR_RETURN(const std::shared_ptr<const BigtableTable> table,
                              tables_->FindToWrite(request.table_name()));
  PERCOLATOR_RETURN_IF_ERROR(CheckRules(*table, request));
  std::map<std::string, Newest> newest;
  for (const bt::ReadModifyWriteRule& rule : request.rules()) {
    newest[table->PlaceOf(rule.family_name(), rule.column_qualifier()).column];
  }
  std::vector<Selector> selectors;
  for (const auto& [column, cell] : newest) selectors.push_back({.column = column, .newest = 1});
  const RowLatches::Hold hold(&latches_, LatchesOf(*table, {&request.row_key()}));
  RequestMemory::Share share;
  PERCOLATOR_ASSIGN_OR_RETURN(Row row, ReadRow(*table, request.row_key(), std::move(selectors), &share));
  for (Cell& cell : row.cells) newest[cell.column] = {true, cell.timestamp, std::move(cell.value)};
  const Timestamp now = ServerTime();
  for (const bt::ReadModifyWriteRule& rule : request.rules()) {
    Newest& cell = newest[table->PlaceOf(rule.family_name(), rule.column_qualifier()).column];
    PERCOLATOR_RETURN_IF_ERROR(Modify(rule, &cell));
    cell = {true, std::max(now, cell.ts), std::move(cell.value)};
  }
  row.cells.clear();
  RowMutation mutation{table->id(), request.row_key(), {}, {}};
  for (const auto& [column, cell] : newest) {
    row.cells.push_back({Family::kData, column, cell.ts, cell.value});
    mutation.mutations.push_back(Mutation::Set(Family::kData, column, cell.ts, cell.value));
  }
  PERCOLATOR_RETURN_IF_ERROR(store_->Mutate({mutation}).front().status());
  ToRow(request.row_key(), table->CellsOf(row), response->mutable_row());
  return absl::OkStatus();
}

}  // namespace percolator
