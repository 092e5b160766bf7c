// SPDX-License-Identifier: Apache-2.0

#include "apps/percolator/listing.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "absl/strings/escaping.h"
#include "apps/percolator/text.h"

namespace percolator::cli {
namespace {

constexpr size_t kPortion = 1000;

std::string Upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

}  // namespace

Listing::Listing(std::ostream& out, bool json, std::vector<std::string> titles)
    : out_(out), json_(json), titles_(std::move(titles)), widths_(titles_.size()) {
  for (std::string& title : titles_) title = Upper(std::move(title));
}

void Listing::Add(std::vector<std::string> cells, const Json& object) {
  if (json_) {
    out_ << (size_ == 0 ? "[\n" : ",\n") << object.dump();
  } else {
    portion_.push_back(std::move(cells));
    if (portion_.size() == kPortion) PrintPortion();
  }
  ++size_;
}

void Listing::End() {
  if (json_) {
    out_ << (size_ == 0 ? "[]\n" : "\n]\n");
  } else {
    PrintPortion();
  }
}

// An empty table has no titles. The command prints a note instead.
void Listing::PrintPortion() {
  if (portion_.empty()) return;
  for (size_t i = 0; i < titles_.size(); ++i) {
    widths_[i] = std::max(widths_[i], WidthOf(titles_[i]));
    for (const std::vector<std::string>& cells : portion_) widths_[i] = std::max(widths_[i], WidthOf(cells[i]));
  }
  if (!std::exchange(titles_printed_, true)) PrintLine(titles_);
  for (const std::vector<std::string>& cells : portion_) PrintLine(cells);
  portion_.clear();
}

void Listing::PrintLine(const std::vector<std::string>& cells) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    line += cells[i];
    line.append(widths_[i] - WidthOf(cells[i]) + 2, ' ');
  }
  line.erase(line.find_last_not_of(' ') + 1);
  out_ << line << "\n";
}

Json CellJson(const CellName& cell) {
  return {{"table", Escaped(cell.table)}, {"row", Escaped(cell.row)}, {"column", Escaped(cell.column)}};
}

void SetValue(Json* object, std::string_view bytes) {
  if (IsUtf8(bytes)) {
    (*object)["value"] = bytes;
  } else {
    (*object)["value_base64"] = absl::Base64Escape(absl::string_view(bytes.data(), bytes.size()));
  }
}

void SetTimestamp(Json* object, const std::string& name, Timestamp ts) {
  (*object)[name] = ts.value();
  (*object)[name + "_time"] = TimeText(ts);
}

void PrintJson(std::ostream& out, const Json& json) { out << json.dump() << "\n"; }

void PrintCommitted(std::ostream& out, bool json, std::string_view what, const CellName& cell, Timestamp committed) {
  if (json) {
    Json object = CellJson(cell);
    SetTimestamp(&object, "commit_ts", committed);
    PrintJson(out, object);
  } else {
    out << what << " " << CellText(cell) << ", committed at " << committed.ToString() << "\n";
  }
}

}  // namespace percolator::cli
