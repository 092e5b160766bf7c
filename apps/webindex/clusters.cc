// Clusters of duplicates, and which of their pages stands for all.
//
// A page belongs to the cluster of its content, unless it says that it has moved: then to that of the page it has moved to,
// which may have moved in turn. The walk ends at a page that has not moved ("content:HASH"), at one that does not exist, in
// a circle, or after kMostHops pages ("url:URL"). It follows all pages on it, so a change of any of them leads to a new walk.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "apps/webindex/cells.h"
#include "apps/webindex/document.pb.h"
#include "apps/webindex/observers.h"
#include "apps/webindex/tables.h"

namespace webindex {

using percolator::CellName;
using percolator::ReadWrite;
using percolator::RowIterator;

namespace {

struct Walk {
  std::vector<std::string> pages;  // from the page itself
  std::string cluster;             // the key that it has led to
};

std::string ContentKey(const Identity& identity) {
  return absl::StrFormat("content:%016x%016x", identity.content_high(), identity.content_low());
}
std::string UrlKey(const std::string& url) { return "url:" + url; }

absl::StatusOr<Walk> WalkFrom(ReadWrite& t, const std::string& url) {
  Walk walk;
  std::string at = url;
  while (true) {
    const auto met = std::find(walk.pages.begin(), walk.pages.end(), at);
    if (met != walk.pages.end()) {
      walk.cluster = UrlKey(*std::min_element(met, walk.pages.end()));
      return walk;
    }
    if (walk.pages.size() == kMostHops) {
      walk.cluster = UrlKey(at);
      return walk;
    }
    walk.pages.push_back(at);
    const absl::StatusOr<Value> value = t.Get(kPages, at, kIdentity);
    if (!value.ok()) return value.status();
    const absl::StatusOr<Identity> identity = MessageIn<Identity>(*value);
    if (!identity.ok()) return identity.status();
    if (!value->has_value() || identity->moved_to().empty()) {
      walk.cluster = value->has_value() ? ContentKey(*identity) : UrlKey(at);
      return walk;
    }
    at = identity->moved_to();
  }
}

absl::Status Leave(ReadWrite& t, const std::string& key, const std::string& url) {
  if (absl::Status s = t.Delete(kMembers, PairRow(key, url), kMember); !s.ok()) return s;
  return t.Notify(kClusters, key, kChoose);
}

absl::Status Join(ReadWrite& t, const std::string& key, const std::string& url) {
  if (absl::Status s = t.Set(kMembers, PairRow(key, url), kMember, "1"); !s.ok()) return s;
  return t.Notify(kClusters, key, kChoose);
}

// The members of a cluster, in order; `most` of them.
absl::StatusOr<std::vector<std::string>> MembersOf(ReadWrite& t, const std::string& key, size_t most) {
  std::vector<std::string> members;
  const std::unique_ptr<RowIterator> rows =
      t.Scan({.table = std::string(kMembers), .rows = PairsOf(key), .columns = {std::string(kMember)}});
  while (members.size() < most && rows->Next()) members.emplace_back(SecondOf(rows->row().key));
  if (!rows->status().ok()) return rows->status();
  return members;
}

// Of the highest rank; of these the first.
absl::StatusOr<std::string> Highest(ReadWrite& t, const std::vector<std::string>& members) {
  std::vector<CellName> cells;
  for (const std::string& url : members) cells.push_back(Cell(kPages, url, kRank));
  const absl::StatusOr<std::vector<Value>> ranks = t.Get(cells);
  if (!ranks.ok()) return ranks.status();
  size_t best = 0;
  int64_t highest = -1;
  for (size_t i = 0; i < members.size(); ++i) {
    int64_t rank = 0;  // it has none yet
    if ((*ranks)[i].has_value() && !absl::SimpleAtoi(*(*ranks)[i], &rank)) {
      return absl::DataLossError("the rank of " + members[i] + " is not a number");
    }
    if (rank <= highest) continue;
    highest = rank;
    best = i;
  }
  return members[best];
}

// Those whose place in the index may be another now. The canonical page always: its anchors are those of all members, and
// a member may have left and come back, with other anchors, between two choices.
std::set<std::string> Affected(const Choice& before, const Choice& now) {
  std::set<std::string> pages(now.members().begin(), now.members().end());
  for (const std::string& url : before.members()) pages.erase(url);
  for (const std::string& url : {before.canonical(), now.canonical()}) {
    if (!url.empty()) pages.insert(url);
  }
  return pages;
}

}  // namespace

absl::Status FindCluster(ReadWrite& t, const std::string& url) {
  const absl::StatusOr<std::vector<Value>> values = t.Get({Cell(kPages, url, kIdentity), Cell(kPages, url, kCluster)});
  if (!values.ok()) return values.status();
  const Value& was = (*values)[1];
  Value cluster;  // none, if there is no such page
  std::set<std::string> topics;
  if ((*values)[0].has_value()) {
    absl::StatusOr<Walk> walk = WalkFrom(t, url);
    if (!walk.ok()) return walk.status();
    for (size_t i = 1; i < walk->pages.size(); ++i) topics.insert(MovedTopic(walk->pages[i]));
    cluster = std::move(walk->cluster);
  }
  const absl::StatusOr<bool> relied_on = Subscribe(t, url, kWalk, topics);
  if (!relied_on.ok()) return relied_on.status();
  if (!*relied_on) return t.Notify(kPages, url, kRecluster);  // walks again, now that it will be told of changes
  if (absl::Status s = PutOrVerify(t, kPages, url, kCluster, was, cluster); !s.ok() || cluster == was) return s;
  if (was.has_value()) {
    if (absl::Status s = Leave(t, *was, url); !s.ok()) return s;
  }
  if (cluster.has_value()) {
    if (absl::Status s = Join(t, *cluster, url); !s.ok()) return s;
  }
  return t.Notify(kPages, url, kReindex);
}

absl::Status ChooseCanonical(ReadWrite& t, const std::string& key) {
  absl::StatusOr<std::vector<std::string>> members = MembersOf(t, key, SIZE_MAX);
  if (!members.ok()) return members.status();
  const absl::StatusOr<Value> was = t.Get(kClusters, key, kChoice);
  if (!was.ok()) return was.status();
  const absl::StatusOr<Choice> before = MessageIn<Choice>(*was);
  if (!before.ok()) return before.status();

  Choice now;
  if (!members->empty()) {
    absl::StatusOr<std::string> highest = Highest(t, *members);
    if (!highest.ok()) return highest.status();
    now.set_canonical(*std::move(highest));
    for (std::string& url : *members) now.add_members(std::move(url));
  }
  const Value choice = now.members().empty() ? Value() : Value(now.SerializeAsString());
  if (absl::Status s = PutOrVerify(t, kClusters, key, kChoice, *was, choice); !s.ok()) return s;
  for (const std::string& url : Affected(*before, now)) {
    if (absl::Status s = t.Notify(kPages, url, kReindex); !s.ok()) return s;
  }
  return absl::OkStatus();
}

// The members are counted where they are, not in the choice, which may be about to be made.
absl::Status ReconsiderChoice(ReadWrite& t, const std::string& url) {
  const absl::StatusOr<Value> cluster = t.Get(kPages, url, kCluster);
  if (!cluster.ok() || !cluster->has_value()) return cluster.status();
  const absl::StatusOr<std::vector<std::string>> members = MembersOf(t, **cluster, 2);
  if (!members.ok() || members->size() < 2) return members.status();
  return t.Notify(kClusters, **cluster, kChoose);
}

}  // namespace webindex
