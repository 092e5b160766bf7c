// The functions of the observers: pipeline.h says when each runs, the files what it does.

#ifndef PERCOLATOR_APPS_WEBINDEX_OBSERVERS_H_
#define PERCOLATOR_APPS_WEBINDEX_OBSERVERS_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/webindex/tables.h"
#include "percolator/transaction.h"

namespace webindex {

// documents.cc
absl::Status ParseContents(const std::string& base, percolator::ReadWrite& t, const std::string& url);

// clusters.cc
absl::Status FindCluster(percolator::ReadWrite& t, const std::string& url);
absl::Status ChooseCanonical(percolator::ReadWrite& t, const std::string& key);
absl::Status ReconsiderChoice(percolator::ReadWrite& t, const std::string& url);

// links.cc
absl::Status InvertLinks(percolator::ReadWrite& t, const std::string& url);
absl::Status ReindexAnchored(percolator::ReadWrite& t, const std::string& url);

// rank.cc
absl::Status NoteNewLinks(percolator::ReadWrite& t, const std::string& url);
absl::Status SpreadRanks(percolator::ReadWrite& t, const std::string& shard_and_epoch);

// postings.cc
absl::Status IndexDocument(percolator::ReadWrite& t, const std::string& url);

// rendering.cc
absl::Status DependOnResources(percolator::ReadWrite& t, const std::string& url);
absl::Status Summarize(percolator::ReadWrite& t, const std::string& url);

// subscriptions.cc

// Makes the topics that a page has subscribed to, of those kept in this column of it, the wanted ones. Returns whether it
// had subscribed to all of them before this transaction: only then may what they tell of be relied on (pipeline.h, rule 2).
absl::StatusOr<bool> Subscribe(percolator::ReadWrite& t, std::string_view url, const Column<Topics, Lines>& column,
                               const Topics& wanted);
// Something about the topic has changed: begins to tell its subscribers.
absl::Status Publish(percolator::ReadWrite& t, const std::string& topic);
// Tells some of them: their column of notifications that the kind of topic is for.
absl::Status TellSubscribers(percolator::ReadWrite& t, const std::string& topic);

std::string FileTopic(std::string_view path);
std::string MovedTopic(std::string_view url);

}  // namespace webindex

#endif  // PERCOLATOR_APPS_WEBINDEX_OBSERVERS_H_
