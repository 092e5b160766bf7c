// The value types of percolator/store.h.

#include <cstdlib>
#include <utility>

#include "percolator/store.h"
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

RowRange RowRange::Single(std::string key) {
  std::string limit = key + '\0';
  return {std::move(key), std::move(limit)};
}

RowRange RowRange::Prefix(std::string_view prefix) {
  // The limit is the prefix with its last byte that can grow grown, and what follows it cut off.
  std::string limit(prefix);
  while (!limit.empty() && limit.back() == '\xff') limit.pop_back();
  if (limit.empty()) return {std::string(prefix), std::nullopt};
  limit.back() = static_cast<char>(limit.back() + 1);
  return {std::string(prefix), std::move(limit)};
}

RowRange RowRange::After(std::string key) {
  key.push_back('\0');
  return {std::move(key), std::nullopt};
}

Mutation Mutation::Set(Family family, std::string column, Timestamp ts, std::string value) {
  return {Kind::kSet, family, std::move(column), TimestampRange::Exactly(ts), std::move(value)};
}

Mutation Mutation::Erase(Family family, std::string column, TimestampRange range) {
  return {Kind::kErase, family, std::move(column), range, {}};
}

std::vector<DrawnResult> Store::MutateThenDraw(const std::vector<RowMutation>& mutations) {
  std::vector<DrawnResult> results;
  results.reserve(mutations.size());
  for (absl::StatusOr<MutateResult>& result : Mutate(mutations)) results.push_back({std::move(result), std::nullopt});
  return results;
}

absl::StatusOr<TableInfo> Store::GetTable(const std::string& name) {
  absl::StatusOr<std::vector<TableInfo>> tables = ListTables();
  if (!tables.ok()) return tables.status();
  for (TableInfo& table : *tables) {
    if (table.name == name) return std::move(table);
  }
  return UnknownTable(name);
}

absl::StatusOr<JointResult> Store::MutateTogether(const JointMutation& /*mutation*/, Oracle* /*oracle*/) {
  return absl::UnimplementedError("this store cannot change several rows in one step");
}

}  // namespace percolator
