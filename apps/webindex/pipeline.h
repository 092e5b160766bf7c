// The observers of the web index, and what each is for. The cells are in tables.h.
//
//     observer    observes                    what it does
//     parse       pages.contents              the file -> text, identity, links, resources; keeps the history
//     moved       pages.identity              tells pages whose walk to their cluster leads through this one
//     cluster     pages.identity              finds the page's cluster and moves the page there
//     recluster   pages.recluster (weak)      the same, because a page on its walk has changed
//     choose      clusters.choose (weak)      the member with the highest rank becomes canonical
//     invert      pages.links                 links in, and the words of their anchors, by difference
//     anchored    anchor_words.value          the words of links to a page have changed: indexes its canonical page again
//     rank        pages.links                 notes that the shares of its rank go elsewhere now
//     spread      rank_changes.spread (weak)  ranks of many pages, and what they give to the pages they link to
//     reconsider  pages.rank                  a cluster of several pages chooses again
//     reindex     pages.reindex (weak)        postings, if the page is canonical, by difference; exports the document
//     subscribe   pages.resources             subscribes the page to the files it is rendered with
//     summarize   pages.summarize (weak)      the summary, from the page and these files
//     changed     files.state                 tells the pages that are rendered with the file
//     publish     subscribers.publish (weak)  tells subscribers, some at a time
//     fold-anchor_words                       the combine queue
//     number-exports, deliver-exports         the export queue
//
// RULES   Each output is a function of inputs that are cells, and every change of an input leads to a run that sees it.
//         Three rules make the last run right, whatever runs beside it (snapshot isolation allows write skew):
//         1. An observer that leaves an output as it is verifies it (SetOrVerify). Otherwise an older run, under way,
//            could still overwrite it with what it made of older inputs.
//         2. An observer that depends on a cell subscribes first, and reads it in a later transaction. Then a change of
//            the cell comes either before the reading, or after the subscription is there for those who tell of it.
//         3. Those that have to be told are found by an observer of the change, not by the transaction that made it:
//            that one could not see a subscription, or a cluster, that changes at the same time.

#ifndef PERCOLATOR_APPS_WEBINDEX_PIPELINE_H_
#define PERCOLATOR_APPS_WEBINDEX_PIPELINE_H_

#include <string>

#include "percolator/export_queue.h"
#include "percolator/observer.h"

namespace webindex {

struct PipelineOptions {
  std::string base;                     // see url.h
  percolator::DeliverFunction deliver;  // the serving side: gets every Change
};

// Adds the observers to the worker. The tables must exist when it starts (CreateTables).
void AttachPipeline(percolator::Worker& worker, const PipelineOptions& options);

}  // namespace webindex

#endif  // PERCOLATOR_APPS_WEBINDEX_PIPELINE_H_
