// Words of documents, counted as the documents change: the smallest chain of observers.
//
//     documents   row: name    contents   a document
//                              counted    its words and how many of each, as they were counted last
//     words                               a combine queue: for each word the number of its occurrences
//
//     contents changes -> observer "words":      what is there now, less what was counted before, is added to the queue
//                      -> observer "fold-words":  the queue folds what was added into the counts
//
// A document that is edited costs as much as its words, not as much as all documents; so does one that is deleted. Two
// documents with a common word never wait for each other: what they add goes to cells of their own.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "percolator/cluster.h"
#include "percolator/combine_queue.h"
#include "percolator/loader.h"
#include "percolator/observer.h"

namespace {

using percolator::AddDecimals;
using percolator::Cluster;
using percolator::CombineQueue;
using percolator::Duration;
using percolator::Loader;
using percolator::LoadProgress;
using percolator::Notification;
using percolator::ObserverMetrics;
using percolator::ReadWrite;
using percolator::RowIterator;
using percolator::Snapshot;
using percolator::TableSchema;
using percolator::Worker;

using Counts = std::map<std::string, int64_t>;

struct Document {
  std::string name;
  std::string contents;
};

[[noreturn]] void Die(const absl::Status& status) {
  std::cerr << "wordcount: " << status.message() << "\n";
  std::exit(1);
}

void Check(const absl::Status& status) {
  if (!status.ok()) Die(status);
}

template <typename T>
T Check(absl::StatusOr<T> result) {
  if (!result.ok()) Die(result.status());
  return *std::move(result);
}

Counts CountWords(const std::string& text) {
  Counts counts;
  std::string word;
  for (const char c : text + " ") {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalpha(byte) != 0) {
      word.push_back(static_cast<char>(std::tolower(byte)));
    } else if (!word.empty()) {
      ++counts[std::exchange(word, {})];
    }
  }
  return counts;
}

// Counts as a text of lines "word number", and back.
std::string ToText(const Counts& counts) {
  std::string text;
  for (const auto& [word, count] : counts) text += word + " " + std::to_string(count) + "\n";
  return text;
}

Counts FromText(const std::string& text) {
  Counts counts;
  std::istringstream in(text);
  int64_t count = 0;
  for (std::string word; in >> word >> count;) counts[word] = count;
  return counts;
}

// --- The observer. It may run many times for one change, and commits once: so each change is counted once.

absl::Status CountChange(const CombineQueue& words, ReadWrite& t, const Notification& changed) {
  const std::string& document = changed.cell.row;
  const auto cells = t.Get({{"documents", document, "contents"}, {"documents", document, "counted"}});
  if (!cells.ok()) return cells.status();
  const Counts now = CountWords((*cells)[0].value_or(""));  // none, if the document was deleted
  const Counts before = FromText((*cells)[1].value_or(""));

  Counts difference = now;
  for (const auto& [word, count] : before) difference[word] -= count;
  std::map<std::string, std::string> deltas;
  for (const auto& [word, count] : difference) {
    if (count != 0) deltas[word] = std::to_string(count);
  }
  if (absl::Status s = words.Add(t, deltas); !s.ok()) return s;
  return now.empty() ? t.Delete("documents", document, "counted")
                     : t.Set("documents", document, "counted", ToText(now));
}

// --- Documents

std::vector<Document> Files(const std::vector<std::string>& paths) {
  std::vector<Document> documents;
  for (const std::string& path : paths) {
    std::ifstream file(path, std::ios::binary);
    if (!file) Die(absl::NotFoundError("can't read " + path));
    documents.push_back({path, {std::istreambuf_iterator<char>(file), {}}});
  }
  return documents;
}

std::vector<Document> Sample(int count) {
  static const char* const kSentences[] = {
      "The river carries what the rain has brought.",
      "A change upstream is a change downstream, a little later.",
      "Nobody counts the whole sea again because it rained.",
      "What the river has counted once, the river does not count twice.",
      "Some rain falls on dry land and is not seen again.",
      "The miller knows the river by the turning of the wheel.",
      "Where two streams meet, neither waits for the other.",
  };
  std::vector<Document> documents;
  for (int i = 0; i < count; ++i) {
    std::string contents;
    for (int n = 0; n <= i % 5; ++n) contents += std::string(kSentences[(i + 3 * n) % std::size(kSentences)]) + "\n";
    documents.push_back({"sample" + std::to_string(i), contents});
  }
  return documents;
}

void Load(Cluster& cluster, const std::vector<Document>& documents) {
  Loader loader(&cluster, {.expected = documents.size(), .on_progress = [](const LoadProgress& progress) {
                             std::cout << "  loaded " << ToText(progress) << std::endl;
                           }});
  for (const Document& document : documents) {
    loader.Add([&document](ReadWrite& t) { return t.Set("documents", document.name, "contents", document.contents); });
  }
  Check(loader.Finish());
}

// Every third document gets another text, every fifth is deleted.
void EditAndDelete(Cluster& cluster, const std::vector<Document>& documents) {
  Loader loader(&cluster);
  for (size_t i = 0; i < documents.size(); ++i) {
    const std::string& name = documents[i].name;
    if (i % 5 == 0) {
      loader.Add([&name](ReadWrite& t) { return t.Delete("documents", name, "contents"); });
    } else if (i % 3 == 0) {
      loader.Add([&name](ReadWrite& t) -> absl::Status {
        const auto contents = t.Get("documents", name, "contents");
        if (!contents.ok()) return contents.status();
        const std::string& text = contents->value_or("");
        return t.Set("documents", name, "contents", "edited " + text.substr(0, text.size() / 2));
      });
    }
  }
  Check(loader.Finish());
}

// --- What came of it

Counts Counted(const CombineQueue& words, Snapshot& view) {
  Counts counts;
  Check(words.ForEach(view, [&](std::string_view word, std::string_view count) {
    counts[std::string(word)] = std::stoll(std::string(count));
  }));
  return counts;
}

Counts Recounted(Snapshot& view) {
  Counts counts;
  const std::unique_ptr<RowIterator> rows = view.Scan({.table = "documents", .columns = {"contents"}});
  while (rows->Next()) {
    for (const auto& [word, count] : CountWords(rows->row().columns[0].value)) counts[word] += count;
  }
  Check(rows->status());
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

// Waits for the observers, then counts all documents again, and compares.
void Compare(Cluster& cluster, Worker& worker, const CombineQueue& words) {
  Check(worker.WaitUntilIdle(std::chrono::minutes(10)));
  Snapshot now = Check(cluster.Now());
  const Counts counts = Counted(words, now);
  std::cout << counts.size() << " words; the most frequent:\n";
  ShowTop(counts);
  if (counts != Recounted(now)) Die(absl::DataLossError("a recount of all documents finds other numbers"));
  std::cout << "A recount of all documents finds the same.\n\n";
}

double Milliseconds(Duration duration) { return std::chrono::duration<double, std::milli>(duration).count(); }

void ShowMetrics(const Worker& worker) {
  for (const ObserverMetrics& m : worker.Metrics()) {
    std::cout << m.name << ": " << m.runs << " runs, " << m.commits << " commits, " << m.conflicts << " conflicts, "
              << m.failures << " failures; from change to observed " << Milliseconds(m.latency_p50) << " ms (median), "
              << Milliseconds(m.latency_p99) << " ms (99 of 100)\n";
  }
}

void CreateTable(Cluster& cluster, const std::string& name, const TableSchema& schema) {
  const absl::Status created = cluster.CreateTable(name, schema);
  if (!absl::IsAlreadyExists(created)) Check(created);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Counts the words of documents, and keeps the counts right while the documents change.");
  std::vector<std::string> files;
  std::string address = "memory:";
  int sample = 2000;
  app.add_option("files", files, "Text files (default: documents that are made up)")->check(CLI::ExistingFile);
  app.add_option("--cluster", address, "Address, such as rocksdb:FOLDER")->capture_default_str();
  app.add_option("--sample", sample, "How many documents to make up")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000));
  CLI11_PARSE(app, argc, argv);

  const auto cluster = Check(Cluster::Open(address));
  const CombineQueue words("words", AddDecimals, {.neutral = "0"});
  CreateTable(*cluster, "documents", {});
  CreateTable(*cluster, "words", CombineQueue::Schema());
  {
    Worker worker(cluster.get());
    worker.Observe(
        {.name = "words",
         .table = "documents",
         .column = "contents",
         .run = [&words](ReadWrite& t, const Notification& changed) { return CountChange(words, t, changed); }});
    worker.Observe(words.Observer());
    Check(worker.Start());

    const std::vector<Document> documents = files.empty() ? Sample(sample) : Files(files);
    std::cout << "Loading " << documents.size() << " documents:\n";
    Load(*cluster, documents);
    Compare(*cluster, worker, words);
    std::cout << "Editing every third document, deleting every fifth:\n";
    EditAndDelete(*cluster, documents);
    Compare(*cluster, worker, words);
    std::cout << worker.DescribeGraph() << "\n";
    ShowMetrics(worker);
  }
  Check(cluster->Close());
  return 0;
}
