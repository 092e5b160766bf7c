// SPDX-License-Identifier: Apache-2.0

// The cost of an edit of a document in the web index, and the time until a search finds it, as the index grows.
//
// Makes sites of 1,000 to 30,000 pages. A page has about 150 different words after Zipf, and some ten links to other pages,
// most to pages with many links (preferential attachment), each with the title of its target as anchor. The benchmark crawls
// each site into a new index, as fast as possible. Then it edits random documents one by one: it replaces a few words, or
// changes the targets of two links. For each edit it counts the reads of the store, the transactions that committed and the
// observers that ran, until all work was done. It also measures the time from the commit that loaded the file until a search
// found a new word in it. It prints medians, and some means.
//
// If these numbers stay constant, the work for a change does not depend on the size of the index, which is Percolator's aim.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "apps/webindex/index.h"
#include "benchmarks/require.h"

namespace webindex {
namespace {

using Clock = std::chrono::steady_clock;
using percolator::Require;

constexpr char kBase[] = "https://bench.example/";
constexpr size_t kVocabulary = 20'000;
constexpr size_t kDifferentWords = 150;
constexpr size_t kLinks = 10;
constexpr size_t kPagesInAFolder = 1000;

double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Invented words: the k-th is 1/k as frequent as the first.
class Language {
 public:
  Language() : sums_(kVocabulary) {
    double sum = 0;
    for (size_t i = 0; i < kVocabulary; ++i) sums_[i] = sum += 1.0 / static_cast<double>(i + 1);
  }

  std::string Word(std::mt19937_64* random) const {
    const double at = std::uniform_real_distribution<double>(0, sums_.back())(*random);
    return Spelled(static_cast<size_t>(std::upper_bound(sums_.begin(), sums_.end(), at) - sums_.begin()));
  }

  // The same number always gives the same word.
  static std::string Spelled(size_t number) {
    static constexpr char kConsonants[] = "bdfgklmnprst";
    static constexpr char kVowels[] = "aeiou";
    std::string word;
    do {
      word += kConsonants[number % 12];
      word += kVowels[number / 12 % 5];
      number /= 60;
    } while (number > 0);
    return word;
  }

 private:
  std::vector<double> sums_;
};

class Site {
 public:
  Site(std::string folder, size_t pages) : folder_(std::move(folder)), pages_(pages) {
    for (size_t i = 0; i < pages; ++i) {
      std::filesystem::create_directories(std::filesystem::path(folder_ + "/" + PathOf(i)).parent_path());
      MakePage(i);
    }
    for (size_t i = 0; i < pages; ++i) Write(i);
  }

  const std::string& folder() const { return folder_; }
  static std::string PathOf(size_t page) {
    return std::to_string(page / kPagesInAFolder) + "/p" + std::to_string(page) + ".html";
  }

  // Replaces some words, one of them with `mark`. Returns the path.
  std::string EditText(const std::string& mark) {
    const size_t page = random_() % pages_.size();
    std::vector<std::string>& words = pages_[page].words;
    for (int i = 0; i < 4; ++i) words[random_() % words.size()] = language_.Word(&random_);
    words.back() = mark;
    return Write(page);
  }

  // Changes the targets of two links.
  std::string EditLinks(const std::string& mark) {
    const size_t page = random_() % pages_.size();
    for (int i = 0; i < 2; ++i) pages_[page].links[random_() % kLinks] = AnyTarget();
    pages_[page].words.back() = mark;
    return Write(page);
  }

 private:
  struct Page {
    std::string title;
    std::vector<std::string> words;
    std::vector<size_t> links;
  };

  void MakePage(size_t number) {
    Page& page = pages_[number];
    page.title = language_.Word(&random_) + " " + language_.Word(&random_) + " " + Language::Spelled(number);
    std::set<std::string> different;
    while (different.size() < kDifferentWords) {
      page.words.push_back(language_.Word(&random_));
      different.insert(page.words.back());
    }
    for (size_t i = 0; i < kLinks; ++i) page.links.push_back(AnyTarget());
  }

  // Usually a page that has a link already; sometimes any page.
  size_t AnyTarget() {
    const bool anew = linked_.empty() || random_() % 4 == 0;
    linked_.push_back(anew ? random_() % pages_.size() : linked_[random_() % linked_.size()]);
    return linked_.back();
  }

  std::string Write(size_t number) {
    const Page& page = pages_[number];
    std::string html = "<!DOCTYPE html><title>" + page.title + "</title>\n<p>";
    for (const std::string& word : page.words) html += word + " ";
    for (const size_t target : page.links) {
      html += "\n<a href=\"/" + PathOf(target) + "\">" + pages_[target].title + "</a>";
    }
    std::ofstream(folder_ + "/" + PathOf(number), std::ios::trunc) << html << "\n";
    return PathOf(number);
  }

  const std::string folder_;
  const Language language_;
  std::mt19937_64 random_{1};
  std::vector<Page> pages_;
  std::vector<size_t> linked_;
};

// The cost of a kind of edits. A change of links spreads as long as ranks change by more than a little, so it spreads far
// from a page of high rank. Therefore medians and means differ.
struct PerEdit {
  double reads = 0;  // medians
  double commits = 0;
  double runs = 0;
  double found_ms = 0;
  double mean_reads = 0;
  double mean_runs = 0;
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

struct Row {
  size_t pages = 0;
  double pages_per_second = 0;
  PerEdit text;
  PerEdit links;
};

int64_t RunsOf(const percolator::Worker& worker) {
  int64_t runs = 0;
  for (const percolator::ObserverMetrics& observer : worker.metrics()) runs += observer.runs;
  return runs;
}

// Waits until a search for the word has a hit; returns the milliseconds.
double WaitUntilFound(const Serving& serving, const std::string& word) {
  const auto no_ranks = [](const std::vector<std::string>& urls) { return std::vector<double>(urls.size(), 1.0); };
  const Clock::time_point start = Clock::now();
  while (serving.Search(word, 0, 1, no_ranks).matches == 0) {
    if (SecondsSince(start) > 60) Require(absl::DeadlineExceededError(word), "waiting for an edit to be found");
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return SecondsSince(start) * 1000;
}

class Measurement {
 public:
  Measurement(const std::string& dir, size_t pages, int threads) : site_(dir + "/site", pages) {
    row_.pages = pages;
    WebIndexOptions options;
    options.address = "rocksdb:" + dir + "/data";
    options.cluster.store.durability = percolator::Durability::kNoSync;
    options.worker.threads = threads;
    options.crawl.folder = site_.folder();
    options.crawl.base = kBase;
    absl::StatusOr<std::unique_ptr<WebIndex>> index = WebIndex::Open(options);
    Require(index.status(), "opening the index");
    index_ = *std::move(index);
  }

  Row Run(int edits) {
    const Clock::time_point start = Clock::now();
    Require(index_->Update().status(), "crawling");
    WaitUntilIdle();
    row_.pages_per_second = static_cast<double>(row_.pages) / SecondsSince(start);
    row_.text = Edit(edits, &Site::EditText);
    row_.links = Edit(edits, &Site::EditLinks);
    Require(index_->Close(), "closing the index");
    return row_;
  }

 private:
  void WaitUntilIdle() { Require(index_->WaitUntilIdle(std::chrono::minutes(20)), "waiting for observers"); }

  PerEdit Edit(int edits, std::string (Site::*edit)(const std::string&)) {
    std::vector<double> reads, commits, runs, found_ms;
    for (int i = 0; i < edits; ++i) {
      const percolator::ClusterMetrics before = index_->cluster().metrics();
      const int64_t runs_before = RunsOf(index_->worker());
      const std::string mark = "mark" + std::to_string(++marks_);
      const std::string path = (site_.*edit)(mark);
      Require(index_->crawl().Refresh(path), "loading an edited file");
      found_ms.push_back(WaitUntilFound(index_->serving(), mark));
      WaitUntilIdle();
      const percolator::ClusterMetrics after = index_->cluster().metrics();
      reads.push_back(static_cast<double>(after.store_reads - before.store_reads));
      commits.push_back(static_cast<double>(after.commits - before.commits));
      runs.push_back(static_cast<double>(RunsOf(index_->worker()) - runs_before));
    }
    return {.reads = Median(reads),
            .commits = Median(commits),
            .runs = Median(runs),
            .found_ms = Median(found_ms),
            .mean_reads = Mean(reads),
            .mean_runs = Mean(runs)};
  }

  Site site_;
  std::unique_ptr<WebIndex> index_;
  Row row_;
  int marks_ = 0;
};

void Print(const Row& row) {
  for (const bool links : {false, true}) {
    const PerEdit& edit = links ? row.links : row.text;
    std::printf("| %zu | %.0f | %s | %.0f | %.0f | %.0f | %.0f | %.0f | %.1f |\n", row.pages, row.pages_per_second,
                links ? "links" : "text", edit.reads, edit.mean_reads, edit.commits, edit.runs, edit.mean_runs,
                edit.found_ms);
  }
  std::fflush(stdout);
}

int Main(int argc, char** argv) {
  CLI::App app(
      "The cost of an edit of a document in a web index, and the time until a search finds it, as the index grows");
  std::vector<size_t> sizes = {1'000, 3'000, 10'000, 30'000};
  int edits = 100;
  int threads = 4;
  app.add_option("--pages", sizes, "sizes of the sites")->capture_default_str();
  app.add_option("--edits", edits, "number of edits of each kind")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--threads", threads, "threads of the worker")->check(CLI::PositiveNumber)->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  std::printf("| pages | pages/s | edit | reads | mean | commits | observer runs | mean | found after ms |\n");
  std::printf("| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  std::vector<Row> rows;
  for (const size_t pages : sizes) {
    std::string dir = (std::filesystem::temp_directory_path() / "percolator-webindex-XXXXXX").string();
    if (mkdtemp(dir.data()) == nullptr) {
      std::perror("webindex_bench: mkdtemp");
      return 1;
    }
    rows.push_back(Measurement(dir, pages, threads).Run(edits));
    Print(rows.back());
    std::filesystem::remove_all(dir);
  }
  const Row &first = rows.front(), &last = rows.back();
  const size_t few = first.pages / 1000, many = last.pages / 1000;
  std::printf("webindex pages_per_s=%.0f edit_ms=%.1f reads_per_edit_%zuk=%.1f reads_per_edit_%zuk=%.1f",
              last.pages_per_second, last.text.found_ms, few, first.text.mean_reads, many, last.text.mean_reads);
  std::printf(" link_reads_per_edit_%zuk=%.1f link_reads_per_edit_%zuk=%.1f\n", few, first.links.mean_reads, many,
              last.links.mean_reads);
  return 0;
}

}  // namespace
}  // namespace webindex

int main(int argc, char** argv) { return webindex::Main(argc, argv); }
