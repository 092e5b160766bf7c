// SPDX-License-Identifier: Apache-2.0

#include "apps/webindex/index.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "apps/webindex/pipeline.h"
#include "apps/webindex/tables.h"
#include "percolator/status_macros.h"

namespace webindex {

using percolator::Cluster;
using percolator::Export;
using percolator::ReadWrite;
using percolator::Snapshot;
using percolator::WorkerOptions;

namespace {

WorkerOptions ForPipeline(WorkerOptions options) {
  // Changes of ranks run in circles, and get smaller each time (rank.cc). So a long chain of notifications is not an error.
  options.max_chain = std::numeric_limits<uint32_t>::max();
  // Each observer has its part of the queue, and hints that do not fit are lost. A crawl builds up a backlog of
  // CrawlOptions::max_backlog, mostly for the first observers, so each part has room for that.
  options.max_queued_cells = std::max<size_t>(options.max_queued_cells, 200'000);
  return options;
}

// The base of an index cannot change, because links were resolved with it.
absl::Status CheckBase(const Cluster& cluster, const std::string& base) {
  return cluster.Transact([&base](ReadWrite& t) -> absl::Status {
    PERCOLATOR_ASSIGN_OR_RETURN(const std::optional<std::string> made_for, t.Get(kBase, kSettingsRow));
    if (!made_for.has_value()) t.Set(kBase, kSettingsRow, base);
    if (made_for.value_or(base) == base) return absl::OkStatus();
    return absl::FailedPreconditionError("the index was made with the base \"" + *made_for + "\", not \"" + base +
                                         "\": use that, or another data folder");
  });
}

}  // namespace

WebIndex::WebIndex(const Cluster& cluster, const WebIndexOptions& options)
    : cluster_(cluster), worker_(cluster, ForPipeline(options.worker)), crawl_(cluster, options.crawl) {}

absl::StatusOr<std::unique_ptr<WebIndex>> WebIndex::Open(const WebIndexOptions& options) {
  PERCOLATOR_ASSIGN_OR_RETURN(const Cluster cluster, Cluster::Open(options.address, options.cluster));
  PERCOLATOR_RETURN_IF_ERROR(CreateTables(cluster));
  PERCOLATOR_RETURN_IF_ERROR(CheckBase(cluster, options.crawl.base));
  std::unique_ptr<WebIndex> index(new WebIndex(cluster, options));
  // The worker starts after the serving side has loaded the index, so changes come later.
  PERCOLATOR_ASSIGN_OR_RETURN(const Snapshot now, cluster.GetSnapshot());
  Serving& serving = index->serving_;
  PERCOLATOR_RETURN_IF_ERROR(serving.Load(now));
  AttachPipeline(index->worker_, {.base = options.crawl.base,
                                  .deliver = [&serving](const Export& entry) { return serving.Apply(entry); }});
  PERCOLATOR_RETURN_IF_ERROR(index->worker_.Start());
  return index;
}

WebIndex::~WebIndex() { Close().IgnoreError(); }

absl::Status WebIndex::Close() { return cluster_.Close(); }

}  // namespace webindex
