// SPDX-License-Identifier: Apache-2.0

#include "tests/webindex/batch.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "apps/webindex/crawl.h"
#include "apps/webindex/tables.h"
#include "apps/webindex/terms.h"
#include "apps/webindex/url.h"

namespace webindex {
namespace {

constexpr size_t kDescriptionBytes = 200;

std::optional<std::string> ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(in), {});
}

int64_t ModifiedNanos(const std::filesystem::path& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) return 0;
  return static_cast<int64_t>(found.st_mtim.tv_sec) * 1'000'000'000 + found.st_mtim.tv_nsec;
}

std::string ContentKey(const Identity& identity) {
  char hex[33];
  std::snprintf(hex, sizeof(hex), "%016llx%016llx", static_cast<unsigned long long>(identity.content_high()),
                static_cast<unsigned long long>(identity.content_low()));
  return std::string("content:") + hex;
}

// The way of a page to its cluster.
struct Way {
  std::string key;
  std::set<std::string> looked_at;  // whether they exist or not; without the page itself
};

Way WayOf(const BatchInput& input, const std::string& url) {
  Way way;
  std::vector<std::string> walk;
  std::string at = url;
  for (;;) {
    if (at != url) way.looked_at.insert(at);
    const auto page = input.pages.find(at);
    if (page == input.pages.end()) {
      way.key = "url:" + at;
      return way;
    }
    walk.push_back(at);
    const Identity& identity = page->second.parsed.identity;
    if (identity.moved_to().empty()) {
      way.key = ContentKey(identity);
      return way;
    }
    const auto again = std::find(walk.begin(), walk.end(), identity.moved_to());
    if (again != walk.end()) {
      way.key = "url:" + *std::min_element(again, walk.end());
      return way;
    }
    if (walk.size() == kMaxHops) {
      way.key = "url:" + identity.moved_to();
      return way;
    }
    at = identity.moved_to();
  }
}

// The first bytes of a text, without half a character at the end.
std::string Beginning(const std::string& text, size_t bytes) {
  if (text.size() <= bytes) return text;
  size_t end = bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80) --end;
  return text.substr(0, end);
}

Summary SummaryOf(const BatchInput& input, const ParsedPage& page) {
  Summary summary;
  summary.set_description(page.text.description().empty() ? Beginning(page.text.body(), kDescriptionBytes)
                                                          : page.text.description());
  summary.set_resources(static_cast<uint32_t>(page.resources.paths_size()));
  for (const std::string& path : page.resources.paths()) {
    const auto file = input.files.find(path);
    if (file == input.files.end()) {
      summary.set_missing(summary.missing() + 1);
      continue;
    }
    summary.set_bytes(summary.bytes() + file->second.state.bytes());
    if (!file->second.state.excerpt().empty()) summary.add_included(file->second.state.excerpt());
  }
  return summary;
}

void ComputePages(BatchIndex* batch) {
  for (const auto& [url, page] : batch->input.pages) {
    BatchPage& computed = batch->pages[url];
    Way way = WayOf(batch->input, url);
    computed.cluster = way.key;
    batch->clusters[way.key].push_back(url);
    for (const std::string& at : way.looked_at) computed.walk.insert("moved:" + at);
    for (const std::string& path : page.parsed.resources.paths()) computed.depends.insert("file:" + path);
    computed.summary = SummaryOf(batch->input, page.parsed);
  }
}

void InvertLinks(BatchIndex* batch) {
  for (const auto& [source, page] : batch->input.pages) {
    for (const Link& link : page.parsed.links.links()) {
      const bool first = batch->pages[source].targets.insert(link.target()).second;
      std::string& anchors = batch->inlinks[{link.target(), source}];
      if (!first) anchors.push_back('\n');
      anchors.append(link.anchor());
      for (const auto& [term, count] : CountTerms(link.anchor())) batch->anchor_words[link.target()][term] += count;
    }
  }
}

// PageRank by iteration: each step multiplies the error by at most kDamping.
void ComputeRanks(BatchIndex* batch) {
  std::map<std::string, double> ranks;
  for (const auto& [url, page] : batch->pages) ranks[url] = 1;
  double change = 1;
  while (change > 1e-13) {
    std::map<std::string, double> next;
    for (const auto& [url, rank] : ranks) next[url] += 1 - kDamping;
    for (const auto& [url, page] : batch->pages) {
      const double share = ranks[url] / static_cast<double>(std::max<size_t>(page.targets.size(), 1));
      for (const std::string& target : page.targets) {
        if (ranks.count(target) > 0) next[target] += kDamping * share;
      }
    }
    change = 0;
    for (const auto& [url, rank] : ranks) change = std::max(change, std::abs(next[url] - rank) / rank);
    ranks = std::move(next);
  }
  for (auto& [url, page] : batch->pages) page.rank = ranks[url];
}

}  // namespace

BatchInput ReadFolder(const std::string& folder, std::string_view base) {
  BatchInput input;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!std::filesystem::is_regular_file(entry.symlink_status())) continue;
    const std::optional<std::string> url = UrlOfFile(entry.path().lexically_relative(folder).generic_string());
    if (!url.has_value()) continue;
    const std::optional<std::string> contents = ReadFile(entry.path());
    if (!contents.has_value()) continue;
    if (IsPage(*url)) {
      input.pages[*url] = {*contents, ModifiedNanos(entry.path()), ParsePage(base, *url, *contents)};
    } else {
      input.files[*url] = {FileStateOf(*url, *contents), ModifiedNanos(entry.path())};
    }
  }
  return input;
}

BatchIndex ComputeBatch(BatchInput input) {
  BatchIndex batch;
  batch.input = std::move(input);
  ComputePages(&batch);
  InvertLinks(&batch);
  ComputeRanks(&batch);
  return batch;
}

std::string CanonicalOf(const std::vector<std::string>& members, const std::map<std::string, int64_t>& ranks) {
  std::string best;
  int64_t best_rank = 0;
  for (const std::string& member : members) {
    const auto found = ranks.find(member);
    const int64_t rank = found == ranks.end() ? 0 : found->second;
    if (best.empty() || rank > best_rank || (rank == best_rank && member < best)) {
      best = member;
      best_rank = rank;
    }
  }
  return best;
}

Indexed DocumentOf(const BatchIndex& batch, const std::vector<std::string>& members, const std::string& canonical) {
  const Text& text = batch.input.pages.at(canonical).parsed.text;
  Indexed document;
  document.set_url(canonical);
  for (const std::string& member : members) document.add_members(member);
  document.set_title(text.title());
  document.set_body(text.body());
  document.set_description(text.description());
  document.set_near_key(text.near_key());
  std::map<std::string, Posting> postings;
  uint32_t length = 0;
  for (const auto& [term, count] : CountTerms(text.body())) {
    postings[term].set_body(count);
    length += count;
  }
  for (const auto& [term, count] : CountTerms(text.title())) {
    postings[term].set_title(count);
    length += count;
  }
  for (const std::string& member : members) {
    const auto words = batch.anchor_words.find(member);
    if (words == batch.anchor_words.end()) continue;
    for (const auto& [term, count] : words->second) {
      Posting& posting = postings[term];
      posting.set_anchors(posting.anchors() + static_cast<uint32_t>(count));
    }
  }
  document.set_length(length);
  for (const auto& [term, posting] : postings) {
    IndexedTerm* added = document.add_terms();
    added->set_term(term);
    *added->mutable_posting() = posting;
  }
  return document;
}

}  // namespace webindex
