// SPDX-License-Identifier: Apache-2.0

// The functions of the observers. pipeline.h says when each runs.

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

// Replaces the subscriptions of a page that this column keeps. Returns true if the page had subscribed to all of them before
// this transaction: only then may the transaction rely on cells that the topics stand for (pipeline.h, rule 2).
absl::StatusOr<bool> Subscribe(percolator::ReadWrite& t, std::string_view url, const Column<Topics, Lines>& column,
                               const Topics& wanted);
// Begins to notify the subscribers of a topic that has changed.
absl::Status Publish(percolator::ReadWrite& t, const std::string& topic);
// Notifies a batch of them, in the notify-only column for the kind of topic.
absl::Status TellSubscribers(percolator::ReadWrite& t, const std::string& topic);

std::string FileTopic(std::string_view path);
std::string MovedTopic(std::string_view url);

}  // namespace webindex

#endif  // PERCOLATOR_APPS_WEBINDEX_OBSERVERS_H_
