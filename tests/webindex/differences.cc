// SPDX-License-Identifier: Apache-2.0

// Differences: every table as it should be, beside its actual content.
//
// Most cells are known to the last byte, and tables are compared as a whole, so that missing and superfluous cells are
// both found. Cells that depend on the order of events are checked for their invariants: ranks and shares, times,
// histories.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <numeric>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/webindex/tables.h"
#include "apps/webindex/terms.h"
#include "percolator/export_queue.h"
#include "tests/webindex/batch.h"

namespace webindex {
namespace {

using percolator::CellView;
using percolator::ExportQueue;
using percolator::ScannedRow;
using percolator::Snapshot;

constexpr size_t kMaxDifferences = 20;
constexpr size_t kLongestText = 300;
constexpr uint32_t kExportShards = 4;

using Columns = std::map<std::string, std::string>;
using Table = std::map<std::string, Columns>;

template <typename Message>
std::string TextOf(const std::string& bytes) {
  Message message;
  return message.ParseFromString(bytes) ? "{" + message.ShortDebugString() + "}" : "malformed: " + bytes;
}

std::string ReadableRow(const std::string& row) {
  std::string text;
  for (const char c : row) text += c == '\0' ? std::string(" | ") : std::string(1, c);
  return text;
}

// The content of a cell, readable for people.
std::string ReadableValue(const std::string& table, const std::string& column, const std::string& value) {
  using Reader = std::string (*)(const std::string&);
  static const std::map<std::string, Reader> readers = {{"pages.text", TextOf<Text>},
                                                        {"pages.identity", TextOf<Identity>},
                                                        {"pages.links", TextOf<Links>},
                                                        {"pages.inverted", TextOf<Links>},
                                                        {"pages.resources", TextOf<Resources>},
                                                        {"pages.summary", TextOf<Summary>},
                                                        {"files.state", TextOf<FileState>},
                                                        {"clusters.choice", TextOf<Choice>},
                                                        {"pages.indexed", TextOf<Indexed>},
                                                        {"index.posting", TextOf<Posting>},
                                                        {"anchor_words.value", TextOf<AnchorWords>}};
  const auto reader = readers.find(table + "." + column);
  std::string text = reader == readers.end() ? "\"" + value + "\"" : reader->second(value);
  if (text.size() > kLongestText) text = text.substr(0, kLongestText) + "...";
  return text;
}

class Comparison {
 public:
  Comparison(const BatchIndex& batch, const Snapshot& snapshot, const Serving& serving)
      : batch_(batch), snapshot_(snapshot), serving_(serving) {}

  std::vector<std::string> Run() {
    const Table pages = Read(kPages);
    ReadRanks(pages);
    MakeDocuments();
    ComparePages(pages);
    CheckRanks(pages);
    CompareFiles();
    CompareSubscribers();
    CompareClusters();
    CompareLinks();
    CompareAnchorWords();
    CheckExports();
    CompareServing();
    if (more_ > 0) found_.push_back("and " + std::to_string(more_) + " more");
    return found_;
  }

 private:
  void Say(const std::string& difference) {
    if (found_.size() < kMaxDifferences) {
      found_.push_back(difference);
    } else {
      ++more_;
    }
  }

  Table Read(std::string_view name) {
    Table table;
    for (const absl::StatusOr<ScannedRow>& row : snapshot_.Scan(name)) {
      if (!row.ok()) {
        Say(std::string(name) + ": " + row.status().ToString());
        break;
      }
      for (const ScannedRow::Column& column : row->columns) table[row->key][column.name] = column.value;
    }
    return table;
  }

  // In both directions: missing or different cells, and superfluous ones.
  void Compare(std::string_view name, const Table& wanted, const Table& found) {
    const std::string table(name);
    const auto say = [&](const std::string& row, const std::string& column, const std::string& what) {
      Say(table + " " + ReadableRow(row) + " " + column + ": " + what);
    };
    static const Columns none;
    for (const auto& [row, columns] : wanted) {
      const auto there = found.find(row);
      const Columns& values = there == found.end() ? none : there->second;
      for (const auto& [column, value] : columns) {
        const auto cell = values.find(column);
        const std::string wanted_text = ReadableValue(table, column, value);
        if (cell == values.end()) {
          say(row, column, "is missing, should be " + wanted_text);
        } else if (cell->second != value) {
          say(row, column, "is " + ReadableValue(table, column, cell->second) + ", should be " + wanted_text);
        }
      }
    }
    for (const auto& [row, columns] : found) {
      const auto there = wanted.find(row);
      for (const auto& [column, value] : columns) {
        if (there != wanted.end() && there->second.count(column) > 0) continue;
        say(row, column, "is " + ReadableValue(table, column, value) + ", should not be there");
      }
    }
  }

  void MakeDocuments() {
    for (const auto& [key, members] : batch_.clusters) {
      const std::string canonical = CanonicalOf(members, ranks_);
      canonicals_[key] = canonical;
      Indexed document = DocumentOf(batch_, members, canonical);
      for (const IndexedTerm& term : document.terms()) documents_of_[term.term()].insert(canonical);
      documents_[canonical] = std::move(document);
    }
  }

  // --- pages

  void ReadRanks(const Table& pages) {
    for (const auto& [url, page] : batch_.pages) {
      const auto row = pages.find(url);
      if (row == pages.end() || row->second.count(std::string(kRank.name())) == 0) {
        Say("pages " + url + ": has no rank");
        continue;
      }
      ranks_[url] = std::strtoll(row->second.at(std::string(kRank.name())).c_str(), nullptr, 10);
    }
  }

  static std::string Lines(const std::set<std::string>& topics) {
    std::string lines;
    for (const std::string& topic : topics) lines += (lines.empty() ? "" : "\n") + topic;
    return lines;
  }

  Columns WantedPage(const std::string& url, const BatchPage& page) const {
    const BatchInput::Page& input = batch_.input.pages.at(url);
    return {{std::string(kContents.name()), input.contents},
            {std::string(kText.name()), input.parsed.text.SerializeAsString()},
            {std::string(kIdentity.name()), input.parsed.identity.SerializeAsString()},
            {std::string(kLinks.name()), input.parsed.links.SerializeAsString()},
            {std::string(kInverted.name()), input.parsed.links.SerializeAsString()},
            {std::string(kResources.name()), input.parsed.resources.SerializeAsString()},
            {std::string(kWalk.name()), Lines(page.walk)},
            {std::string(kDepends.name()), Lines(page.depends)},
            {std::string(kCluster.name()), page.cluster},
            {std::string(kSummary.name()), page.summary.SerializeAsString()}};
  }

  void ComparePages(Table pages) {
    Table wanted;
    for (const auto& [url, page] : batch_.pages) {
      wanted[url] = WantedPage(url, page);
      const auto document = documents_.find(url);
      if (document != documents_.end())
        wanted[url][std::string(kIndexed.name())] = document->second.SerializeAsString();
      Columns& found = pages[url];
      CheckStat("pages " + url, found, batch_.input.pages.at(url).modified_nanos, wanted[url].at("contents").size());
      CheckHistory(url, found);
      for (const CellView own : {kStat.At(url), kHistory.At(url), kRank.At(url), kShares.At(url)}) {
        found.erase(std::string(own.column));
      }
      // An empty value and no value are equal.
      for (Columns* columns : {&found, &wanted[url]}) {
        std::erase_if(*columns, [](const auto& cell) { return cell.first != kContents.name() && cell.second.empty(); });
      }
    }
    Compare(kPages, wanted, pages);
  }

  void CheckStat(const std::string& what, const Columns& columns, int64_t modified_nanos, uint64_t bytes) {
    const auto cell = columns.find(std::string(kStat.name()));
    FileStat stat;
    if (cell == columns.end() || !stat.ParseFromString(cell->second)) {
      Say(what + " stat: is missing or malformed");
    } else if (stat.modified_nanos() != modified_nanos || stat.bytes() != bytes) {
      Say(what + " stat: is {" + stat.ShortDebugString() + "}, should be " + std::to_string(modified_nanos) + ", " +
          std::to_string(bytes) + " bytes");
    }
  }

  // The newest version has the page's current state.
  void CheckHistory(const std::string& url, const Columns& columns) {
    const auto cell = columns.find(std::string(kHistory.name()));
    History history;
    if (cell == columns.end() || !history.ParseFromString(cell->second) || history.versions().empty()) {
      Say("pages " + url + " history: is missing, malformed or empty");
      return;
    }
    if (history.versions_size() > static_cast<int>(kKeptVersions)) Say("pages " + url + " history: is too long");
    for (int i = 1; i < history.versions_size(); ++i) {
      if (history.versions(i - 1).timestamp() <= history.versions(i).timestamp()) {
        Say("pages " + url + " history: is not in order: " + history.ShortDebugString());
      }
    }
    const PageVersion& newest = history.versions(0);
    const BatchInput::Page& page = batch_.input.pages.at(url);
    const bool right = newest.bytes() == page.contents.size() && newest.title() == page.parsed.text.title() &&
                       newest.hash() == HashOf(page.contents).low;
    if (!right) Say("pages " + url + " history: the newest version is {" + newest.ShortDebugString() + "}");
  }

  // --- Ranks: stored ranks are consistent to the last unit, and near the true ranks

  void CheckRanks(const Table& pages) {
    std::map<std::string, int64_t> given;
    for (const auto& [url, page] : batch_.pages) {
      const auto row = pages.find(url);
      if (row != pages.end() && ranks_.count(url) > 0) CheckShares(url, page, row->second, &given);
    }
    CompareGiven(given);
    for (const auto& [url, rank] : ranks_) {
      const double exact = batch_.pages.at(url).rank;
      const double stored = static_cast<double>(rank) / kRankUnit;
      const double allowed = kRankTolerance / (1 - kDamping) * exact + kRankTolerance + 1e-6 * exact;
      if (std::abs(stored - exact) > allowed) {
        Say("pages " + url + " rank: is " + std::to_string(stored) + ", should be " + std::to_string(exact) +
            " give or take " + std::to_string(allowed));
      }
      const double received = (1 - kDamping) * kRankUnit + static_cast<double>(given[url]);
      if (std::abs(static_cast<double>(rank) - received) > kRankTolerance * kRankUnit + 2) {
        Say("pages " + url + " rank: is " + std::to_string(rank) + " units, but the shares given to it add up to " +
            std::to_string(received));
      }
    }
  }

  // Each target has got its share of the stored rank.
  void CheckShares(const std::string& url, const BatchPage& page, const Columns& columns,
                   std::map<std::string, int64_t>* given) {
    const auto cell = columns.find(std::string(kShares.name()));
    Shares shares;
    if (cell != columns.end() && !shares.ParseFromString(cell->second)) Say("pages " + url + " shares: malformed");
    const std::set<std::string> targets(shares.targets().begin(), shares.targets().end());
    if (targets != page.targets || shares.targets_size() != static_cast<int>(targets.size())) {
      Say("pages " + url + " shares: are given to {" + shares.ShortDebugString() + "}, not to those it links to");
    }
    for (const std::string& target : shares.targets()) (*given)[target] += shares.share();
    if (targets.empty()) return;
    const double share = kDamping * static_cast<double>(ranks_.at(url)) / static_cast<double>(targets.size());
    if (std::abs(static_cast<double>(shares.share()) - share) > 2) {
      Say("pages " + url + " shares: are " + std::to_string(shares.share()) + " units each, should be " +
          std::to_string(share));
    }
  }

  // The sum that arrived is the sum that was given, to the last unit, even for missing pages.
  void CompareGiven(const std::map<std::string, int64_t>& given) {
    Table wanted;
    for (const auto& [url, units] : given) {
      if (units != 0) wanted[url][std::string(kReceived.name())] = std::to_string(units);
    }
    Compare(kRanks, wanted, Read(kRanks));
    Compare(kRankChanges, {}, Read(kRankChanges));
  }

  // --- The other tables

  void CompareFiles() {
    Table wanted;
    Table found = Read(kFiles);
    for (const auto& [path, file] : batch_.input.files) {
      wanted[path][std::string(kState.name())] = file.state.SerializeAsString();
      CheckStat("files " + path, found[path], file.modified_nanos, file.state.bytes());
      found[path].erase(std::string(kStat.name()));
    }
    Compare(kFiles, wanted, found);
  }

  void CompareSubscribers() {
    Table wanted;
    Table found = Read(kSubscribers);
    for (const auto& [url, page] : batch_.pages) {
      for (const std::set<std::string>* topics : {&page.walk, &page.depends}) {
        for (const std::string& topic : *topics) wanted[PairRow(topic, url)][std::string(kSince.name())] = "";
      }
    }
    for (auto& [row, columns] : found) {
      const auto since = columns.find(std::string(kSince.name()));
      if (since != columns.end()) since->second.clear();  // the time is not compared
    }
    Compare(kSubscribers, wanted, found);
  }

  void CompareClusters() {
    Table clusters;
    Table members;
    Table index;
    for (const auto& [key, urls] : batch_.clusters) {
      Choice choice;
      choice.set_canonical(canonicals_.at(key));
      for (const std::string& url : urls) {
        choice.add_members(url);
        members[PairRow(key, url)][std::string(kMember.name())] = "";
      }
      clusters[key][std::string(kChoice.name())] = choice.SerializeAsString();
    }
    for (const auto& [url, document] : documents_) {
      for (const IndexedTerm& term : document.terms()) {
        index[PairRow(term.term(), url)][std::string(kPosting.name())] = term.posting().SerializeAsString();
      }
    }
    Compare(kClusters, clusters, Read(kClusters));
    Table found_members = Read(kMembers);
    for (auto& [row, columns] : found_members) {
      const auto member = columns.find(std::string(kMember.name()));
      if (member != columns.end()) member->second.clear();  // only its existence is compared
    }
    Compare(kMembers, members, found_members);
    Compare(kIndex, index, Read(kIndex));
  }

  void CompareLinks() {
    Table wanted;
    for (const auto& [pair, anchors] : batch_.inlinks) {
      wanted[PairRow(pair.first, pair.second)][std::string(kAnchors.name())] = anchors;
    }
    Compare(kInlinks, wanted, Read(kInlinks));
  }

  void CompareAnchorWords() {
    Table wanted;
    for (const auto& [url, counts] : batch_.anchor_words) {
      AnchorWords words;
      for (const auto& [term, count] : counts) {
        TermCount* added = words.add_terms();
        added->set_term(term);
        added->set_count(count);
      }
      if (words.terms().empty()) continue;
      wanted["v/" + url]["value"] = words.SerializeAsString();
    }
    Compare(kAnchorWords, wanted, Read(kAnchorWords));
  }

  // All exports are delivered and deleted. Only the counts of each shard remain.
  void CheckExports() {
    const ExportQueue queue = ExportsQueue();
    for (uint32_t shard = 0; shard < kExportShards; ++shard) {
      const absl::StatusOr<ExportQueue::Progress> progress = queue.GetProgress(snapshot_, shard);
      if (!progress.ok()) {
        Say("exports: " + progress.status().ToString());
      } else if (progress->numbered != progress->delivered) {
        Say("exports shard " + std::to_string(shard) + ": " + std::to_string(progress->delivered) + " of " +
            std::to_string(progress->numbered) + " are delivered");
      }
    }
    const Table exports = Read(kExports);
    if (exports.size() > kExportShards) Say("exports: " + std::to_string(exports.size()) + " rows are left");
  }

  // --- The serving side: for every term it has the documents of the index, and answers like one that was just loaded
  // from the tables

  void CompareServing() {
    if (serving_.documents() != batch_.clusters.size()) {
      Say("serving: has " + std::to_string(serving_.documents()) + " documents, should have " +
          std::to_string(batch_.clusters.size()));
    }
    if (serving_.terms() != documents_of_.size()) {
      Say("serving: has " + std::to_string(serving_.terms()) + " terms, should have " +
          std::to_string(documents_of_.size()));
    }
    Serving loaded;
    if (const absl::Status s = loaded.Load(snapshot_); !s.ok()) Say("serving: " + s.ToString());
    for (const auto& [term, urls] : documents_of_) CompareSearch(term, urls, loaded);
  }

  std::vector<double> RanksOf(const std::vector<std::string>& urls) const {
    std::vector<double> ranks;
    for (const std::string& url : urls) {
      const auto found = ranks_.find(url);
      ranks.push_back(found == ranks_.end() ? 0 : static_cast<double>(found->second) / kRankUnit);
    }
    return ranks;
  }

  void CompareSearch(const std::string& term, const std::set<std::string>& wanted, const Serving& loaded) {
    const auto ranks = [this](const std::vector<std::string>& urls) { return RanksOf(urls); };
    const SearchResults live = serving_.Search(term, 0, wanted.size() + 10, ranks);
    std::set<std::string> found;
    for (const Hit& hit : live.hits) {
      found.insert(hit.url);
      found.insert(hit.similar.begin(), hit.similar.end());
    }
    if (found != wanted) Say("serving: \"" + term + "\" finds" + Joined(found) + "; should find" + Joined(wanted));
    const SearchResults anew = loaded.Search(term, 0, wanted.size() + 10, ranks);
    const std::string live_text = TextOfResults(live);
    const std::string anew_text = TextOfResults(anew);
    if (live_text != anew_text) {
      Say("serving: \"" + term + "\" is answered " + live_text + "; loaded anew: " + anew_text);
    }
  }

  static std::string Joined(const std::set<std::string>& urls) {
    return std::accumulate(urls.begin(), urls.end(), std::string(),
                           [](std::string text, const std::string& url) { return std::move(text) + " " + url; });
  }

  static std::string TextOfResults(const SearchResults& results) {
    std::string text = std::to_string(results.matches) + " matches:";
    for (const Hit& hit : results.hits) {
      text += " [" + hit.url + " '" + hit.title + "' ";
      for (const Hit::Piece& piece : hit.snippet) text += piece.marked ? "<" + piece.text + ">" : piece.text;
      for (const std::string& url : hit.duplicates) text += " =" + url;
      for (const std::string& url : hit.similar) text += " ~" + url;
      text += " " + std::to_string(hit.score) + " " + std::to_string(hit.rank) + "]";
    }
    return text;
  }

  const BatchIndex& batch_;
  const Snapshot& snapshot_;
  const Serving& serving_;
  std::map<std::string, int64_t> ranks_;                       // as stored, of existing pages
  std::map<std::string, std::string> canonicals_;              // by cluster
  std::map<std::string, Indexed> documents_;                   // by canonical page
  std::map<std::string, std::set<std::string>> documents_of_;  // canonical pages, by term
  std::vector<std::string> found_;
  size_t more_ = 0;
};

}  // namespace

std::vector<std::string> Differences(const BatchIndex& batch, const Snapshot& snapshot, const Serving& serving) {
  return Comparison(batch, snapshot, serving).Run();
}

}  // namespace webindex
