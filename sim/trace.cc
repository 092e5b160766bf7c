// SPDX-License-Identifier: Apache-2.0

#include "sim/trace.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "absl/strings/escaping.h"
#include "src/base/strings.h"

namespace percolator::sim {
namespace {

constexpr size_t kValueBytes = 16;

std::string Cut(std::string_view value) {
  std::string out = absl::CHexEscape({value.data(), std::min(value.size(), kValueBytes)});
  if (value.size() > kValueBytes) out += "..";
  return out;
}

std::string Text(const TimestampRange& range) {
  if (range == TimestampRange::All()) return "";
  if (range == TimestampRange::Exactly(range.from)) return StrCat("@", range.from.ToString());
  return StrCat("[", range.from.ToString(), ",", range.until.ToString(), ")");
}

std::string Text(Family family, std::string_view column, const TimestampRange& range) {
  return StrCat(FamilyName(family), ":", Cut(column), Text(range));
}

std::string Text(const Selector& selector) {
  const std::string newest = selector.newest == Selector::kAllVersions ? "" : StrCat("#", selector.newest);
  return StrCat(Text(selector.family, selector.column.value_or("*"), selector.range), newest);
}

std::string Text(const Mutation& mutation) {
  const bool set = mutation.kind == Mutation::Kind::kSet;
  std::string out = StrCat(set ? "set " : "erase ", Text(mutation.family, mutation.column, mutation.range));
  if (set) out += StrCat("=", Cut(mutation.value));
  return out;
}

std::string Text(const CellRange& cell) { return Text(cell.family, cell.column, cell.range); }

std::string Text(const Cell& cell) {
  return StrCat(Text(cell.family, cell.column, TimestampRange::Exactly(cell.timestamp)), "=", Cut(cell.value));
}

template <typename T>
std::string Join(const std::vector<T>& things, std::string_view between) {
  std::string out;
  for (const T& thing : things) out += StrCat(out.empty() ? "" : between, Text(thing));
  return out;
}

std::string Text(const Condition& condition) {
  static constexpr std::string_view kNames[] = {"none", "any", "all"};
  if (condition.cells.empty()) return "";
  return StrCat(" if ", kNames[static_cast<size_t>(condition.quantifier)], "(", Join(condition.cells, " "), ")");
}

uint64_t HashOf(uint64_t hash, Family family, std::string_view column, Timestamp ts, std::string_view value) {
  hash = Mix(Mix(hash, static_cast<uint64_t>(family)), HashBytes(column));
  return Mix(Mix(hash, ts.value()), HashBytes(value));
}

}  // namespace

void Trace::Line(Duration time, std::string_view source, std::string_view text) {
  if (!on()) return;
  char head[64];
  const int64_t micros = time.count();
  std::snprintf(head, sizeof(head), "%6" PRId64 ".%03" PRId64 "ms  %-8.*s ", micros / 1000, micros % 1000,
                static_cast<int>(source.size()), source.data());
  if (lines_.size() >= keep_) {
    lines_.pop_front();
    ++dropped_;
  }
  lines_.push_back(StrCat(head, text));
}

std::string Trace::Text() const {
  std::string out;
  if (dropped_ > 0) out = StrCat("(", dropped_, " lines before)\n");
  for (const std::string& line : lines_) out += StrCat(line, "\n");
  return out;
}

std::string Brief(const Cell& cell) { return Text(cell); }

std::string Brief(const std::vector<Cell>& cells) { return Join(cells, " "); }

std::string Brief(const RowRead& read) {
  return StrCat("read ", read.table, "/", Cut(read.row), " ", Join(read.selectors, " "));
}

std::string Brief(const ScanRequest& request) {
  const std::string limit = request.rows.limit.has_value() ? Cut(*request.rows.limit) : "end";
  return StrCat(request.reverse ? "reverse scan " : "scan ", request.table, "[", Cut(request.rows.start), ",", limit,
                ") ", Join(request.selectors, " "));
}

std::string Brief(const RowMutation& mutation) {
  return StrCat("mutate ", mutation.table, "/", Cut(mutation.row), Text(mutation.condition), " ",
                Join(mutation.mutations, ", "));
}

std::string Brief(const absl::Status& status) {
  return status.ok() ? "ok" : StrCat(absl::StatusCodeToString(status.code()), " ", ToPiece(status.message()));
}

std::string Brief(const absl::StatusOr<MutateResult>& result) {
  if (!result.ok()) return Brief(result.status());
  return *result == MutateResult::kApplied ? "applied" : "condition failed";
}

uint64_t HashOf(const RowMutation& mutation) {
  uint64_t hash = Mix(HashBytes(mutation.table), HashBytes(mutation.row));
  for (const CellRange& c : mutation.condition.cells) hash = HashOf(hash, c.family, c.column, c.range.from, {});
  for (const Mutation& m : mutation.mutations) hash = HashOf(hash, m.family, m.column, m.range.from, m.value);
  return hash;
}

uint64_t HashOf(const std::vector<Cell>& cells) {
  uint64_t hash = cells.size();
  for (const Cell& c : cells) hash = HashOf(hash, c.family, c.column, c.timestamp, c.value);
  return hash;
}

}  // namespace percolator::sim
