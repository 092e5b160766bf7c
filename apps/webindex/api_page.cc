// SPDX-License-Identifier: Apache-2.0

// Api::Page: everything that the index knows about a page.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/webindex/api.h"
#include "apps/webindex/document.pb.h"
#include "apps/webindex/parse.h"
#include "apps/webindex/tables.h"
#include "apps/webindex/terms.h"
#include "percolator/status_macros.h"

namespace webindex {

using nlohmann::json;
using percolator::ReadView;
using percolator::Snapshot;
using percolator::Timestamp;

namespace {

template <typename Strings>
json StringsJson(const Strings& strings) {
  return json(std::vector<std::string>(strings.begin(), strings.end()));
}

json LinksJson(const Links& links) {
  json shown = json::array();
  size_t count = 0;
  for (const Link& link : links.links()) {
    if (count++ < kMaxLinksShown) shown.push_back({{"url", link.target()}, {"anchor", link.anchor()}});
  }
  return {{"links", std::move(shown)}, {"count", count}, {"more", count > kMaxLinksShown}};
}

absl::StatusOr<json> LinksToJson(const ReadView& view, const std::string& url) {
  json shown = json::array();
  bool more = false;
  for (const auto& link : view.Scan(kAnchors, {.rows = PairsOf(url), .limit = kMaxLinksShown + 1})) {
    PERCOLATOR_RETURN_IF_ERROR(link.status());
    more = shown.size() == kMaxLinksShown;
    if (!more) shown.push_back({{"url", SecondOf(link->row)}, {"anchor", link->value}});
  }
  return json{{"links", std::move(shown)}, {"more", more}};
}

json HistoryJson(const History& history) {
  json versions = json::array();
  for (const PageVersion& version : history.versions()) {
    versions.push_back({{"timestamp", std::to_string(version.timestamp())},  // more than 53 bits: not a number
                        {"loaded_micros", version.loaded_micros()},
                        {"title", version.title()},
                        {"bytes", version.bytes()}});
  }
  return versions;
}

// The cells of a page. A missing cell is empty.
struct PageCells {
  bool exists = false;
  Text text;
  Identity identity;
  Links links;
  Resources resources;
  History history;
  Summary summary;
  FileStat stat;
  std::optional<std::string> cluster;
  double rank = 0;
};

absl::StatusOr<PageCells> ReadCells(const ReadView& view, const std::string& url) {
  PERCOLATOR_ASSIGN_OR_RETURN(
      (auto [text, identity, links, resources, history, summary, stat, cluster, rank]),
      view.GetColumns(url, kText, kIdentity, kLinks, kResources, kHistory, kSummary, kStat, kCluster, kRank));
  return PageCells{.exists = stat.has_value(),
                   .text = std::move(text).value_or(Text()),
                   .identity = std::move(identity).value_or(Identity()),
                   .links = std::move(links).value_or(Links()),
                   .resources = std::move(resources).value_or(Resources()),
                   .history = std::move(history).value_or(History()),
                   .summary = std::move(summary).value_or(Summary()),
                   .stat = std::move(stat).value_or(FileStat()),
                   .cluster = std::move(cluster),
                   .rank = static_cast<double>(rank.value_or(0)) / static_cast<double>(kRankUnit)};
}

absl::StatusOr<json> ClusterJson(const ReadView& view, const std::optional<std::string>& key) {
  if (!key.has_value()) return json(nullptr);
  PERCOLATOR_ASSIGN_OR_RETURN(const Choice choice, view.Get(kChoice, *key, {}));
  return json{{"key", *key}, {"canonical", choice.canonical()}, {"members", StringsJson(choice.members())}};
}

json PageJson(const std::string& url, const PageCells& cells) {
  return {{"url", url},
          {"exists", cells.exists},
          {"title", cells.text.title()},
          {"text", CutAtCharacter(cells.text.body(), kMaxTextBytesShown)},
          {"text_bytes", cells.text.body().size()},
          {"description", cells.text.description()},
          {"notes", StringsJson(cells.text.notes())},
          {"moved_to", cells.identity.moved_to()},
          {"rank", cells.rank},
          {"bytes", cells.stat.bytes()},
          {"loaded_micros", cells.stat.loaded_micros()},
          {"links_out", LinksJson(cells.links)},
          {"resources", StringsJson(cells.resources.paths())},
          {"summary",
           {{"description", cells.summary.description()},
            {"included", StringsJson(cells.summary.included())},
            {"resources", cells.summary.resources()},
            {"missing", cells.summary.missing()},
            {"bytes", cells.summary.bytes()}}},
          {"history", HistoryJson(cells.history)}};
}

}  // namespace

// Parses the contents of that time, because the text cell was written after the timestamp of the history.
absl::Status Api::AddVersion(const std::string& url, uint64_t at, json& answer) const {
  const absl::StatusOr<Snapshot> then = cluster_.GetSnapshotAt(Timestamp(at));
  if (absl::IsOutOfRange(then.status())) {
    return absl::OutOfRangeError("this version of page " + url + " is no longer kept");
  }
  if (!then.ok()) return then.status();
  PERCOLATOR_ASSIGN_OR_RETURN(const std::optional<std::string> contents, then->Get(kContents, url));
  json version = {{"timestamp", std::to_string(at)}, {"exists", contents.has_value()}};
  if (contents.has_value()) {
    const ParsedPage parsed = ParsePage(options_.base, url, *contents);
    version["title"] = parsed.text.title();
    version["text"] = CutAtCharacter(parsed.text.body(), kMaxTextBytesShown);
  }
  answer["version"] = std::move(version);
  return absl::OkStatus();
}

absl::StatusOr<json> Api::Page(const std::string& url, std::optional<uint64_t> at) const {
  PERCOLATOR_ASSIGN_OR_RETURN(const Snapshot now, cluster_.GetSnapshot());
  PERCOLATOR_ASSIGN_OR_RETURN(const PageCells cells, ReadCells(now, url));
  PERCOLATOR_ASSIGN_OR_RETURN(json links_in, LinksToJson(now, url));
  if (!cells.exists && cells.history.versions().empty() && links_in["links"].empty()) {
    return absl::NotFoundError("there is no page " + url);
  }
  PERCOLATOR_ASSIGN_OR_RETURN(json cluster, ClusterJson(now, cells.cluster));
  json answer = PageJson(url, cells);
  answer["links_in"] = std::move(links_in);
  answer["cluster"] = std::move(cluster);
  if (at.has_value()) {
    PERCOLATOR_RETURN_IF_ERROR(AddVersion(url, *at, answer));
  }
  return answer;
}

}  // namespace webindex
