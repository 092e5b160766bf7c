// SPDX-License-Identifier: Apache-2.0

// Clusters of duplicates, and their canonical pages.
//
// A page belongs to the cluster of its content. If it declares that it has moved, it belongs to the cluster of the page that it
// has moved to, which may have moved in turn. This walk ends at a page that has not moved ("content:HASH"), or at a page that
// does not exist, in a circle, or after kMaxHops pages ("url:URL"). The page subscribes to all pages of the walk, so a change
// of any of them leads to a new walk.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "apps/webindex/document.pb.h"
#include "apps/webindex/observers.h"
#include "apps/webindex/tables.h"
#include "percolator/status_macros.h"

namespace webindex {

using percolator::ReadView;
using percolator::ReadWrite;

namespace {

struct Walk {
  std::vector<std::string> pages;  // the page itself first
  std::string cluster;             // the key that the walk has led to
};

std::string ContentKey(const Identity& identity) {
  return absl::StrFormat("content:%016x%016x", identity.content_high(), identity.content_low());
}
std::string UrlKey(const std::string& url) { return "url:" + url; }

absl::StatusOr<Walk> WalkFrom(const ReadView& view, const std::string& url) {
  Walk walk;
  std::string at = url;
  while (true) {
    const auto met = std::find(walk.pages.begin(), walk.pages.end(), at);
    if (met != walk.pages.end()) {
      walk.cluster = UrlKey(*std::min_element(met, walk.pages.end()));
      return walk;
    }
    if (walk.pages.size() == kMaxHops) {
      walk.cluster = UrlKey(at);
      return walk;
    }
    walk.pages.push_back(at);
    PERCOLATOR_ASSIGN_OR_RETURN(const std::optional<Identity> identity, view.Get(kIdentity, at));
    if (!identity.has_value() || identity->moved_to().empty()) {
      walk.cluster = identity.has_value() ? ContentKey(*identity) : UrlKey(at);
      return walk;
    }
    at = identity->moved_to();
  }
}

void Leave(ReadWrite& t, const std::string& key, const std::string& url) {
  t.Delete(kMember, PairRow(key, url));
  t.Notify(kChoose, key);
}

void Join(ReadWrite& t, const std::string& key, const std::string& url) {
  t.Set(kMember, PairRow(key, url), true);
  t.Notify(kChoose, key);
}

// Returns the first members of a cluster, in order.
absl::StatusOr<std::vector<std::string>> MembersOf(const ReadView& view, const std::string& key, size_t max_members) {
  std::vector<std::string> members;
  for (const auto& member : view.Scan(kMember, {.rows = PairsOf(key)})) {
    PERCOLATOR_RETURN_IF_ERROR(member.status());
    members.emplace_back(SecondOf(member->row));
    if (members.size() == max_members) break;
  }
  return members;
}

// Returns the member with the highest rank, or the first of several. A member without a rank comes last.
absl::StatusOr<std::string> Highest(const ReadView& view, const std::vector<std::string>& members) {
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<std::optional<int64_t>> ranks, view.GetRows(kRank, members));
  return members[static_cast<size_t>(std::max_element(ranks.begin(), ranks.end()) - ranks.begin())];
}

// Returns the pages whose postings may have to change. The canonical page is always one: its anchors are those of all members,
// and a member may have left and come back with other anchors between two choices.
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
  PERCOLATOR_ASSIGN_OR_RETURN((const auto [identity, was]), t.GetColumns(url, kIdentity, kCluster));
  std::optional<std::string> cluster;  // absent if there is no such page
  Topics topics;
  if (identity.has_value()) {
    PERCOLATOR_ASSIGN_OR_RETURN(Walk walk, WalkFrom(t, url));
    for (size_t i = 1; i < walk.pages.size(); ++i) topics.insert(MovedTopic(walk.pages[i]));
    cluster = std::move(walk.cluster);
  }
  PERCOLATOR_ASSIGN_OR_RETURN(const bool relied_on, Subscribe(t, url, kWalk, topics));
  if (!relied_on) {
    t.Notify(kRecluster, url);  // walks again in a later transaction: pipeline.h, rule 2
    return absl::OkStatus();
  }
  if (!t.SetOrVerify(kCluster, url, was, cluster)) return absl::OkStatus();
  if (was.has_value()) Leave(t, *was, url);
  if (cluster.has_value()) Join(t, *cluster, url);
  t.Notify(kReindex, url);
  return absl::OkStatus();
}

absl::Status ChooseCanonical(ReadWrite& t, const std::string& key) {
  PERCOLATOR_ASSIGN_OR_RETURN(std::vector<std::string> members, MembersOf(t, key, SIZE_MAX));
  PERCOLATOR_ASSIGN_OR_RETURN(const std::optional<Choice> before, t.Get(kChoice, key));
  std::optional<Choice> now;  // absent if there are no members
  if (!members.empty()) {
    PERCOLATOR_ASSIGN_OR_RETURN(std::string highest, Highest(t, members));
    now.emplace().set_canonical(std::move(highest));
    for (std::string& url : members) now->add_members(std::move(url));
  }
  t.SetOrVerify(kChoice, key, before, now);
  for (const std::string& url : Affected(before.value_or(Choice()), now.value_or(Choice()))) t.Notify(kReindex, url);
  return absl::OkStatus();
}

// Counts the members in their table, because the choice may be out of date.
absl::Status ReconsiderChoice(ReadWrite& t, const std::string& url) {
  PERCOLATOR_ASSIGN_OR_RETURN(const std::optional<std::string> cluster, t.Get(kCluster, url));
  if (!cluster.has_value()) return absl::OkStatus();
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<std::string> members, MembersOf(t, *cluster, 2));
  if (members.size() == 2) t.Notify(kChoose, *cluster);
  return absl::OkStatus();
}

}  // namespace webindex
