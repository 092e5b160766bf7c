// SPDX-License-Identifier: Apache-2.0

// Figure 2 of the paper: documents, and one canonical URL for each content.
//
// Every file of a folder is a document. Loading one is a transaction: it stores the contents, and makes the document the
// canonical one unless another with the same contents is known. Two threads that load copies of one document at the same
// time both find that none is known. Then both write the same cell, so one of them loses. It runs again and finds the other's.
//
//     documents   row: URL             contents
//     dups        row: content hash    canonical-url
//
// `dedup rocksdb:DIR FOLDER` loads the files below FOLDER; without FOLDER, small documents, each three times.

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <string>
#include <system_error>

#include "percolator/cluster.h"
#include "percolator/loader.h"
#include "percolator/status_macros.h"

namespace {

using percolator::Cluster;
using percolator::ClusterMetrics;
using percolator::Column;
using percolator::Loader;
using percolator::ReadWrite;
using percolator::Snapshot;

constexpr Column<std::string> kContents("documents", "contents");
constexpr Column<std::string> kCanonicalUrl("dups", "canonical-url");

using Documents = std::map<std::string, std::string>;  // contents by URL

// Good enough for an example. Where two contents must never be mistaken for each other, use a cryptographic hash.
std::string Hash(const std::string& contents) {
  char hex[17];
  std::snprintf(hex, sizeof(hex), "%016zx", std::hash<std::string>()(contents));
  return hex;
}

// Figure 2: UpdateDocument.
absl::Status UpdateDocument(ReadWrite& t, const std::string& url, const std::string& contents) {
  t.Set(kContents, url, contents);
  const std::string hash = Hash(contents);
  PERCOLATOR_ASSIGN_OR_RETURN(auto canonical, t.Get(kCanonicalUrl, hash));
  if (!canonical.has_value()) t.Set(kCanonicalUrl, hash, url);  // otherwise this one is a duplicate
  return absl::OkStatus();
}

absl::Status Load(const Cluster& cluster, const Documents& documents) {
  Loader loader(cluster);
  for (const auto& document : documents) {
    loader.Add([&document](ReadWrite& t) { return UpdateDocument(t, document.first, document.second); });
  }
  return loader.Finish();
}

Documents Sample() {
  Documents documents;
  for (int i = 0; i < 3000; ++i) {
    documents["http://example.org/" + std::to_string(i)] = "text number " + std::to_string(i / 3);
  }
  return documents;
}

absl::StatusOr<Documents> ReadFiles(const std::string& folder) {
  Documents documents;
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, error)) {
    std::ifstream file(entry.path(), std::ios::binary);
    if (entry.is_regular_file()) documents[entry.path()] = {std::istreambuf_iterator<char>(file), {}};
  }
  if (error) return absl::NotFoundError("cannot read " + folder + ": " + error.message());
  return documents;
}

// Prints a summary of one snapshot.
absl::Status Report(const Cluster& cluster) {
  PERCOLATOR_ASSIGN_OR_RETURN(Snapshot now, cluster.GetSnapshot());
  size_t documents = 0;
  for (const auto& document : now.Scan("documents", {.keys_only = true})) {
    PERCOLATOR_RETURN_IF_ERROR(document.status());
    ++documents;
  }
  size_t originals = 0;
  for (const auto& original : now.Scan(kCanonicalUrl)) {
    PERCOLATOR_RETURN_IF_ERROR(original.status());
    if (originals++ < 5) std::cout << "  " << original->row << "  " << original->value << "\n";
  }
  if (originals > 5) std::cout << "  ...\n";
  const ClusterMetrics metrics = cluster.metrics();
  std::cout << documents << " documents, " << originals << " of them different; " << metrics.commits << " commits, "
            << metrics.conflicts << " conflicts\n";
  return absl::OkStatus();
}

absl::Status Run(const std::string& address, const std::string& folder) {
  PERCOLATOR_ASSIGN_OR_RETURN(const Documents documents, folder.empty() ? Sample() : ReadFiles(folder));
  PERCOLATOR_ASSIGN_OR_RETURN(Cluster cluster, Cluster::Open(address));
  PERCOLATOR_RETURN_IF_ERROR(cluster.EnsureTable("documents"));
  PERCOLATOR_RETURN_IF_ERROR(cluster.EnsureTable("dups"));
  PERCOLATOR_RETURN_IF_ERROR(Load(cluster, documents));
  PERCOLATOR_RETURN_IF_ERROR(Report(cluster));
  return cluster.Close();
}

}  // namespace

int main(int argc, char** argv) {
  const absl::Status status = Run(argc > 1 ? argv[1] : "memory:", argc > 2 ? argv[2] : "");
  if (!status.ok()) std::cerr << "dedup: " << status.message() << "\n";
  return status.ok() ? 0 : 1;
}
