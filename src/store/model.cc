// SPDX-License-Identifier: Apache-2.0

// The value types of percolator/spi/store.h.

#include <cstdlib>
#include <utility>

#include "percolator/spi/store.h"
#include "percolator/status_macros.h"
#include "src/store/validate.h"

namespace percolator {

std::string_view FamilyName(Family family) {
  switch (family) {
    case Family::kData:
      return "data";
    case Family::kLock:
      return "lock";
    case Family::kWrite:
      return "write";
    case Family::kNotify:
      return "notify";
  }
  std::abort();
}

Mutation Mutation::Set(Family family, std::string column, Timestamp ts, std::string value) {
  return {Kind::kSet, family, std::move(column), TimestampRange::Exactly(ts), std::move(value)};
}

Mutation Mutation::Erase(Family family, std::string column, TimestampRange range) {
  return {Kind::kErase, family, std::move(column), range, {}};
}

void ScanRequest::ContinueAt(std::string resume) {
  if (reverse) {
    rows.limit = std::move(resume);
  } else {
    rows.start = std::move(resume);
  }
}

std::vector<DrawnResult> Store::MutateThenDraw(const std::vector<RowMutation>& mutations) {
  std::vector<DrawnResult> results;
  results.reserve(mutations.size());
  for (absl::StatusOr<MutateResult>& result : Mutate(mutations)) results.push_back({std::move(result), std::nullopt});
  return results;
}

absl::StatusOr<TableInfo> Store::GetTable(const std::string& name) {
  PERCOLATOR_ASSIGN_OR_RETURN(std::vector<TableInfo> tables, ListTables());
  for (TableInfo& table : tables) {
    if (table.name == name) return std::move(table);
  }
  return UnknownTable(name);
}

bool CertainlyNotApplied(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kUnimplemented:
      return true;
    default:
      return false;
  }
}

absl::StatusOr<JointResult> Store::MutateTogether(const JointMutation& /*mutation*/, Oracle* /*oracle*/) {
  return absl::UnimplementedError("this store does not support MutateTogether");
}

}  // namespace percolator
