// PageRank, kept up to date by giving on only what has changed.
//
// A page gives each page it links to an equal share of kDamping of its rank. The shares it receives, and (1 - kDamping), are
// its rank. A page whose rank has changed by more than kRankTolerance since it gave its shares away gives the difference; so
// a change runs through the graph, less at every step, until it is too small to go on.
//
// Pages that link to each other change together, so many changes are worked on in one transaction: what it gives to pages is
// written down in cells of its own, one for each shard of pages, and a weak observer of the shard takes all that has come
// together. The longer that takes, the more comes together; so ranks settle in few rounds however fast pages are loaded.
// What was written down is deleted by the transaction that has counted it: it counts once. An epoch is some seconds:
// a scan of one does not pass over what was deleted in others.
//
// Every run writes or verifies `received` of each page it works on: so of two that overlap on a page only one commits.
//
// ERROR   Let e(q) <= kRankTolerance be what q has not given on. The sums are exact, in whole units, so rank(p) differs from
//         the true one by the sum over q of G(p, q) e(q), where G(p, q) is what arrives at p of one given away by q. Since
//         rank(p) = (1 - kDamping) times the sum of G(p, q) over all q, the error is at most
//         kRankTolerance / (1 - kDamping), relative to rank(p). What is stored as the rank was the rank when shares were
//         given away: another kRankTolerance.

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "apps/webindex/cells.h"
#include "apps/webindex/document.pb.h"
#include "apps/webindex/observers.h"
#include "apps/webindex/tables.h"
#include "apps/webindex/terms.h"

namespace webindex {

using percolator::CellName;
using percolator::ReadWrite;
using percolator::RowIterator;
using percolator::RowRange;
using percolator::Timestamp;

namespace {

constexpr auto kTolerance = static_cast<int64_t>(kRankTolerance * kRankUnit);
constexpr auto kOwnRank = static_cast<int64_t>((1 - kDamping) * kRankUnit);

constexpr uint64_t kShards = 8;
constexpr uint64_t kEpochMicros = 1 << 22;
// What one transaction does: it must stay below percolator::TransactionLimits, whatever pages link to.
constexpr size_t kPagesAtOnce = 2000;              // that receive; about: one more cell of changes
constexpr size_t kChangesTogether = kPagesAtOnce;  // in one cell
constexpr size_t kGivenAtOnce = 4 << 20;           // bytes of the links and shares of the pages that give

// What has changed for a page.
struct PageChange {
  int64_t received = 0;
  bool new_links = false;
};
using ChangesByUrl = std::map<std::string, PageChange>;

absl::StatusOr<int64_t> NumberIn(const Value& value) {
  int64_t number = 0;
  if (value.has_value() && !absl::SimpleAtoi(*value, &number)) return absl::DataLossError("not a number: " + *value);
  return number;
}

// Writes down changes, for the shards of their pages.
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
  const absl::StatusOr<Timestamp> id = t.Start();
  if (!id.ok()) return id.status();
  for (const auto& [shard, cells] : shards) {
    const std::string epoch = absl::StrFormat("%02x/%012x", shard, id->value() / kEpochMicros);
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string row = absl::StrFormat("%s/%016x/%04x", epoch, id->value(), i);
      if (absl::Status s = t.Set(kRankChanges, row, kChanges, cells[i].SerializeAsString()); !s.ok()) return s;
    }
    if (absl::Status s = t.Notify(kRankChanges, epoch, kSpread); !s.ok()) return s;
  }
  return absl::OkStatus();
}

// Takes changes of an epoch, and sets `more` if there are others.
absl::StatusOr<ChangesByUrl> TakeChanges(ReadWrite& t, const std::string& epoch, bool* more) {
  ChangesByUrl taken;
  const std::unique_ptr<RowIterator> rows = t.Scan(
      {.table = std::string(kRankChanges), .rows = RowRange::Prefix(epoch + "/"), .columns = {std::string(kChanges)}});
  *more = false;
  while (rows->Next()) {
    *more = taken.size() >= kPagesAtOnce;
    if (*more) break;
    RankChanges changes;
    if (!changes.ParseFromString(rows->row().columns[0].value)) {
      return absl::DataLossError("changes of ranks are damaged");
    }
    for (const RankChange& change : changes.changes()) {
      PageChange& of_page = taken[change.url()];
      of_page.received += change.received();
      of_page.new_links |= change.new_links();
    }
    if (absl::Status s = t.Delete(kRankChanges, rows->row().key, kChanges); !s.ok()) return s;
  }
  if (!rows->status().ok()) return rows->status();
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

// Gives a page what it has received. Returns whether it has to give something on.
absl::StatusOr<bool> Receive(ReadWrite& t, const std::string& url, const PageChange& change, const Value& was_received,
                             const Value& was_rank, int64_t* rank) {
  const absl::StatusOr<int64_t> before = NumberIn(was_received);
  const absl::StatusOr<int64_t> old_rank = NumberIn(was_rank);
  if (!before.ok()) return before.status();
  if (!old_rank.ok()) return old_rank.status();
  const int64_t received = *before + change.received;
  const Value now = received == 0 ? Value() : Value(std::to_string(received));
  if (absl::Status s = PutOrVerify(t, kRanks, url, kReceived, was_received, now); !s.ok()) return s;
  *rank = kOwnRank + received;
  return change.new_links || (was_rank.has_value() && std::abs(*rank - *old_rank) > kTolerance);
}

// Gives on what follows from a page's rank, and from its links.
absl::Status Give(ReadWrite& t, const std::string& url, int64_t rank, const Value& has_links, const Value& had_shares,
                  const Value& had_rank, ChangesByUrl* given) {
  const absl::StatusOr<Links> links = MessageIn<Links>(has_links);
  const absl::StatusOr<Shares> before = MessageIn<Shares>(had_shares);
  if (!links.ok()) return links.status();
  if (!before.ok()) return before.status();
  Value now_rank, now_shares;  // none, if there is no such page
  Shares now;
  if (has_links.has_value()) {
    now = SharesOf(rank, *links);
    now_rank = std::to_string(rank);
    if (!now.targets().empty()) now_shares = now.SerializeAsString();
  }
  AddDifferences(*before, now, given);
  if (now_shares != had_shares) {
    if (absl::Status s = Put(t, kPages, url, kShares, now_shares); !s.ok()) return s;
  }
  return now_rank == had_rank ? absl::OkStatus() : Put(t, kPages, url, kRank, now_rank);
}

struct Giver {
  std::string url;
  int64_t rank = 0;
  Value had_rank;
};

// Gives the pages what they have received. Returns those that have to give something on.
absl::StatusOr<std::vector<Giver>> ReceiveAll(ReadWrite& t, const ChangesByUrl& changes) {
  std::vector<CellName> cells;
  for (const auto& [url, change] : changes) {
    cells.push_back(Cell(kRanks, url, kReceived));
    cells.push_back(Cell(kPages, url, kRank));
  }
  absl::StatusOr<std::vector<Value>> values = t.Get(cells);
  if (!values.ok()) return values.status();
  std::vector<Giver> givers;
  size_t i = 0;
  for (const auto& [url, change] : changes) {
    const Value& received = (*values)[i++];
    Value& had_rank = (*values)[i++];
    int64_t rank = 0;
    const absl::StatusOr<bool> gives = Receive(t, url, change, received, had_rank, &rank);
    if (!gives.ok()) return gives.status();
    if (*gives) givers.push_back({url, rank, std::move(had_rank)});
  }
  return givers;
}

// What they give; pages that would make it too much are put off: they are among the answer, as if their links had changed.
absl::StatusOr<ChangesByUrl> GiveAll(ReadWrite& t, const std::vector<Giver>& givers) {
  std::vector<CellName> cells;
  for (const Giver& giver : givers) {
    cells.push_back(Cell(kPages, giver.url, kLinks));
    cells.push_back(Cell(kPages, giver.url, kShares));
  }
  const absl::StatusOr<std::vector<Value>> values = t.Get(cells);
  if (!values.ok()) return values.status();
  ChangesByUrl given;
  size_t bytes = 0;
  for (size_t i = 0; i < givers.size(); ++i) {
    const Giver& giver = givers[i];
    const Value &links = (*values)[2 * i], &shares = (*values)[2 * i + 1];
    if (bytes >= kGivenAtOnce) {
      given[giver.url].new_links = true;
      continue;
    }
    bytes += (links.has_value() ? links->size() : 0) + (shares.has_value() ? shares->size() : 0);
    if (absl::Status s = Give(t, giver.url, giver.rank, links, shares, giver.had_rank, &given); !s.ok()) return s;
  }
  return given;
}

}  // namespace

absl::Status NoteNewLinks(ReadWrite& t, const std::string& url) { return AddChanges(t, {{url, {.new_links = true}}}); }

absl::Status SpreadRanks(ReadWrite& t, const std::string& shard_and_epoch) {
  bool more = false;
  const absl::StatusOr<ChangesByUrl> changes = TakeChanges(t, shard_and_epoch, &more);
  if (!changes.ok()) return changes.status();
  const absl::StatusOr<std::vector<Giver>> givers = ReceiveAll(t, *changes);
  if (!givers.ok()) return givers.status();
  const absl::StatusOr<ChangesByUrl> given = GiveAll(t, *givers);
  if (!given.ok()) return given.status();
  if (absl::Status s = AddChanges(t, *given); !s.ok()) return s;
  return more ? t.Notify(kRankChanges, shard_and_epoch, kSpread) : absl::OkStatus();
}

}  // namespace webindex
