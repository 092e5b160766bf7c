// SPDX-License-Identifier: Apache-2.0

// The observers of the web index. tables.h has the cells.
//
//     observer    observes                    what it does
//     parse       pages.contents              extracts text, identity, links and resources; keeps the history
//     moved       pages.identity              notifies the pages whose walk to their cluster passes this page
//     cluster     pages.identity              finds the cluster of the page and moves the page there
//     recluster   pages.recluster (weak)      the same, after a change of a page on its walk
//     choose      clusters.choose (weak)      makes the member with the highest rank canonical
//     invert      pages.links                 updates the incoming links of other pages, and the words of anchors
//     anchored    anchor_words.value          indexes the canonical page again after a change of the words of links to it
//     rank        pages.links                 records that the page now gives its rank to other pages
//     spread      rank_changes.spread (weak)  updates the ranks of many pages, and what they give to others
//     reconsider  pages.rank                  lets a cluster of several pages choose again
//     reindex     pages.reindex (weak)        updates the postings of a canonical page; exports the document
//     subscribe   pages.resources             subscribes the page to the files it is rendered with
//     summarize   pages.summarize (weak)      makes the summary from the page and these files
//     changed     files.state                 notifies the pages that are rendered with the file
//     publish     subscribers.publish (weak)  notifies subscribers in batches
//     fold-anchor_words                       the combine queue
//     number-exports, deliver-exports         the export queue
//
// RULES   Each output is a function of inputs that are cells, and every change of an input leads to a run that sees it.
//         Three rules make the last run right despite concurrent runs (snapshot isolation allows write skew):
//         1. An observer that leaves an output unchanged verifies it (SetOrVerify). Otherwise a running older run could
//            overwrite it with a result from older inputs.
//         2. An observer that depends on a cell subscribes first, and reads it in a later transaction. Then a change of
//            the cell comes either before the read, or finds the subscription.
//         3. An observer of the change finds the pages to notify, not the transaction that made the change. That
//            transaction could not see a subscription or a cluster that changes at the same time.

#ifndef PERCOLATOR_APPS_WEBINDEX_PIPELINE_H_
#define PERCOLATOR_APPS_WEBINDEX_PIPELINE_H_

#include <string>

#include "percolator/export_queue.h"
#include "percolator/observer.h"

namespace webindex {

struct PipelineOptions {
  std::string base;                     // see url.h
  percolator::DeliverFunction deliver;  // passes each Change to the serving side
};

// Adds the observers to the worker. The tables must exist when the worker starts (CreateTables).
void AttachPipeline(percolator::Worker& worker, const PipelineOptions& options);

}  // namespace webindex

#endif  // PERCOLATOR_APPS_WEBINDEX_PIPELINE_H_
