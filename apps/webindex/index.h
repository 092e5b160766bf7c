// SPDX-License-Identifier: Apache-2.0

// WebIndex: a cluster with the tables, a worker with the pipeline, the serving side, and the crawl of a folder. Used by main(),
// the server and tests.

#ifndef PERCOLATOR_APPS_WEBINDEX_INDEX_H_
#define PERCOLATOR_APPS_WEBINDEX_INDEX_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/webindex/crawl.h"
#include "apps/webindex/serving.h"
#include "percolator/cluster.h"
#include "percolator/observer.h"

namespace webindex {

struct WebIndexOptions {
  std::string address;  // of the cluster
  percolator::ClusterOptions cluster;
  percolator::WorkerOptions worker;
  CrawlOptions crawl;
};

class WebIndex {
 public:
  // Opens the cluster, creates the tables and starts the worker, which continues the work of an earlier process.
  // Returns FailedPrecondition if the tables were made for another base.
  static absl::StatusOr<std::unique_ptr<WebIndex>> Open(const WebIndexOptions& options);
  // Calls Close if it was not called.
  ~WebIndex();

  // Makes the index equal to the folder. Returns when all files are loaded; WaitUntilIdle returns when they are searchable.
  absl::StatusOr<CrawlResult> Update() { return crawl_.Run(); }
  absl::Status WaitUntilIdle(percolator::Duration timeout) { return worker_.WaitUntilIdle(timeout); }

  const percolator::Cluster& cluster() const { return cluster_; }
  percolator::Worker& worker() { return worker_; }
  Serving& serving() { return serving_; }
  Crawl& crawl() { return crawl_; }

  // Waits for running observers and closes the cluster. Pending notifications run when it is opened again.
  absl::Status Close();

 private:
  WebIndex(const percolator::Cluster& cluster, const WebIndexOptions& options);

  const percolator::Cluster cluster_;
  Serving serving_;
  percolator::Worker worker_;
  Crawl crawl_;
};

}  // namespace webindex

#endif  // PERCOLATOR_APPS_WEBINDEX_INDEX_H_
