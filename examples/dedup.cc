// Figure 2 of the paper: documents, and one canonical URL for each content.
//
// Every file of a folder is a document. Loading one is a transaction: it stores the contents, and if no document with the
// same contents is known yet, makes this one the canonical one. Two threads that load copies of the same document at the
// same moment would both find that none is known; they both write the same cell then, so one of them loses, is run again,
// and finds the other's.
//
//     documents   row: URL             contents
//     dups        row: content hash    canonical-url

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "percolator/cluster.h"

namespace {

using percolator::Cluster;
using percolator::ClusterStats;
using percolator::ReadWrite;
using percolator::RowIterator;
using percolator::Snapshot;

struct Document {
  std::string url;
  std::string contents;
};

[[noreturn]] void Die(const absl::Status& status) {
  std::cerr << "dedup: " << status.message() << "\n";
  std::exit(1);
}

std::string HashOf(const std::string& contents) {
  char hex[17];
  std::snprintf(hex, sizeof(hex), "%016zx", std::hash<std::string>()(contents));
  return hex;
}

// Figure 2: UpdateDocument.
absl::Status UpdateDocument(ReadWrite& t, const Document& document) {
  if (absl::Status s = t.Set("documents", document.url, "contents", document.contents); !s.ok()) return s;
  const std::string hash = HashOf(document.contents);
  const auto canonical = t.Get("dups", hash, "canonical-url");
  if (!canonical.ok()) return canonical.status();
  if (canonical->has_value()) return absl::OkStatus();  // this one is a duplicate
  return t.Set("dups", hash, "canonical-url", document.url);
}

// Documents for those who have none at hand: every text three times.
std::vector<Document> MadeUp(int count) {
  std::vector<Document> documents;
  for (int i = 0; i < count; ++i) {
    documents.push_back({"http://example.org/" + std::to_string(i), "text number " + std::to_string(i / 3)});
  }
  return documents;
}

std::vector<Document> FilesOf(const std::string& folder) {
  std::vector<Document> documents;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    documents.push_back({entry.path().string(), {std::istreambuf_iterator<char>(file), {}}});
  }
  return documents;
}

void Load(Cluster& cluster, const std::vector<Document>& documents, int threads) {
  std::atomic<size_t> next{0};
  std::vector<std::thread> loaders;
  for (int n = 0; n < threads; ++n) {
    loaders.emplace_back([&] {
      for (size_t i = next++; i < documents.size(); i = next++) {
        const auto done = cluster.Transact([&](ReadWrite& t) { return UpdateDocument(t, documents[i]); });
        if (!done.ok()) Die(done.status());
      }
    });
  }
  for (std::thread& loader : loaders) loader.join();
}

// Prints what there is, from one snapshot.
void Report(Cluster& cluster) {
  absl::StatusOr<Snapshot> now = cluster.Now();
  if (!now.ok()) Die(now.status());
  size_t documents = 0;
  const std::unique_ptr<RowIterator> all = now->Scan({.table = "documents", .columns = {"contents"}});
  while (all->Next()) ++documents;
  if (!all->status().ok()) Die(all->status());
  size_t originals = 0;
  const std::unique_ptr<RowIterator> dups = now->Scan({.table = "dups"});
  while (dups->Next()) {
    if (originals++ < 5) std::cout << "  " << dups->row().key << "  " << dups->row().columns[0].value << "\n";
  }
  if (!dups->status().ok()) Die(dups->status());
  if (originals > 5) std::cout << "  ...\n";
  const ClusterStats stats = cluster.stats();
  std::cout << documents << " documents, " << originals << " of them different; " << stats.commits << " commits, "
            << stats.conflicts << " conflicts\n";
}

}  // namespace

int main(int argc, char** argv) {
  std::string address = "memory:";
  std::string folder;
  int threads = 8;
  CLI::App app("Finds duplicate documents while they are loaded: figure 2 of the Percolator paper.");
  app.add_option("folder", folder, "Load the files below this folder (default: documents that are made up)")
      ->check(CLI::ExistingDirectory);
  app.add_option("--cluster", address, "Address, such as rocksdb:FOLDER")->capture_default_str();
  app.add_option("--threads", threads)->capture_default_str()->check(CLI::Range(1, 256));
  CLI11_PARSE(app, argc, argv);

  const auto cluster = Cluster::Open(address);
  if (!cluster.ok()) Die(cluster.status());
  for (const char* table : {"documents", "dups"}) {
    const absl::Status created = (*cluster)->CreateTable(table);
    if (!created.ok() && !absl::IsAlreadyExists(created)) Die(created);
  }
  Load(**cluster, folder.empty() ? MadeUp(3000) : FilesOf(folder), threads);
  Report(**cluster);
  if (const absl::Status closed = (*cluster)->Close(); !closed.ok()) Die(closed);
  return 0;
}
