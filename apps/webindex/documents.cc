// SPDX-License-Identifier: Apache-2.0

// The document processor: parses a file into the cells that the other observers read.
//
// It has one input, the contents, with one observer, whose runs for a page cannot overlap. So its outputs need no Verify.

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "apps/webindex/document.pb.h"
#include "apps/webindex/observers.h"
#include "apps/webindex/parse.h"
#include "apps/webindex/tables.h"
#include "apps/webindex/terms.h"
#include "percolator/status_macros.h"

namespace webindex {

using percolator::ReadWrite;
using percolator::Timestamp;

namespace {

absl::StatusOr<History> WithNewVersion(ReadWrite& t, History old, const FileStat& stat, std::string_view contents,
                                       const Text& text) {
  PERCOLATOR_ASSIGN_OR_RETURN(const Timestamp start, t.Start());
  History history;
  PageVersion* newest = history.add_versions();
  newest->set_timestamp(start.value());
  newest->set_loaded_micros(stat.loaded_micros());
  newest->set_title(text.title());
  newest->set_bytes(contents.size());
  newest->set_hash(HashOf(contents).low);
  const int kept = std::min(old.versions_size(), static_cast<int>(kKeptVersions) - 1);
  for (int i = 0; i < kept; ++i) *history.add_versions() = std::move(*old.mutable_versions(i));
  return history;
}

}  // namespace

absl::Status ParseContents(const std::string& base, ReadWrite& t, const std::string& url) {
  PERCOLATOR_ASSIGN_OR_RETURN((auto [contents, stat, history, text, identity, links, resources]),
                              t.GetColumns(url, kContents, kStat, kHistory, kEncoded<kText>, kEncoded<kIdentity>,
                                           kEncoded<kLinks>, kEncoded<kResources>));
  const bool exists = contents.has_value();
  ParsedPage page;
  if (exists) {
    page = ParsePage(base, url, *contents);
    PERCOLATOR_ASSIGN_OR_RETURN(
        const History versions,
        WithNewVersion(t, std::move(history).value_or(History()), stat.value_or(FileStat()), *contents, page.text));
    t.Set(kHistory, url, versions);
  } else if (history.has_value()) {
    t.Delete(kHistory, url);
  }
  // Writes an output only if it has changed, so that observers of it run only then.
  const auto update = [&t, &url, exists](const Column<std::string>& column, const std::optional<std::string>& was,
                                         const auto& message) {
    const std::optional<std::string> now = exists ? std::optional(message.SerializeAsString()) : std::nullopt;
    if (now == was) return false;
    t.SetOrDelete(column, url, now);
    return true;
  };
  if (update(kEncoded<kText>, text, page.text)) {
    t.Notify(kReindex, url);
    t.Notify(kSummarize, url);
  }
  update(kEncoded<kIdentity>, identity, page.identity);
  update(kEncoded<kLinks>, links, page.links);
  update(kEncoded<kResources>, resources, page.resources);
  return absl::OkStatus();
}

}  // namespace webindex
