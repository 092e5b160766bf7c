// SPDX-License-Identifier: Apache-2.0

// Summaries of pages. A summary depends on the page and on the files that it is rendered with: images, style sheets, includes.
// It is made again only when one of them changes.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/webindex/document.pb.h"
#include "apps/webindex/observers.h"
#include "apps/webindex/tables.h"
#include "percolator/status_macros.h"

namespace webindex {

using percolator::ReadView;
using percolator::ReadWrite;

namespace {

constexpr size_t kMaxDescriptionBytes = 200;  // if it is taken from the body

// The beginning of a UTF-8 text, cut between characters.
std::string_view Beginning(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  while (max_bytes > 0 && (static_cast<unsigned char>(text[max_bytes]) & 0xC0) == 0x80) --max_bytes;
  return text.substr(0, max_bytes);
}

absl::StatusOr<Summary> SummaryOf(const ReadView& view, const Text& text, const Resources& resources) {
  Summary summary;
  summary.set_description(text.description().empty() ? std::string(Beginning(text.body(), kMaxDescriptionBytes))
                                                     : text.description());
  const std::vector<std::string> paths(resources.paths().begin(), resources.paths().end());
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<std::optional<FileState>> states, view.GetRows(kState, paths));
  summary.set_resources(resources.paths_size());
  for (const std::optional<FileState>& state : states) {
    if (!state.has_value()) {
      summary.set_missing(summary.missing() + 1);
      continue;
    }
    summary.set_bytes(summary.bytes() + state->bytes());
    if (!state->excerpt().empty()) summary.add_included(state->excerpt());
  }
  return summary;
}

}  // namespace

absl::Status DependOnResources(ReadWrite& t, const std::string& url) {
  PERCOLATOR_ASSIGN_OR_RETURN(const Resources resources, t.Get(kResources, url, {}));
  Topics topics;
  for (const std::string& path : resources.paths()) topics.insert(FileTopic(path));
  PERCOLATOR_RETURN_IF_ERROR(Subscribe(t, url, kDepends, topics).status());
  t.Notify(kSummarize, url);  // reads the files in a later transaction: pipeline.h, rule 2
  return absl::OkStatus();
}

absl::Status Summarize(ReadWrite& t, const std::string& url) {
  PERCOLATOR_ASSIGN_OR_RETURN((const auto [text, resources, was]), t.GetColumns(url, kText, kResources, kSummary));
  std::optional<Summary> now;  // absent if there is no such page
  if (text.has_value()) {
    PERCOLATOR_ASSIGN_OR_RETURN(now, SummaryOf(t, *text, resources.value_or(Resources())));
  }
  t.SetOrVerify(kSummary, url, was, now);
  return absl::OkStatus();
}

}  // namespace webindex
