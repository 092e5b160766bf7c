// Everything that is known of a page.

#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "apps/webindex/api.h"
#include "apps/webindex/cells.h"
#include "apps/webindex/document.pb.h"
#include "apps/webindex/parse.h"
#include "apps/webindex/tables.h"
#include "apps/webindex/terms.h"

namespace webindex {

using nlohmann::json;
using percolator::CellName;
using percolator::ReadView;
using percolator::RowIterator;
using percolator::Snapshot;
using percolator::Timestamp;

namespace {

// Assigns the message of a value, or returns the error.
template <typename Message>
absl::Status ParseInto(const Value& value, Message& message) {
  absl::StatusOr<Message> parsed = MessageIn<Message>(value);
  if (!parsed.ok()) return parsed.status();
  message = *std::move(parsed);
  return absl::OkStatus();
}

template <typename Strings>
json StringsJson(const Strings& strings) {
  return json(std::vector<std::string>(strings.begin(), strings.end()));
}

json LinksJson(const Links& links) {
  json shown = json::array();
  size_t count = 0;
  for (const Link& link : links.links()) {
    if (count++ < kShownLinks) shown.push_back({{"url", link.target()}, {"anchor", link.anchor()}});
  }
  return {{"links", std::move(shown)}, {"count", count}, {"more", count > kShownLinks}};
}

absl::StatusOr<json> LinksToJson(ReadView& view, const std::string& url) {
  const std::unique_ptr<RowIterator> rows =
      view.Scan({.table = std::string(kInlinks), .rows = PairsOf(url), .columns = {std::string(kAnchors)}});
  json shown = json::array();
  bool more = false;
  while (!more && rows->Next()) {
    more = shown.size() == kShownLinks;
    if (!more) shown.push_back({{"url", SecondOf(rows->row().key)}, {"anchor", rows->row().columns[0].value}});
  }
  if (!rows->status().ok()) return rows->status();
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

// The cells of a page, parsed.
struct PageCells {
  bool exists = false;
  Text text;
  Identity identity;
  Links links;
  Resources resources;
  History history;
  Summary summary;
  FileStat stat;
  std::string cluster;
  double rank = 0;
};

absl::StatusOr<PageCells> ReadCells(ReadView& view, const std::string& url) {
  std::vector<CellName> names;
  for (const std::string_view column :
       {kText, kIdentity, kLinks, kResources, kHistory, kSummary, kStat, kCluster, kRank}) {
    names.push_back(Cell(kPages, url, column));
  }
  absl::StatusOr<std::vector<Value>> values = view.Get(names);
  if (!values.ok()) return values.status();
  PageCells cells;
  absl::Status status = ParseInto((*values)[0], cells.text);
  status.Update(ParseInto((*values)[1], cells.identity));
  status.Update(ParseInto((*values)[2], cells.links));
  status.Update(ParseInto((*values)[3], cells.resources));
  status.Update(ParseInto((*values)[4], cells.history));
  status.Update(ParseInto((*values)[5], cells.summary));
  status.Update(ParseInto((*values)[6], cells.stat));
  if (!status.ok()) return status;
  cells.exists = (*values)[6].has_value();
  cells.cluster = (*values)[7].value_or("");
  cells.rank = std::strtod((*values)[8].value_or("0").c_str(), nullptr) / static_cast<double>(kRankUnit);
  return cells;
}

absl::StatusOr<json> ClusterJson(ReadView& view, const std::string& key) {
  if (key.empty()) return json(nullptr);
  const absl::StatusOr<Value> value = view.Get(kClusters, key, kChoice);
  if (!value.ok()) return value.status();
  const absl::StatusOr<Choice> choice = MessageIn<Choice>(*value);
  if (!choice.ok()) return choice.status();
  return json{{"key", key}, {"canonical", choice->canonical()}, {"members", StringsJson(choice->members())}};
}

json PageJson(const std::string& url, const PageCells& cells) {
  return {{"url", url},
          {"exists", cells.exists},
          {"title", cells.text.title()},
          {"text", CutAtCharacter(cells.text.body(), kShownText)},
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

// A version is made by parsing the contents as they were: at the moment of a timestamp in the history the text that was made
// of them was not there yet.
absl::Status Api::AddVersion(const std::string& url, uint64_t at, json& answer) const {
  absl::StatusOr<Snapshot> then = cluster_->AsOf(Timestamp(at));
  if (absl::IsOutOfRange(then.status())) {
    return absl::OutOfRangeError("this version of the page is not kept any more");
  }
  if (!then.ok()) return then.status();
  const absl::StatusOr<Value> contents = then->Get(kPages, url, kContents);
  if (!contents.ok()) return contents.status();
  json version = {{"timestamp", std::to_string(at)}, {"exists", contents->has_value()}};
  if (contents->has_value()) {
    const ParsedPage parsed = ParsePage(options_.base, url, **contents);
    version["title"] = parsed.text.title();
    version["text"] = CutAtCharacter(parsed.text.body(), kShownText);
  }
  answer["version"] = std::move(version);
  return absl::OkStatus();
}

absl::StatusOr<json> Api::Page(const std::string& url, std::optional<uint64_t> at) const {
  absl::StatusOr<Snapshot> now = cluster_->Now();
  if (!now.ok()) return now.status();
  const absl::StatusOr<PageCells> cells = ReadCells(*now, url);
  if (!cells.ok()) return cells.status();
  absl::StatusOr<json> links_in = LinksToJson(*now, url);
  if (!links_in.ok()) return links_in.status();
  if (!cells->exists && cells->history.versions().empty() && (*links_in)["links"].empty()) {
    return absl::NotFoundError("there is no page " + url);
  }
  absl::StatusOr<json> cluster = ClusterJson(*now, cells->cluster);
  if (!cluster.ok()) return cluster.status();
  json answer = PageJson(url, *cells);
  answer["links_in"] = *std::move(links_in);
  answer["cluster"] = *std::move(cluster);
  if (at.has_value()) {
    if (absl::Status s = AddVersion(url, *at, answer); !s.ok()) return s;
  }
  return answer;
}

}  // namespace webindex
