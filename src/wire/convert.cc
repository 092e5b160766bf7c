// SPDX-License-Identifier: Apache-2.0

#include "src/wire/convert.h"

#include <utility>

#include "percolator/status_macros.h"
#include "src/base/strings.h"

namespace percolator {
namespace {

v1::Family ToMessage(Family family) { return static_cast<v1::Family>(family); }

absl::StatusOr<Family> FromMessage(v1::Family family) {
  if (!v1::Family_IsValid(family)) {
    return absl::InvalidArgumentError(StrCat("invalid family number ", static_cast<int>(family)));
  }
  return static_cast<Family>(family);
}

void ToMessage(const TimestampRange& range, v1::TimestampRange* message) {
  message->set_from(range.from.value());
  if (range.until != Timestamp::Infinity()) message->set_until(range.until.value());
}

TimestampRange FromMessage(const v1::TimestampRange& message) {
  return {Timestamp(message.from()), message.has_until() ? Timestamp(message.until()) : Timestamp::Infinity()};
}

void ToMessage(const Selector& selector, v1::Selector* message) {
  message->set_family(ToMessage(selector.family));
  if (selector.column.has_value()) message->set_column(*selector.column);
  ToMessage(selector.range, message->mutable_range());
  message->set_newest(selector.newest);
}

void ToMessage(const Condition& condition, v1::Condition* message) {
  message->set_quantifier(static_cast<v1::Condition::Quantifier>(condition.quantifier));
  for (const CellRange& cell : condition.cells) {
    v1::CellRange* const one = message->add_cells();
    one->set_family(ToMessage(cell.family));
    one->set_column(cell.column);
    ToMessage(cell.range, one->mutable_range());
  }
}

absl::StatusOr<Condition> FromMessage(v1::Condition* message) {
  if (!v1::Condition::Quantifier_IsValid(message->quantifier())) {
    return absl::InvalidArgumentError(
        StrCat("invalid quantifier ", static_cast<int>(message->quantifier()), " in a condition"));
  }
  PERCOLATOR_ASSIGN_OR_RETURN(std::vector<CellRange> cells, FromMessages<CellRange>(message->mutable_cells()));
  return Condition{static_cast<Condition::Quantifier>(message->quantifier()), std::move(cells)};
}

void ToMessage(const Mutation& mutation, v1::Mutation* message) {
  if (mutation.kind == Mutation::Kind::kErase) {
    v1::Mutation::Erase* const erase = message->mutable_erase();
    erase->set_family(ToMessage(mutation.family));
    erase->set_column(mutation.column);
    ToMessage(mutation.range, erase->mutable_range());
    return;
  }
  v1::Mutation::Set* const set = message->mutable_set();
  set->set_family(ToMessage(mutation.family));
  set->set_column(mutation.column);
  if (mutation.range.from != JointMutation::AtCommit()) set->set_timestamp(mutation.range.from.value());
  if (mutation.range.until != mutation.range.from.Next()) set->set_until(mutation.range.until.value());
  set->set_value(mutation.value);
}

}  // namespace

absl::StatusOr<Selector> FromMessage(v1::Selector* message) {
  PERCOLATOR_ASSIGN_OR_RETURN(const Family family, FromMessage(message->family()));
  Selector selector{family, {}, FromMessage(message->range()), message->newest()};
  if (message->has_column()) selector.column = std::move(*message->mutable_column());
  return selector;
}

absl::StatusOr<CellRange> FromMessage(v1::CellRange* message) {
  PERCOLATOR_ASSIGN_OR_RETURN(const Family family, FromMessage(message->family()));
  return CellRange{family, std::move(*message->mutable_column()), FromMessage(message->range())};
}

absl::StatusOr<Mutation> FromMessage(v1::Mutation* message) {
  if (message->has_erase()) {
    v1::Mutation::Erase* const erase = message->mutable_erase();
    PERCOLATOR_ASSIGN_OR_RETURN(const Family family, FromMessage(erase->family()));
    return Mutation::Erase(family, std::move(*erase->mutable_column()), FromMessage(erase->range()));
  }
  if (!message->has_set()) return absl::InvalidArgumentError("invalid mutation: it neither sets nor erases");
  v1::Mutation::Set* const set = message->mutable_set();
  PERCOLATOR_ASSIGN_OR_RETURN(const Family family, FromMessage(set->family()));
  const Timestamp ts = set->has_timestamp() ? Timestamp(set->timestamp()) : JointMutation::AtCommit();
  Mutation mutation = Mutation::Set(family, std::move(*set->mutable_column()), ts, std::move(*set->mutable_value()));
  if (set->has_until()) mutation.range.until = Timestamp(set->until());
  return mutation;
}

absl::StatusOr<Cell> FromMessage(v1::Cell* message) {
  PERCOLATOR_ASSIGN_OR_RETURN(const Family family, FromMessage(message->family()));
  return Cell{family, std::move(*message->mutable_column()), Timestamp(message->timestamp()),
              std::move(*message->mutable_value())};
}

void ToMessage(const RowRead& read, v1::RowRead* message) {
  message->set_table(read.table);
  message->set_row(read.row);
  for (const Selector& selector : read.selectors) ToMessage(selector, message->add_selectors());
}

absl::StatusOr<RowRead> FromMessage(v1::RowRead* message) {
  PERCOLATOR_ASSIGN_OR_RETURN(std::vector<Selector> selectors, FromMessages<Selector>(message->mutable_selectors()));
  return RowRead{std::move(*message->mutable_table()), std::move(*message->mutable_row()), std::move(selectors)};
}

void ToMessage(const ScanRequest& request, v1::ScanRequest* message) {
  message->set_table(request.table);
  message->set_start(request.rows.start);
  if (request.rows.limit.has_value()) message->set_limit(*request.rows.limit);
  for (const Selector& selector : request.selectors) ToMessage(selector, message->add_selectors());
  message->set_row_limit(request.row_limit);
  message->set_reverse(request.reverse);
}

absl::StatusOr<ScanRequest> FromMessage(v1::ScanRequest* message) {
  PERCOLATOR_ASSIGN_OR_RETURN(std::vector<Selector> selectors, FromMessages<Selector>(message->mutable_selectors()));
  ScanRequest request{std::move(*message->mutable_table()),
                      {std::move(*message->mutable_start()), {}},
                      std::move(selectors),
                      message->row_limit(),
                      message->reverse()};
  if (message->has_limit()) request.rows.limit = std::move(*message->mutable_limit());
  return request;
}

void ToMessage(const RowMutation& mutation, v1::RowMutation* message) {
  message->set_table(mutation.table);
  message->set_row(mutation.row);
  if (!mutation.condition.cells.empty()) ToMessage(mutation.condition, message->mutable_condition());
  for (const Mutation& one : mutation.mutations) ToMessage(one, message->add_mutations());
}

absl::StatusOr<RowMutation> FromMessage(v1::RowMutation* message) {
  PERCOLATOR_ASSIGN_OR_RETURN(Condition condition, FromMessage(message->mutable_condition()));
  PERCOLATOR_ASSIGN_OR_RETURN(std::vector<Mutation> mutations, FromMessages<Mutation>(message->mutable_mutations()));
  return RowMutation{std::move(*message->mutable_table()), std::move(*message->mutable_row()), std::move(condition),
                     std::move(mutations)};
}

void ToMessage(Row row, v1::Row* message) {
  message->set_key(std::move(row.key));
  for (Cell& cell : row.cells) {
    v1::Cell* const one = message->add_cells();
    one->set_family(ToMessage(cell.family));
    one->set_column(std::move(cell.column));
    one->set_timestamp(cell.timestamp.value());
    one->set_value(std::move(cell.value));
  }
}

absl::StatusOr<Row> FromMessage(v1::Row* message) {
  PERCOLATOR_ASSIGN_OR_RETURN(std::vector<Cell> cells, FromMessages<Cell>(message->mutable_cells()));
  return Row{std::move(*message->mutable_key()), std::move(cells)};
}

}  // namespace percolator
