// SPDX-License-Identifier: Apache-2.0

// PageRank, kept up to date by passing on only differences.
//
// A page gives an equal share of kDamping of its rank to each page that it links to. Its rank is (1 - kDamping) plus the shares
// that it receives. When the rank of a page has changed by more than kRankTolerance since it last gave, it gives the difference.
// So a change runs through the graph and gets smaller at every step, until it is too small to be passed on.
//
// Pages that link to each other change together, so one transaction handles many changes. It writes the changes for other pages
// into new cells, one for each shard of pages, and a weak observer of the shard collects them. The longer that takes, the more
// changes it collects, so ranks settle in few rounds at any loading rate. The transaction that counts a change deletes its cell,
// so the change counts once. An epoch takes some seconds. A scan of one epoch does not pass over the deleted cells of others.
//
// Every run writes or verifies `received` of each of its pages, so of two runs that overlap on a page, only one commits.
//
// ERROR   Let e(q) <= kRankTolerance be the difference that q has not given yet. The sums are exact, in whole units, so rank(p)
//         differs from the true rank by the sum over q of G(p, q) e(q), where G(p, q) is the part that arrives at p of one unit
//         that q gives. Since rank(p) = (1 - kDamping) times the sum of G(p, q) over all q, the error is at most
//         kRankTolerance / (1 - kDamping), relative to rank(p). The stored rank is that at the last giving, which adds another
//         kRankTolerance.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "apps/webindex/document.pb.h"
#include "apps/webindex/observers.h"
#include "apps/webindex/tables.h"
#include "apps/webindex/terms.h"
#include "percolator/status_macros.h"

namespace webindex {

using percolator::CellView;
using percolator::ReadWrite;
using percolator::RowRange;
using percolator::Timestamp;

namespace {

constexpr auto kTolerance = static_cast<int64_t>(kRankTolerance * kRankUnit);
constexpr auto kOwnRank = static_cast<int64_t>((1 - kDamping) * kRankUnit);

constexpr uint64_t kShards = 8;
constexpr uint64_t kEpochMicros = 1 << 22;
// Limits of one transaction, which must stay below percolator::TransactionLimits for any links.
constexpr size_t kPagesAtOnce = 2000;              // pages that receive, plus those of one more cell of changes
constexpr size_t kChangesTogether = kPagesAtOnce;  // changes in one cell
constexpr size_t kGivenAtOnce = 4 << 20;           // bytes of links and shares of the pages that give

// The changes for a page.
struct PageChange {
  int64_t received = 0;
  bool new_links = false;
};
using ChangesByUrl = std::map<std::string, PageChange>;

// Writes the changes into cells of the shards of their pages.
absl::Status AddChanges(ReadWrite& t, const ChangesByUrl& changes) {
  std::map<uint64_t, std::vector<RankChanges>> shards;
  for (const auto& [url, change] : changes) {
    if (change.received == 0 && !change.new_links) continue;
    std::vector<RankChanges>& cells = shards[HashOf(url).low % kShards];
    if (cells.empty() || static_cast<size_t>(cells.back().changes_size()) == kChangesTogether) cells.emplace_back();
    RankChange* added = cells.back().add_changes();
    added->set_url(url);
    added->set_received(change.received);
    added->set_new_links(change.new_links);
  }
  PERCOLATOR_ASSIGN_OR_RETURN(const Timestamp id, t.Start());
  for (const auto& [shard, cells] : shards) {
    const std::string epoch = absl::StrFormat("%02x/%012x", shard, id.value() / kEpochMicros);
    for (size_t i = 0; i < cells.size(); ++i) {
      t.Set(kChanges, absl::StrFormat("%s/%016x/%04x", epoch, id.value(), i), cells[i]);
    }
    t.Notify(kSpread, epoch);
  }
  return absl::OkStatus();
}

// Reads and deletes changes of an epoch. Sets `more` if there are others.
absl::StatusOr<ChangesByUrl> TakeChanges(ReadWrite& t, const std::string& epoch, bool* more) {
  ChangesByUrl taken;
  *more = false;
  for (const auto& row : t.Scan(kChanges, {.rows = RowRange::Prefix(epoch + "/")})) {
    PERCOLATOR_RETURN_IF_ERROR(row.status());
    *more = taken.size() >= kPagesAtOnce;
    if (*more) break;
    for (const RankChange& change : row->value.changes()) {
      PageChange& of_page = taken[change.url()];
      of_page.received += change.received();
      of_page.new_links |= change.new_links();
    }
    t.Delete(kChanges, row->row);
  }
  return taken;
}

Shares SharesOf(int64_t rank, const Links& links) {
  Shares shares;
  for (const Link& link : links.links()) {  // in the order of targets
    if (shares.targets().empty() || *shares.targets().rbegin() != link.target()) shares.add_targets(link.target());
  }
  if (!shares.targets().empty()) {
    shares.set_share(static_cast<int64_t>(kDamping * static_cast<double>(rank)) / shares.targets_size());
  }
  return shares;
}

void AddDifferences(const Shares& before, const Shares& now, ChangesByUrl* given) {
  for (const std::string& target : now.targets()) (*given)[target].received += now.share();
  for (const std::string& target : before.targets()) (*given)[target].received -= before.share();
}

// Decodes a cell that was read together with others.
template <typename T>
absl::StatusOr<std::optional<T>> Decoded(const Column<T>& column, std::string_view row,
                                         const std::optional<std::string>& bytes) {
  if (!bytes.has_value()) return std::nullopt;
  return column.Decode(row, *bytes);
}

// A page that has to give a difference.
struct Giver {
  std::string url;
  int64_t rank = 0;
  std::optional<int64_t> had_rank = {};
};

// Adds the received shares to the pages. Returns the pages that have to give a difference.
absl::StatusOr<std::vector<Giver>> ReceiveAll(ReadWrite& t, const ChangesByUrl& changes) {
  std::vector<CellView> cells;
  for (const auto& [url, change] : changes) {
    cells.push_back(kReceived.At(url));
    cells.push_back(kRank.At(url));
  }
  PERCOLATOR_ASSIGN_OR_RETURN(const auto values, t.GetCells(cells));
  std::vector<Giver> givers;
  size_t i = 0;
  for (const auto& [url, change] : changes) {
    PERCOLATOR_ASSIGN_OR_RETURN(const std::optional<int64_t> before, Decoded(kReceived, url, values[i++]));
    PERCOLATOR_ASSIGN_OR_RETURN(const std::optional<int64_t> had_rank, Decoded(kRank, url, values[i++]));
    const int64_t received = before.value_or(0) + change.received;
    t.SetOrVerify(kReceived, url, before, received == 0 ? std::nullopt : std::optional(received));
    const int64_t rank = kOwnRank + received;
    const bool is_other = had_rank.has_value() && std::abs(rank - *had_rank) > kTolerance;
    if (change.new_links || is_other) givers.push_back({url, rank, had_rank});
  }
  return givers;
}

// Gives what follows from the rank and the links of a page.
absl::Status Give(ReadWrite& t, const Giver& giver, const std::optional<std::string>& has_links,
                  const std::optional<std::string>& had_shares, ChangesByUrl* given) {
  PERCOLATOR_ASSIGN_OR_RETURN(const std::optional<Links> links, Decoded(kLinks, giver.url, has_links));
  PERCOLATOR_ASSIGN_OR_RETURN(std::optional<Shares> before, Decoded(kShares, giver.url, had_shares));
  Shares now;
  std::optional<int64_t> rank;  // absent if there is no such page
  std::optional<std::string> shares;
  if (links.has_value()) {
    rank = giver.rank;
    now = SharesOf(giver.rank, *links);
    if (!now.targets().empty()) shares = Column<Shares>::Encode(now);
  }
  AddDifferences(std::move(before).value_or(Shares()), now, given);
  if (shares != had_shares) t.SetOrDelete(kEncoded<kShares>, giver.url, shares);
  if (rank != giver.had_rank) t.SetOrDelete(kRank, giver.url, rank);
  return absl::OkStatus();
}

// Returns the changes that the pages give. Pages beyond the limit are deferred: the result contains them as pages whose links
// have changed.
absl::StatusOr<ChangesByUrl> GiveAll(ReadWrite& t, const std::vector<Giver>& givers) {
  std::vector<CellView> cells;
  for (const Giver& giver : givers) {
    cells.push_back(kLinks.At(giver.url));
    cells.push_back(kShares.At(giver.url));
  }
  PERCOLATOR_ASSIGN_OR_RETURN(const auto values, t.GetCells(cells));
  ChangesByUrl given;
  size_t bytes = 0;
  for (size_t i = 0; i < givers.size(); ++i) {
    const std::optional<std::string>&links = values[2 * i], &shares = values[2 * i + 1];
    if (bytes >= kGivenAtOnce) {
      given[givers[i].url].new_links = true;
      continue;
    }
    bytes += (links.has_value() ? links->size() : 0) + (shares.has_value() ? shares->size() : 0);
    PERCOLATOR_RETURN_IF_ERROR(Give(t, givers[i], links, shares, &given));
  }
  return given;
}

}  // namespace

absl::Status NoteNewLinks(ReadWrite& t, const std::string& url) { return AddChanges(t, {{url, {.new_links = true}}}); }

absl::Status SpreadRanks(ReadWrite& t, const std::string& shard_and_epoch) {
  bool more = false;
  PERCOLATOR_ASSIGN_OR_RETURN(const ChangesByUrl changes, TakeChanges(t, shard_and_epoch, &more));
  PERCOLATOR_ASSIGN_OR_RETURN(const std::vector<Giver> givers, ReceiveAll(t, changes));
  PERCOLATOR_ASSIGN_OR_RETURN(const ChangesByUrl given, GiveAll(t, givers));
  PERCOLATOR_RETURN_IF_ERROR(AddChanges(t, given));
  if (more) t.Notify(kSpread, shard_and_epoch);
  return absl::OkStatus();
}

}  // namespace webindex
