// What a page looks like depends on files that it is rendered with: images, style sheets, includes. Its summary is made again
// when one of them changes, and only then.

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "apps/webindex/cells.h"
#include "apps/webindex/document.pb.h"
#include "apps/webindex/observers.h"
#include "apps/webindex/tables.h"

namespace webindex {

using percolator::CellName;
using percolator::ReadWrite;

namespace {

constexpr size_t kLongestDescription = 200;  // bytes, if it is taken from the body

// The beginning of a text of UTF-8, cut between characters.
std::string_view Beginning(std::string_view text, size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  return text.substr(0, most);
}

absl::StatusOr<Summary> SummaryOf(ReadWrite& t, const Text& text, const Resources& resources) {
  Summary summary;
  summary.set_description(text.description().empty() ? std::string(Beginning(text.body(), kLongestDescription))
                                                     : text.description());
  std::vector<CellName> cells;
  for (const std::string& path : resources.paths()) cells.push_back(Cell(kFiles, path, kState));
  const absl::StatusOr<std::vector<Value>> states = t.Get(cells);
  if (!states.ok()) return states.status();
  summary.set_resources(resources.paths_size());
  for (const Value& value : *states) {
    if (!value.has_value()) {
      summary.set_missing(summary.missing() + 1);
      continue;
    }
    const absl::StatusOr<FileState> state = MessageIn<FileState>(value);
    if (!state.ok()) return state.status();
    summary.set_bytes(summary.bytes() + state->bytes());
    if (!state->excerpt().empty()) summary.add_included(state->excerpt());
  }
  return summary;
}

}  // namespace

absl::Status DependOnResources(ReadWrite& t, const std::string& url) {
  const absl::StatusOr<Value> value = t.Get(kPages, url, kResources);
  if (!value.ok()) return value.status();
  const absl::StatusOr<Resources> resources = MessageIn<Resources>(*value);
  if (!resources.ok()) return resources.status();
  std::set<std::string> topics;
  for (const std::string& path : resources->paths()) topics.insert(FileTopic(path));
  if (absl::Status s = Subscribe(t, url, kDepends, topics).status(); !s.ok()) return s;
  return t.Notify(kPages, url, kSummarize);  // reads the files in a later transaction: pipeline.h, rule 2
}

absl::Status Summarize(ReadWrite& t, const std::string& url) {
  const absl::StatusOr<std::vector<Value>> values =
      t.Get({Cell(kPages, url, kText), Cell(kPages, url, kResources), Cell(kPages, url, kSummary)});
  if (!values.ok()) return values.status();
  Value made;  // none, if there is no such page
  if ((*values)[0].has_value()) {
    const absl::StatusOr<Text> text = MessageIn<Text>((*values)[0]);
    const absl::StatusOr<Resources> resources = MessageIn<Resources>((*values)[1]);
    if (!text.ok()) return text.status();
    if (!resources.ok()) return resources.status();
    const absl::StatusOr<Summary> summary = SummaryOf(t, *text, *resources);
    if (!summary.ok()) return summary.status();
    made = summary->SerializeAsString();
  }
  return PutOrVerify(t, kPages, url, kSummary, (*values)[2], made);
}

}  // namespace webindex
