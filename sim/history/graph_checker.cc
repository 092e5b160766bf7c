// SPDX-License-Identifier: Apache-2.0

#include "sim/history/graph_checker.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/history/digraph.h"
#include "sim/history/list_history.h"
#include "src/base/strings.h"

namespace percolator {
namespace {

using View = ListHistory::View;
using Version = ListHistory::Version;

enum Kind : uint8_t { kWw = 1, kWr = 2, kRw = 4, kRt = 8 };
using Kinds = uint8_t;  // a set of kinds

// The kinds of cycles, the most informative first.
constexpr Kinds kCircles[] = {kWw, kWw | kWr, kWw | kWr | kRw, kWw | kRt, kWw | kWr | kRt, kWw | kWr | kRw | kRt};
constexpr Kinds kAll = kWw | kWr | kRw | kRt;

struct Dependency {
  int64_t element;  // kWw, kRw: what `to` appended; kWr: what `from` appended; kRt: nothing
  TxnId from;
  TxnId to;
  KeyId key;  // not set for kRt
  Kind kind;
};

class GraphChecker {
 public:
  GraphChecker(const History& history, const GraphOptions& options) : history_(history) {
    lists_ = ReadLists(history_, options.final_read, &report_.findings);
  }

  GraphReport Run();

 private:
  void AddDependencies(KeyId key);
  void AddWrites(KeyId key);
  void AddReads(KeyId key, const View& view);
  void AddOverlooked(KeyId key, const View& reader, const Version& version);
  void AddUnseen(KeyId key);
  void AddRealTime();
  void Add(TxnId from, TxnId to, Kind kind, KeyId key, int64_t element);
  bool Committed(const Version& version) const {
    return version.writer != ListHistory::kNobody && lists_.committed[version.writer];
  }

  Digraph Product(Kinds kinds) const;
  void FindCircles();
  void TellCircle(std::vector<Dependency> circle);
  std::string Tell(const Dependency& dependency) const;
  const View& ViewOf(TxnId txn, KeyId key) const;
  size_t CountPivots() const;

  const History& history_;
  GraphReport report_;
  ListHistory lists_;
  std::vector<Dependency> dependencies_;
  std::vector<bool> reported_;  // by TxnId: part of a reported cycle
};

GraphReport GraphChecker::Run() {
  for (KeyId key = 0; key < lists_.keys.size(); ++key) AddDependencies(key);
  report_.dependencies = dependencies_.size();
  report_.write_skew_pivots = CountPivots();
  AddRealTime();
  FindCircles();
  return std::move(report_);
}

void GraphChecker::AddDependencies(KeyId key) {
  AddWrites(key);
  for (const View& view : lists_.keys[key].views) {
    if (view.read && view.length != ListHistory::kNowhere) AddReads(key, view);
  }
  AddUnseen(key);
}

// Skips versions without a committed writer: other anomalies report them.
void GraphChecker::AddWrites(KeyId key) {
  const Version* last = nullptr;
  for (const Version& version : lists_.keys[key].order) {
    if (!Committed(version)) continue;
    if (last != nullptr) Add(last->writer, version.writer, kWw, key, version.element);
    last = &version;
  }
}

void GraphChecker::AddReads(KeyId key, const View& view) {
  const std::vector<Version>& order = lists_.keys[key].order;
  const auto is_committed = [this](const Version& version) { return Committed(version); };
  const auto end_of_seen = order.begin() + view.length;
  const auto next = std::find_if(end_of_seen, order.end(), is_committed);
  if (next != order.end()) AddOverlooked(key, view, *next);
  const auto last = std::find_if(std::make_reverse_iterator(end_of_seen), order.rend(), is_committed);
  if (last != order.rend()) Add(last->writer, view.txn, kWr, key, last->element);
}

// `reader` saw the version before `version`. If it verified that one, `version` had to wait for its commit.
void GraphChecker::AddOverlooked(KeyId key, const View& reader, const Version& version) {
  const bool held = reader.verified && lists_.committed[reader.txn];
  Add(reader.txn, version.writer, held ? kWw : kRw, key, version.element);
}

// Committed versions that were never read come after the last version that a transaction saw.
void GraphChecker::AddUnseen(KeyId key) {
  const ListHistory::Key& lists = lists_.keys[key];
  const auto last =
      std::find_if(lists.order.rbegin(), lists.order.rend(), [this](const Version& v) { return Committed(v); });
  for (const View& writer : lists.views) {
    if (!writer.unseen || !lists_.committed[writer.txn]) continue;
    const int64_t element = writer.appended.back();
    if (last != lists.order.rend()) Add(last->writer, writer.txn, kWw, key, element);
    for (const View& reader : lists.views) {
      if (reader.read && reader.length == lists.order.size()) AddOverlooked(key, reader, {element, writer.txn});
    }
  }
}

// Adds only the nearest dependencies: if a was over before b began, and b before c, then the way from a to c leads over
// b. So `over` holds transactions that are over and that no later transaction has outlived: never more than run at the
// same time.
void GraphChecker::AddRealTime() {
  struct Event {
    uint64_t order;
    TxnId txn;
    bool is_end;
  };
  std::vector<Event> events;
  for (TxnId txn = 0; txn < history_.transactions.size(); ++txn) {
    const TxnRecord& record = history_.transactions[txn];
    if (record.as_of) continue;
    events.push_back({record.invoke, txn, false});
    // A transaction without an answer may be committed at any later time.
    if (record.outcome != TxnOutcome::kInfo && record.complete != TxnRecord::kNever) {
      events.push_back({record.complete, txn, true});
    }
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.order < b.order; });
  std::deque<TxnId> over;
  for (const Event& event : events) {
    if (event.is_end) {
      const uint64_t invoke = history_.transactions[event.txn].invoke;
      while (!over.empty() && history_.transactions[over.front()].complete < invoke) over.pop_front();
      over.push_back(event.txn);
    } else {
      for (const TxnId earlier : over) Add(earlier, event.txn, kRt, 0, 0);
    }
  }
}

void GraphChecker::Add(TxnId from, TxnId to, Kind kind, KeyId key, int64_t element) {
  if (from != to) dependencies_.push_back({element, from, to, key, kind});
}

// The demands as a graph in which every cycle is forbidden. Each transaction has two nodes: 2i, which only D leaves,
// and 2i + 1, which D reaches and which an rw may leave too. So no path has two rw in a row.
Digraph GraphChecker::Product(Kinds kinds) const {
  constexpr Digraph::Label kStay = 0;
  std::vector<Digraph::Edge> edges;
  for (TxnId txn = 0; txn < history_.transactions.size(); ++txn) edges.push_back({2 * txn + 1, 2 * txn, kStay});
  for (size_t i = 0; i < dependencies_.size(); ++i) {
    const Dependency& dependency = dependencies_[i];
    if ((dependency.kind & kinds) == 0) continue;
    const Digraph::Node side = dependency.kind == kRw ? 1 : 0;
    edges.push_back({2 * dependency.from + side, 2 * dependency.to + 1 - side, static_cast<Digraph::Label>(i + 1)});
  }
  return {static_cast<Digraph::Node>(2 * history_.transactions.size()), edges};
}

void GraphChecker::FindCircles() {
  if (CyclicComponents(Product(kAll)).empty()) return;
  reported_.resize(history_.transactions.size(), false);
  for (const Kinds kinds : kCircles) {
    const Digraph graph = Product(kinds);
    for (const Component& component : CyclicComponents(graph)) {
      if (std::any_of(component.begin(), component.end(), [this](Digraph::Node node) { return reported_[node / 2]; })) {
        continue;
      }
      std::vector<Dependency> circle;
      for (const Digraph::Label label : ShortCycle(graph, component)) {
        if (label != 0) circle.push_back(dependencies_[label - 1]);
      }
      TellCircle(std::move(circle));
    }
  }
}

// If a was over before b and b before c, then a was over before c.
std::vector<Dependency> MergeRealTime(std::vector<Dependency> circle) {
  const auto other = std::find_if(circle.begin(), circle.end(), [](const Dependency& d) { return d.kind != kRt; });
  std::rotate(circle.begin(), other, circle.end());
  std::vector<Dependency> merged;
  for (const Dependency& dependency : circle) {
    if (!merged.empty() && merged.back().kind == kRt && dependency.kind == kRt) {
      merged.back().to = dependency.to;
    } else {
      merged.push_back(dependency);
    }
  }
  return merged;
}

std::string NameOf(const std::vector<Dependency>& circle) {
  Kinds kinds = 0;
  size_t overlooked = 0;
  for (const Dependency& dependency : circle) {
    kinds |= dependency.kind;
    overlooked += dependency.kind == kRw ? 1 : 0;
  }
  const std::string_view name = overlooked > 1    ? "G-nonadjacent"
                                : overlooked == 1 ? "G-single"
                                : (kinds & kWr)   ? "G1c"
                                                  : "G0";
  return StrCat(name, (kinds & kRt) != 0 ? "-realtime" : "");
}

void GraphChecker::TellCircle(std::vector<Dependency> circle) {
  circle = MergeRealTime(std::move(circle));
  std::vector<TxnId> transactions;
  for (const Dependency& dependency : circle) {
    transactions.push_back(dependency.from);
    reported_[dependency.from] = true;
  }
  report_.findings.Add(NameOf(circle), transactions, [&] {
    std::string text = "no order of starts and commits agrees with all of this:";
    for (const Dependency& dependency : circle) text += StrCat("\n    ", Tell(dependency));
    return text;
  });
}

std::string GraphChecker::Tell(const Dependency& dependency) const {
  const std::string from = StrCat("T", dependency.from);
  const std::string to = StrCat("T", dependency.to);
  const std::string committed_first = StrCat(": ", from, " committed before ", to, " started");
  if (dependency.kind == kRt) return StrCat(from, " was over before ", to, " was invoked", committed_first);

  const std::string_view key = lists_.names.Name(dependency.key);
  const View& from_view = ViewOf(dependency.from, dependency.key);
  const View& to_view = ViewOf(dependency.to, dependency.key);
  const std::string element = std::to_string(dependency.element);
  switch (dependency.kind) {
    case kWw:
      if (from_view.appended.empty()) {
        return StrCat(from, " verified ", key, " = \"", from_view.seen, "\", to which ", to, " appended ", element,
                      committed_first);
      }
      return StrCat(to, " appended ", element, " to ", key, " after ", from, " appended \"",
                    FormatList(from_view.appended), "\"", committed_first);
    case kWr:
      return StrCat(to, " read ", key, " = \"", to_view.seen, "\" with ", element, " that ", from, " appended",
                    committed_first);
    default:
      return StrCat(from, " read ", key, " = \"", from_view.seen, "\" without ", element, " that ", to,
                    " appended: ", from, " started before ", to, " committed");
  }
}

const View& GraphChecker::ViewOf(TxnId txn, KeyId key) const {
  const std::vector<View>& views = lists_.keys[key].views;
  return *std::lower_bound(views.begin(), views.end(), txn, [](const View& v, TxnId id) { return v.txn < id; });
}

// A pivot has an rw from and an rw to transactions with which it forms a cycle. Called before real time is added.
size_t GraphChecker::CountPivots() const {
  const auto nodes = static_cast<Digraph::Node>(history_.transactions.size());
  std::vector<Digraph::Edge> edges;
  for (const Dependency& dependency : dependencies_) edges.push_back({dependency.from, dependency.to, 0});
  const std::vector<Component> components = CyclicComponents(Digraph(nodes, edges));
  std::vector<size_t> component_of(nodes, 0);
  for (size_t i = 0; i < components.size(); ++i) {
    for (const Digraph::Node node : components[i]) component_of[node] = i + 1;
  }
  std::vector<bool> overlooks(nodes, false);
  std::vector<bool> overlooked(nodes, false);
  for (const Dependency& dependency : dependencies_) {
    const size_t component = component_of[dependency.from];
    if (dependency.kind != kRw || component == 0 || component != component_of[dependency.to]) continue;
    overlooks[dependency.from] = true;
    overlooked[dependency.to] = true;
  }
  size_t pivots = 0;
  for (TxnId txn = 0; txn < nodes; ++txn) pivots += overlooks[txn] && overlooked[txn] ? 1 : 0;
  return pivots;
}

}  // namespace

GraphReport CheckGraph(const History& history, const GraphOptions& options) {
  return GraphChecker(history, options).Run();
}

}  // namespace percolator
