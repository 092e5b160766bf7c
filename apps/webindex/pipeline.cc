#include "apps/webindex/pipeline.h"

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/webindex/observers.h"
#include "apps/webindex/tables.h"
#include "percolator/combine_queue.h"

namespace webindex {

using percolator::CombineQueue;
using percolator::Notification;
using percolator::NotificationKind;
using percolator::ObserverSpec;
using percolator::ReadWrite;

namespace {

// What an observer does with the row whose cell has changed.
using RowFunction = std::function<absl::Status(ReadWrite& t, const std::string& row)>;

ObserverSpec Observer(std::string_view name, std::string_view table, std::string_view column, NotificationKind kind,
                      RowFunction run) {
  return {.name = std::string(name),
          .table = std::string(table),
          .column = std::string(column),
          .kind = kind,
          .run = [run = std::move(run)](ReadWrite& t, const Notification& n) { return run(t, n.cell.row); }};
}

// The same for a value of a combine queue, by its key.
RowFunction OfKey(RowFunction run) {
  return [run = std::move(run)](ReadWrite& t, const std::string& row) {
    return run(t, std::string(CombineQueue::KeyOf(row)));
  };
}

}  // namespace

std::vector<ObserverSpec> PipelineObservers(const PipelineOptions& options) {
  constexpr auto kStrong = NotificationKind::kStrong;
  constexpr auto kWeak = NotificationKind::kWeak;
  constexpr std::string_view kValue = CombineQueue::kValueColumn;
  const RowFunction parse = [base = options.base](ReadWrite& t, const std::string& url) {
    return ParseContents(base, t, url);
  };
  const RowFunction moved = [](ReadWrite& t, const std::string& url) { return Publish(t, MovedTopic(url)); };
  const RowFunction changed = [](ReadWrite& t, const std::string& path) { return Publish(t, FileTopic(path)); };
  // One at a time: while it runs, more changes come together for the next, and pages become searchable beside it.
  ObserverSpec spread = Observer("spread", kRankChanges, kSpread, kWeak, SpreadRanks);
  spread.concurrency = 1;
  std::vector<ObserverSpec> observers = {
      Observer("parse", kPages, kContents, kStrong, parse),
      Observer("moved", kPages, kIdentity, kStrong, moved),
      Observer("cluster", kPages, kIdentity, kStrong, FindCluster),
      Observer("recluster", kPages, kRecluster, kWeak, FindCluster),
      Observer("choose", kClusters, kChoose, kWeak, ChooseCanonical),
      Observer("invert", kPages, kLinks, kStrong, InvertLinks),
      Observer("anchored", kAnchorWords, kValue, kStrong, OfKey(ReindexAnchored)),
      Observer("rank", kPages, kLinks, kStrong, NoteNewLinks),
      std::move(spread),
      Observer("reconsider", kPages, kRank, kStrong, ReconsiderChoice),
      Observer("reindex", kPages, kReindex, kWeak, IndexDocument),
      Observer("subscribe", kPages, kResources, kStrong, DependOnResources),
      Observer("summarize", kPages, kSummarize, kWeak, Summarize),
      Observer("changed", kFiles, kState, kStrong, changed),
      Observer("publish", kSubscribers, kPublish, kWeak, TellSubscribers),
      AnchorWordsQueue().Observer(),
  };
  for (ObserverSpec& observer : ExportsQueue().Observers(options.deliver)) observers.push_back(std::move(observer));
  return observers;
}

}  // namespace webindex
