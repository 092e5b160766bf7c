// SPDX-License-Identifier: Apache-2.0

// Words of documents, counted as the documents change: the smallest chain of observers.
//
//     documents   row: name    contents   a document
//                              counted    its words and how many of each, as they were counted last
//     words                               a combine queue: for each word the number of its occurrences
//
//     contents changes -> observer "words":      adds the difference to what was counted before to the queue
//                      -> observer "fold-words":  the queue folds what was added into the counts
//
// A document that is edited costs as much as its words, not as much as all documents; so does one that is deleted. Two
// documents with a common word never wait for each other: what they add goes to cells of their own.

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdint>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "percolator/cluster.h"
#include "percolator/combine_queue.h"
#include "percolator/loader.h"
#include "percolator/observer.h"
#include "percolator/status_macros.h"

namespace {

using percolator::Cluster;
using percolator::Column;
using percolator::CombineQueue;
using percolator::Duration;
using percolator::Loader;
using percolator::LoadProgress;
using percolator::ObserverMetrics;
using percolator::ReadWrite;
using percolator::Snapshot;
using percolator::Sum;
using percolator::Worker;

using Counts = std::map<std::string, int64_t>;

// Stores counts as text: a line "word number" for each word.
struct CountsCodec {
  using Param = const Counts&;
  static std::string Encode(const Counts& counts) {
    std::string text;
    for (const auto& [word, count] : counts) text += word + " " + std::to_string(count) + "\n";
    return text;
  }
  static std::optional<Counts> Decode(std::string_view text) {
    Counts counts;
    std::istringstream in{std::string(text)};
    int64_t count = 0;
    for (std::string word; in >> word >> count;) counts[word] = count;
    return in.eof() ? std::optional(counts) : std::nullopt;
  }
};

constexpr Column<std::string> kContents("documents", "contents");
constexpr Column<Counts, CountsCodec> kCounted("documents", "counted");

Counts CountWords(std::string_view text) {
  Counts counts;
  std::string word;
  for (const char c : std::string(text) + " ") {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalpha(byte) != 0) {
      word.push_back(static_cast<char>(std::tolower(byte)));
    } else if (!word.empty()) {
      ++counts[std::exchange(word, {})];
    }
  }
  return counts;
}

// The observer. It may run many times for one change, and commits once: so each change is counted once.
absl::Status CountChange(const CombineQueue<int64_t>& words, ReadWrite& t, const std::string& document) {
  PERCOLATOR_ASSIGN_OR_RETURN((auto [contents, counted]), t.GetColumns(document, kContents, kCounted));
  const Counts now = CountWords(contents.value_or(""));  // empty if the document was deleted
  Counts deltas = now;
  for (const auto& [word, count] : counted.value_or(Counts())) deltas[word] -= count;
  std::erase_if(deltas, [](const auto& delta) { return delta.second == 0; });
  words.Add(t, deltas);
  t.SetOrDelete(kCounted, document, now.empty() ? std::nullopt : std::optional(now));
  return absl::OkStatus();
}

using Documents = std::map<std::string, std::string>;  // contents by name

Documents Sample() {
  static const char* const kSentences[] = {
      "The river carries what the rain has brought.",
      "A change upstream is a change downstream, a little later.",
      "No one counts the whole sea again because it rained.",
      "What the river has counted once, the river does not count twice.",
      "Some rain falls on dry land and is not seen again.",
      "The miller knows the river by the turning of the wheel.",
      "Where two streams meet, neither waits for the other.",
  };
  Documents documents;
  for (int i = 0; i < 1000; ++i) {
    std::string& contents = documents["sample" + std::to_string(i)];
    for (int n = 0; n <= i % 5; ++n) contents += std::string(kSentences[(i + 3 * n) % std::size(kSentences)]) + "\n";
  }
  return documents;
}

absl::Status Load(const Cluster& cluster, const Documents& documents) {
  Loader loader(cluster, {.expected = documents.size(), .on_progress = [](const LoadProgress& progress) {
                            std::cout << "  loaded " << ToString(progress) << std::endl;
                          }});
  for (const auto& document : documents) {
    loader.Add([&document](ReadWrite& t) { t.Set(kContents, document.first, document.second); });
  }
  return loader.Finish();
}

// Every third document gets another text, every fifth is deleted.
absl::Status EditAndDelete(const Cluster& cluster, const Documents& documents) {
  Loader loader(cluster);
  size_t i = 0;
  for (const auto& document : documents) {
    const std::string& name = document.first;
    if (i % 5 == 0) {
      loader.Add([&name](ReadWrite& t) { t.Delete(kContents, name); });
    } else if (i % 3 == 0) {
      loader.Add([&name](ReadWrite& t) -> absl::Status {
        PERCOLATOR_ASSIGN_OR_RETURN(const std::string text, t.Get(kContents, name, ""));
        t.Set(kContents, name, "edited " + text.substr(0, text.size() / 2));
        return absl::OkStatus();
      });
    }
    ++i;
  }
  return loader.Finish();
}

// Returns the counts of the words in all documents.
absl::StatusOr<Counts> Recount(const Snapshot& view) {
  Counts counts;
  for (const auto& document : view.Scan(kContents)) {
    PERCOLATOR_RETURN_IF_ERROR(document.status());
    for (const auto& [word, count] : CountWords(document->value)) counts[word] += count;
  }
  return counts;
}

void ShowTop(const Counts& counts) {
  std::vector<std::pair<int64_t, std::string>> top;
  for (const auto& [word, count] : counts) top.emplace_back(-count, word);
  std::sort(top.begin(), top.end());
  for (size_t i = 0; i < std::min<size_t>(top.size(), 5); ++i) {
    std::cout << std::setw(8) << -top[i].first << " " << top[i].second << "\n";
  }
}

// Waits for the observers. Then counts all documents again, and compares.
absl::Status Compare(const Cluster& cluster, Worker& worker, const CombineQueue<int64_t>& words) {
  PERCOLATOR_RETURN_IF_ERROR(worker.WaitUntilIdle(std::chrono::minutes(10)));
  PERCOLATOR_ASSIGN_OR_RETURN(Snapshot now, cluster.GetSnapshot());
  Counts counts;
  PERCOLATOR_RETURN_IF_ERROR(
      words.ForEach(now, [&](std::string_view word, int64_t count) { counts.emplace(word, count); }));
  std::cout << counts.size() << " words; the most frequent:\n";
  ShowTop(counts);
  PERCOLATOR_ASSIGN_OR_RETURN(const Counts recount, Recount(now));
  if (counts != recount) return absl::DataLossError("a recount of all documents finds other numbers");
  std::cout << "A recount of all documents finds the same.\n\n";
  return absl::OkStatus();
}

double Milliseconds(Duration duration) { return std::chrono::duration<double, std::milli>(duration).count(); }

void ShowMetrics(const Worker& worker) {
  for (const ObserverMetrics& m : worker.metrics()) {
    std::cout << m.name << ": " << m.runs << " runs, " << m.commits << " commits, " << m.conflicts << " conflicts, "
              << m.failures << " failures; from change to observed " << Milliseconds(m.latency_p50) << " ms (median), "
              << Milliseconds(m.latency_p99) << " ms (99 of 100)\n";
  }
}

absl::Status Run(const std::string& address) {
  PERCOLATOR_ASSIGN_OR_RETURN(Cluster cluster, Cluster::Open(address));
  const CombineQueue<int64_t> words("words", Sum);
  PERCOLATOR_RETURN_IF_ERROR(cluster.EnsureTable("documents"));
  PERCOLATOR_RETURN_IF_ERROR(words.EnsureTable(cluster));

  Worker worker(cluster);
  worker.Observe(kContents, "words",
                 [words](ReadWrite& t, const std::string& document) { return CountChange(words, t, document); });
  words.Attach(worker);
  PERCOLATOR_RETURN_IF_ERROR(worker.Start());

  const Documents documents = Sample();
  std::cout << "Loading " << documents.size() << " documents:\n";
  PERCOLATOR_RETURN_IF_ERROR(Load(cluster, documents));
  PERCOLATOR_RETURN_IF_ERROR(Compare(cluster, worker, words));
  std::cout << "Editing every third document, deleting every fifth:\n";
  PERCOLATOR_RETURN_IF_ERROR(EditAndDelete(cluster, documents));
  PERCOLATOR_RETURN_IF_ERROR(Compare(cluster, worker, words));
  std::cout << worker.DescribeGraph() << "\n";
  ShowMetrics(worker);
  return cluster.Close();  // also stops the worker
}

}  // namespace

int main(int argc, char** argv) {
  const absl::Status status = Run(argc > 1 ? argv[1] : "memory:");
  if (!status.ok()) std::cerr << "wordcount: " << status.message() << "\n";
  return status.ok() ? 0 : 1;
}
