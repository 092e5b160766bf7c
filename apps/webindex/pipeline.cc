// SPDX-License-Identifier: Apache-2.0

#include "apps/webindex/pipeline.h"

#include "absl/status/status.h"
#include "apps/webindex/observers.h"
#include "apps/webindex/tables.h"
#include "percolator/transaction.h"

namespace webindex {

using percolator::ReadWrite;

void AttachPipeline(percolator::Worker& worker, const PipelineOptions& options) {
  const auto parse = [base = options.base](ReadWrite& t, const std::string& url) {
    return ParseContents(base, t, url);
  };
  const auto moved = [](ReadWrite& t, const std::string& url) { return Publish(t, MovedTopic(url)); };
  const auto changed = [](ReadWrite& t, const std::string& path) { return Publish(t, FileTopic(path)); };

  worker.Observe(kContents, "parse", parse);
  worker.Observe(kIdentity, "moved", moved);
  worker.Observe(kIdentity, "cluster", FindCluster);
  worker.Observe(kRecluster, "recluster", FindCluster);
  worker.Observe(kChoose, "choose", ChooseCanonical);
  worker.Observe(kLinks, "invert", InvertLinks);
  AnchorWordsQueue().Attach(worker);
  AnchorWordsQueue().Observe(worker, "anchored", ReindexAnchored);
  worker.Observe(kLinks, "rank", NoteNewLinks);
  // Runs one at a time. Meanwhile more changes come together for the next run, and pages become searchable.
  worker.Observe(kSpread, "spread", SpreadRanks, {.max_concurrency = 1});
  worker.Observe(kRank, "reconsider", ReconsiderChoice);
  worker.Observe(kReindex, "reindex", IndexDocument);
  worker.Observe(kResources, "subscribe", DependOnResources);
  worker.Observe(kSummarize, "summarize", Summarize);
  worker.Observe(kState, "changed", changed);
  worker.Observe(kPublish, "publish", TellSubscribers);
  ExportsQueue().Attach(worker, options.deliver);
}

}  // namespace webindex
