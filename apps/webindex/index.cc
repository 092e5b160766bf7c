#include "apps/webindex/index.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "apps/webindex/pipeline.h"
#include "apps/webindex/tables.h"

namespace webindex {

using percolator::Cluster;
using percolator::Export;
using percolator::ObserverSpec;
using percolator::ReadWrite;
using percolator::Snapshot;
using percolator::WorkerOptions;

namespace {

WorkerOptions ForPipeline(WorkerOptions options) {
  // Ranks go round in circles, less every time (rank.cc); that is no mistake, however long it takes.
  options.max_chain = std::numeric_limits<uint32_t>::max();
  // Each observer has its part of the queue, and hints that find no room in it are lost. A crawl lets a backlog of
  // CrawlOptions::max_backlog grow, mostly of the first observers: so there is room for that in each part.
  options.queue = std::max<size_t>(options.queue, 200'000);
  return options;
}

}  // namespace

WebIndex::WebIndex(std::unique_ptr<Cluster> cluster, const WebIndexOptions& options)
    : cluster_(std::move(cluster)),
      worker_(cluster_.get(), ForPipeline(options.worker)),
      crawl_(cluster_.get(), options.crawl) {}

namespace {

// Links were resolved with one base, so it can't become another.
absl::Status CheckBase(Cluster& cluster, const std::string& base) {
  return cluster
      .Transact([&base](ReadWrite& t) -> absl::Status {
        const absl::StatusOr<std::optional<std::string>> made_for = t.Get(kSettings, kSettingsRow, kBase);
        if (!made_for.ok()) return made_for.status();
        if (!made_for->has_value()) return t.Set(kSettings, kSettingsRow, kBase, base);
        if (**made_for == base) return absl::OkStatus();
        return absl::FailedPreconditionError("the index was made with the base \"" + **made_for + "\", not \"" + base +
                                             "\": use that, or another data folder");
      })
      .status();
}

}  // namespace

absl::StatusOr<std::unique_ptr<WebIndex>> WebIndex::Open(const WebIndexOptions& options) {
  absl::StatusOr<std::unique_ptr<Cluster>> cluster = Cluster::Open(options.address, options.cluster);
  if (!cluster.ok()) return cluster.status();
  std::unique_ptr<WebIndex> index(new WebIndex(*std::move(cluster), options));
  if (absl::Status s = CreateTables(*index->cluster_); !s.ok()) return s;
  if (absl::Status s = CheckBase(*index->cluster_, options.crawl.base); !s.ok()) return s;
  // The serving side first gets what is indexed, then what changes: the worker starts after that.
  absl::StatusOr<Snapshot> now = index->cluster_->Now();
  if (!now.ok()) return now.status();
  Serving* const serving = &index->serving_;
  if (absl::Status s = serving->Load(*now); !s.ok()) return s;
  for (ObserverSpec& observer : PipelineObservers(
           {.base = options.crawl.base, .deliver = [serving](const Export& e) { return serving->Apply(e); }})) {
    index->worker_.Observe(std::move(observer));
  }
  if (absl::Status s = index->worker_.Start(); !s.ok()) return s;
  return index;
}

WebIndex::~WebIndex() { (void)Close(); }

absl::Status WebIndex::Close() { return cluster_->Close(); }

}  // namespace webindex
