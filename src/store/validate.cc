// SPDX-License-Identifier: Apache-2.0

#include "src/store/validate.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "percolator/status.h"
#include "percolator/status_macros.h"
#include "src/base/strings.h"

namespace percolator {
namespace {

constexpr size_t kTableNameBytes = 64;

absl::Status TooMany(std::string_view what, size_t size, size_t limit, std::string_view unit) {
  return absl::InvalidArgumentError(StrCat(what, " has ", size, " ", unit, ", more than the limit of ", limit));
}

absl::Status CheckRowKey(const std::string& key, const StoreLimits& limits) {
  if (key.empty()) return absl::InvalidArgumentError("row key is empty");
  if (key.size() > limits.max_row_key_bytes) {
    return TooMany("row key", key.size(), limits.max_row_key_bytes, "bytes");
  }
  return absl::OkStatus();
}

// A border of a row range may be one byte longer than a row key: RowRange::After and Single make such borders.
absl::Status CheckRowBorder(std::string_view what, const std::string& key, const StoreLimits& limits) {
  if (key.empty() || key.size() - 1 <= limits.max_row_key_bytes) return absl::OkStatus();
  return TooMany(what, key.size(), limits.max_row_key_bytes + 1, "bytes");
}

absl::Status CheckFamily(Family family) {
  const int number = static_cast<int>(family);
  if (number < kFamilyCount) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("unknown family ", number));
}

absl::Status CheckColumn(Family family, const std::string& column, const StoreLimits& limits) {
  PERCOLATOR_RETURN_IF_ERROR(CheckFamily(family));
  if (column.size() <= limits.max_column_bytes) return absl::OkStatus();
  return TooMany(StrCat("name of a column in family ", FamilyName(family)), column.size(), limits.max_column_bytes,
                 "bytes");
}

absl::Status CheckSelectors(const std::vector<Selector>& selectors, const StoreLimits& limits) {
  if (selectors.size() > limits.max_row_selectors) {
    return TooMany("read of a row", selectors.size(), limits.max_row_selectors, "selectors");
  }
  for (const Selector& selector : selectors) {
    PERCOLATOR_RETURN_IF_ERROR(selector.column.has_value() ? CheckColumn(selector.family, *selector.column, limits)
                                                           : CheckFamily(selector.family));
  }
  return absl::OkStatus();
}

absl::Status CheckCondition(const Condition& condition, const StoreLimits& limits) {
  if (condition.quantifier > Condition::Quantifier::kAll) {
    return absl::InvalidArgumentError(StrCat("unknown quantifier ", static_cast<int>(condition.quantifier)));
  }
  if (condition.cells.size() > limits.max_row_mutations) {
    return TooMany("condition of a row mutation", condition.cells.size(), limits.max_row_mutations, "cells");
  }
  for (const CellRange& cell : condition.cells) {
    PERCOLATOR_RETURN_IF_ERROR(CheckColumn(cell.family, cell.column, limits));
  }
  return absl::OkStatus();
}

// Whether a cell may be set at JointMutation::AtCommit().
enum class AtCommit { kRefused, kAllowed };

absl::Status CheckSet(const Mutation& set, const StoreLimits& limits, AtCommit at_commit) {
  const bool drawn_later = at_commit == AtCommit::kAllowed && set.range.from == JointMutation::AtCommit();
  if (set.range.from == Timestamp::Infinity() && !drawn_later) {
    return absl::InvalidArgumentError("a cell cannot be set at an infinite timestamp");
  }
  if (set.range != TimestampRange::Exactly(set.range.from)) {
    return absl::InvalidArgumentError(StrCat("a cell is set at exactly one timestamp, not at [",
                                             set.range.from.ToString(), ", ", set.range.until.ToString(), ")"));
  }
  if (set.value.size() > limits.max_value_bytes) {
    return TooMany(StrCat("value of column \"", absl::CHexEscape(set.column), "\""), set.value.size(),
                   limits.max_value_bytes, "bytes");
  }
  return absl::OkStatus();
}

absl::Status CheckMutation(const Mutation& mutation, const StoreLimits& limits, AtCommit at_commit) {
  if (absl::Status status = CheckColumn(mutation.family, mutation.column, limits); !status.ok()) {
    return status;
  }
  switch (mutation.kind) {
    case Mutation::Kind::kSet:
      return CheckSet(mutation, limits, at_commit);
    case Mutation::Kind::kErase:
      return absl::OkStatus();
  }
  return absl::InvalidArgumentError(StrCat("unknown kind of mutation ", static_cast<int>(mutation.kind)));
}

// Counted against StoreLimits::max_row_mutation_bytes: every key, column and value of the request.
size_t BytesOf(const RowMutation& mutation) {
  size_t bytes = mutation.row.size();
  for (const CellRange& cell : mutation.condition.cells) bytes += cell.column.size();
  for (const Mutation& m : mutation.mutations) bytes += m.column.size() + m.value.size();
  return bytes;
}

absl::Status ValidateRowMutation(const RowMutation& mutation, const StoreLimits& limits, AtCommit at_commit) {
  PERCOLATOR_RETURN_IF_ERROR(CheckRowKey(mutation.row, limits));
  PERCOLATOR_RETURN_IF_ERROR(CheckCondition(mutation.condition, limits));
  if (mutation.mutations.size() > limits.max_row_mutations) {
    return TooMany("row mutation", mutation.mutations.size(), limits.max_row_mutations, "mutations");
  }
  for (const Mutation& m : mutation.mutations) {
    PERCOLATOR_RETURN_IF_ERROR(CheckMutation(m, limits, at_commit));
  }
  const size_t bytes = BytesOf(mutation);
  if (bytes <= limits.max_row_mutation_bytes) return absl::OkStatus();
  return TooMany("row mutation", bytes, limits.max_row_mutation_bytes, "bytes");
}

absl::Status BelowSafePoint(Timestamp ts, Timestamp safe_point) {
  return absl::OutOfRangeError(StrCat("transaction ", ts.ToString(),
                                      " is too old to write: it is not newer than the safe point ",
                                      safe_point.ToString(), "; begin a new one"));
}

}  // namespace

absl::Status ValidateTableName(const std::string& name) {
  if (name.empty()) return absl::InvalidArgumentError("table name is empty");
  if (name.size() > kTableNameBytes) return TooMany("table name", name.size(), kTableNameBytes, "bytes");
  const bool well_formed = std::all_of(name.begin(), name.end(),
                                       [](unsigned char c) { return absl::ascii_isalnum(c) || c == '_' || c == '-'; });
  if (well_formed) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("table name \"", absl::CHexEscape(name), "\" is not valid: only letters, digits, _ and - are allowed"));
}

absl::Status ValidateTable(const TableInfo& info, const StoreLimits& limits) {
  PERCOLATOR_RETURN_IF_ERROR(ValidateTableName(info.name));
  if (info.schema.size() <= limits.max_schema_bytes) return absl::OkStatus();
  return TooMany(StrCat("schema of table ", info.name), info.schema.size(), limits.max_schema_bytes, "bytes");
}

absl::Status RowBytes::TooManyBytes() const {
  return absl::ResourceExhaustedError(
      StrCat("the read selects more than ", limit_,
             " bytes of one row, which is the limit; select fewer columns or versions"));
}

absl::Status CheckRoomForTable(const TableInfo& info, const std::vector<TableInfo>& tables, const StoreLimits& limits) {
  if (tables.size() >= limits.max_tables) {
    return absl::ResourceExhaustedError(StrCat("cannot create table ", info.name, ": there are ", limits.max_tables,
                                               " tables, which is the limit; drop one first"));
  }
  size_t bytes = info.schema.size();
  for (const TableInfo& table : tables) bytes += table.schema.size();
  if (bytes <= limits.max_total_schema_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(StrCat("with table ", info.name, " the schemas of all tables would have ", bytes,
                                             " bytes, more than the limit of ", limits.max_total_schema_bytes,
                                             "; drop a table with a large schema first"));
}

absl::Status ValidateRead(const RowRead& read, const StoreLimits& limits) {
  PERCOLATOR_RETURN_IF_ERROR(CheckRowKey(read.row, limits));
  return CheckSelectors(read.selectors, limits);
}

absl::Status ValidateScan(const ScanRequest& request, const StoreLimits& limits) {
  if (request.row_limit == 0) return absl::InvalidArgumentError("row limit of a scan is 0");
  if (absl::Status status = CheckRowBorder("start of a row range", request.rows.start, limits); !status.ok()) {
    return status;
  }
  if (request.rows.limit.has_value()) {
    PERCOLATOR_RETURN_IF_ERROR(CheckRowBorder("limit of a row range", *request.rows.limit, limits));
  }
  return CheckSelectors(request.selectors, limits);
}

absl::Status ValidateMutation(const RowMutation& mutation, const StoreLimits& limits) {
  return ValidateRowMutation(mutation, limits, AtCommit::kRefused);
}

absl::Status ValidateJointMutation(const JointMutation& mutation, const StoreLimits& limits) {
  std::set<std::pair<std::string_view, std::string_view>> rows;
  size_t bytes = 0;
  for (const RowMutation& row : mutation.rows) {
    PERCOLATOR_RETURN_IF_ERROR(ValidateRowMutation(row, limits, AtCommit::kAllowed));
    if (mutation.rows.size() > 1 && !rows.emplace(row.table, row.row).second) {
      return absl::InvalidArgumentError(
          StrCat("row \"", absl::CHexEscape(row.row), "\" of table ", row.table, " occurs twice in a joint mutation"));
    }
    bytes += BytesOf(row);
  }
  if (bytes > limits.max_row_mutation_bytes) {
    return TooMany("joint mutation", bytes, limits.max_row_mutation_bytes, "bytes");
  }
  return absl::OkStatus();
}

absl::Status CheckSafePoint(const RowMutation& mutation, Timestamp safe_point) {
  for (const Mutation& m : mutation.mutations) {
    if (m.kind == Mutation::Kind::kSet && m.family == Family::kLock && m.range.from <= safe_point) {
      return BelowSafePoint(m.range.from, safe_point);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSafePoint(const JointMutation& mutation, Timestamp safe_point) {
  return mutation.start_ts <= safe_point ? BelowSafePoint(mutation.start_ts, safe_point) : absl::OkStatus();
}

absl::Status NoTimestampDrawn(const absl::Status& oracle) {
  const absl::StatusCode code =
      IsTransient(oracle) ? absl::StatusCode::kUnavailable : absl::StatusCode::kFailedPrecondition;
  return {code, StrCat("nothing was applied: the oracle gave no timestamp: ", oracle.message())};
}

void SetDrawnTimestamp(Timestamp drawn, Mutation* mutation) {
  if (mutation->kind == Mutation::Kind::kSet) {
    mutation->range = TimestampRange::Exactly(TimestampOfSet(*mutation, drawn));
  }
}

absl::Status UnknownTable(const std::string& name) {
  return absl::NotFoundError(StrCat("there is no table \"", absl::CHexEscape(name), "\""));
}

absl::Status TableExists(const std::string& name) {
  return absl::AlreadyExistsError(StrCat("table \"", absl::CHexEscape(name), "\" exists already"));
}

absl::Status StoreClosed(std::string_view store) {
  return absl::FailedPreconditionError(StrCat("the ", store, " is closed"));
}

}  // namespace percolator
