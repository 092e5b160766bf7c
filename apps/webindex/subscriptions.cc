// SPDX-License-Identifier: Apache-2.0

// Subscriptions to topics, and notifications of the subscribers.
//
// A topic may have very many subscribers, such as all pages with the same style sheet. Each transaction notifies a batch, and
// the cursor says where the next one begins. A change meanwhile sets the cursor back to the beginning.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "apps/webindex/observers.h"
#include "apps/webindex/tables.h"
#include "percolator/status_macros.h"

namespace webindex {

using percolator::ReadWrite;
using percolator::RowRange;

namespace {

constexpr std::string_view kFilePrefix = "file:";
constexpr std::string_view kMovedPrefix = "moved:";
constexpr size_t kToldAtOnce = 1000;

}  // namespace

std::string FileTopic(std::string_view path) { return std::string(kFilePrefix).append(path); }
std::string MovedTopic(std::string_view url) { return std::string(kMovedPrefix).append(url); }

absl::StatusOr<bool> Subscribe(ReadWrite& t, std::string_view url, const Column<Topics, Lines>& column,
                               const Topics& wanted) {
  PERCOLATOR_ASSIGN_OR_RETURN(const Topics had, t.Get(column, url, {}));
  bool had_all = true;
  for (const std::string& topic : wanted) {
    if (had.contains(topic)) continue;
    had_all = false;
    t.Set(kSince, PairRow(topic, url), true);
  }
  for (const std::string& topic : had) {
    if (!wanted.contains(topic)) t.Delete(kSince, PairRow(topic, url));
  }
  if (wanted == had) return true;
  t.SetOrDelete(column, url, wanted.empty() ? std::nullopt : std::optional(wanted));
  return had_all;
}

absl::Status Publish(ReadWrite& t, const std::string& topic) {
  for (const auto& subscriber : t.Scan(kSince, {.rows = PairsOf(topic)})) {
    PERCOLATOR_RETURN_IF_ERROR(subscriber.status());
    t.Set(kCursor, topic, "");
    t.Notify(kPublish, topic);
    break;  // checks for one subscriber, because most topics have none
  }
  return absl::OkStatus();
}

absl::Status TellSubscribers(ReadWrite& t, const std::string& topic) {
  PERCOLATOR_ASSIGN_OR_RETURN(const std::optional<std::string> cursor, t.Get(kCursor, topic));
  if (!cursor.has_value()) return absl::OkStatus();  // all are notified
  const NotifyColumn& told_by = topic.starts_with(kFilePrefix) ? kSummarize : kRecluster;
  const RowRange all = PairsOf(topic);
  const RowRange rest = cursor->empty() ? all : all.After(PairRow(topic, *cursor));
  size_t told = 0;
  std::string last;
  for (const auto& subscriber : t.Scan(kSince, {.rows = rest, .limit = kToldAtOnce})) {
    PERCOLATOR_RETURN_IF_ERROR(subscriber.status());
    last = SecondOf(subscriber->row);
    t.Notify(told_by, last);
    ++told;
  }
  if (told < kToldAtOnce) {
    t.Delete(kCursor, topic);
    return absl::OkStatus();
  }
  t.Set(kCursor, topic, last);
  t.Notify(kPublish, topic);
  return absl::OkStatus();
}

}  // namespace webindex
