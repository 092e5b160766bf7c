// Who wants to know what, and telling them.
//
// A topic may have very many subscribers, such as the pages with the same style sheet. They are told some at a time, by
// transactions that each begin where the one before has ended; the cursor says where. A change that comes meanwhile sets the
// cursor back to the beginning.

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "apps/webindex/cells.h"
#include "apps/webindex/observers.h"
#include "apps/webindex/tables.h"

namespace webindex {

using percolator::ReadWrite;
using percolator::RowIterator;
using percolator::RowRange;

namespace {

constexpr std::string_view kFilePrefix = "file:";
constexpr std::string_view kMovedPrefix = "moved:";
constexpr size_t kToldAtOnce = 1000;

std::set<std::string> Lines(const Value& text) {
  if (!text.has_value()) return {};
  return absl::StrSplit(*text, '\n');
}

}  // namespace

std::string FileTopic(std::string_view path) { return std::string(kFilePrefix).append(path); }
std::string MovedTopic(std::string_view url) { return std::string(kMovedPrefix).append(url); }

absl::StatusOr<bool> Subscribe(ReadWrite& t, std::string_view url, std::string_view column,
                               const std::set<std::string>& wanted) {
  const absl::StatusOr<Value> kept = t.Get(kPages, url, column);
  if (!kept.ok()) return kept.status();
  const std::set<std::string> had = Lines(*kept);
  bool had_all = true;
  for (const std::string& topic : wanted) {
    if (had.contains(topic)) continue;
    had_all = false;
    if (absl::Status s = t.Set(kSubscribers, PairRow(topic, url), kSince, "1"); !s.ok()) return s;
  }
  for (const std::string& topic : had) {
    if (wanted.contains(topic)) continue;
    if (absl::Status s = t.Delete(kSubscribers, PairRow(topic, url), kSince); !s.ok()) return s;
  }
  if (wanted == had) return true;
  const Value now = wanted.empty() ? Value() : Value(absl::StrJoin(wanted, "\n"));
  if (absl::Status s = Put(t, kPages, url, column, now); !s.ok()) return s;
  return had_all;
}

absl::Status Publish(ReadWrite& t, const std::string& topic) {
  const std::unique_ptr<RowIterator> subscribers =
      t.Scan({.table = std::string(kSubscribers), .rows = PairsOf(topic), .columns = {std::string(kSince)}});
  if (!subscribers->Next()) return subscribers->status();  // most topics have none
  if (absl::Status s = t.Set(kSubscribers, topic, kCursor, ""); !s.ok()) return s;
  return t.Notify(kSubscribers, topic, kPublish);
}

absl::Status TellSubscribers(ReadWrite& t, const std::string& topic) {
  const absl::StatusOr<Value> cursor = t.Get(kSubscribers, topic, kCursor);
  if (!cursor.ok()) return cursor.status();
  if (!cursor->has_value()) return absl::OkStatus();  // all are told
  const std::string_view told_by = topic.starts_with(kFilePrefix) ? kSummarize : kRecluster;
  RowRange rest = PairsOf(topic);
  if (!(*cursor)->empty()) rest.start = RowRange::After(PairRow(topic, **cursor)).start;
  const std::unique_ptr<RowIterator> subscribers =
      t.Scan({.table = std::string(kSubscribers), .rows = std::move(rest), .columns = {std::string(kSince)}});
  std::string last;
  for (size_t told = 0; told < kToldAtOnce; ++told) {
    if (!subscribers->Next()) {
      if (!subscribers->status().ok()) return subscribers->status();
      return t.Delete(kSubscribers, topic, kCursor);
    }
    last = SecondOf(subscribers->row().key);
    if (absl::Status s = t.Notify(kPages, last, told_by); !s.ok()) return s;
  }
  if (absl::Status s = t.Set(kSubscribers, topic, kCursor, last); !s.ok()) return s;
  return t.Notify(kSubscribers, topic, kPublish);
}

}  // namespace webindex
