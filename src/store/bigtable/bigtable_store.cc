// SPDX-License-Identifier: Apache-2.0

#include "src/store/bigtable/bigtable_store.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "percolator/status_macros.h"
#include "src/base/check.h"
#include "src/base/strings.h"
#include "src/store/bigtable/catalog.h"
#include "src/store/bigtable/client.h"
#include "src/store/bigtable/filters.h"
#include "src/store/bigtable/parallel.h"
#include "src/store/bigtable/safe_point.h"
#include "src/store/validate.h"

namespace percolator {
namespace {

namespace pb = google::bigtable::v2;

// Requests of this process at a time: the number that one connection to Bigtable carries.
constexpr size_t kThreads = 64;

// Limits of one ReadRows.
constexpr size_t kKeysAtOnce = 1000;
constexpr size_t kKeyBytesAtOnce = 256 << 10;
constexpr size_t kNarrowAtOnce = 16;  // selectors of different reads

// Limits of one MutateRows. Bigtable accepts 100'000 mutations.
constexpr size_t kMutationsAtOnce = 100'000;
constexpr size_t kMutationBytesAtOnce = 4 << 20;

size_t BytesOf(const RowMutation& mutation) {
  size_t bytes = mutation.row.size();
  for (const Mutation& m : mutation.mutations) bytes += m.column.size() + m.value.size();
  return bytes;
}

// Reads that share a request, which selects the cells of all their selectors in all their rows.
struct ReadGroup {
  std::string table;  // its identifier
  std::vector<Selector> selectors;
  std::vector<std::string> keys;
  size_t key_bytes = 0;
  absl::StatusOr<BigtableClient::Rows> rows = BigtableClient::Rows();
};

bool Same(const Selector& a, const Selector& b) {
  return a.family == b.family && a.newest == b.newest && a.range == b.range && a.column == b.column;
}

// Returns whether it selects so little that selecting the same in other rows does no harm.
bool IsNarrow(const Selector& selector) {
  return selector.column.has_value() &&
         (selector.newest == 1 || selector.range == TimestampRange::Exactly(selector.range.from));
}

// Divides a batch of reads into groups. Reads with the same selectors share a group, and so do reads with different
// ones if those are few and narrow: a request costs more than a few unneeded cells.
class ReadPlan {
 public:
  // Adds the read with the next number.
  void Add(const std::string& table, const RowRead& read) {
    group_of_.push_back(GroupFor(table, read.selectors));
    ReadGroup& group = groups_[group_of_.back()];
    group.keys.push_back(read.row);
    group.key_bytes += read.row.size();
  }

  std::vector<ReadGroup>& groups() { return groups_; }

  // Returns the cells of the read with this number, or null if it has none.
  const std::vector<Cell>* CellsOf(size_t number, const std::string& key) const {
    const BigtableClient::Rows& rows = *groups_[group_of_[number]].rows;
    const auto it = rows.find(key);
    return it == rows.end() ? nullptr : &it->second;
  }

 private:
  static bool Full(const ReadGroup& group) {
    return group.keys.size() >= kKeysAtOnce || group.key_bytes >= kKeyBytesAtOnce;
  }

  static bool Has(const ReadGroup& group, const Selector& selector) {
    return std::any_of(group.selectors.begin(), group.selectors.end(),
                       [&selector](const Selector& other) { return Same(selector, other); });
  }

  // Returns the number of the group for a read of these selectors, and makes a new one if there is none.
  size_t GroupFor(const std::string& table, const std::vector<Selector>& selectors) {
    const bool narrow = selectors.size() <= kNarrowAtOnce && std::all_of(selectors.begin(), selectors.end(), &IsNarrow);
    const std::optional<pb::RowFilter> filter = narrow ? std::nullopt : FilterOf(selectors);
    const auto [it, is_new] =
        open_.try_emplace({table, filter.has_value() ? filter->SerializeAsString() : ""}, groups_.size());
    if (!is_new && (Full(groups_[it->second]) || (narrow && !TakesNarrow(groups_[it->second], selectors)))) {
      it->second = groups_.size();
    }
    if (it->second == groups_.size()) {
      groups_.push_back({.table = table, .selectors = selectors});
    } else if (narrow) {
      AddMissing(selectors, &groups_[it->second]);
    }
    return it->second;
  }

  static void AddMissing(const std::vector<Selector>& selectors, ReadGroup* group) {
    for (const Selector& selector : selectors) {
      if (!Has(*group, selector)) group->selectors.push_back(selector);
    }
  }

  static bool TakesNarrow(const ReadGroup& group, const std::vector<Selector>& selectors) {
    const auto others = std::count_if(selectors.begin(), selectors.end(),
                                      [&group](const Selector& selector) { return !Has(group, selector); });
    return group.selectors.size() + static_cast<size_t>(others) <= kNarrowAtOnce;
  }

  std::vector<ReadGroup> groups_;
  // The last group of its kind, by table, and by filter unless it is narrow.
  std::map<std::pair<std::string, std::string>, size_t> open_;
  std::vector<size_t> group_of_;
};

class BigtableStore final : public Store {
 public:
  BigtableStore(std::unique_ptr<BigtableClient> client, const BigtableStoreOptions& options)
      : name_(StrCat("Bigtable store of ", options.project, "/", options.instance)),
        limits_(options.limits),
        client_(std::move(client)),
        catalog_(client_.get()),
        gate_(&catalog_, options.safe_point_age, options.clock),
        parallel_(kThreads) {}

  absl::StatusOr<std::vector<Row>> Read(const std::vector<RowRead>& reads) override;
  absl::StatusOr<ScanPage> Scan(const ScanRequest& request) override;
  std::vector<absl::StatusOr<MutateResult>> Mutate(const std::vector<RowMutation>& mutations) override;
  absl::Status RaiseSafePoint(Timestamp ts) override;
  absl::StatusOr<Timestamp> SafePoint() override;
  absl::StatusOr<std::vector<std::string>> SampleRowKeys(const std::string& name) override;
  absl::Status CreateTable(const TableInfo& info) override;
  absl::Status DropTable(const std::string& name) override;
  absl::StatusOr<std::vector<TableInfo>> ListTables() override;

  absl::Status Close() override {
    closed_ = true;
    return absl::OkStatus();
  }

  BigtableRpcs rpcs() const { return client_->rpcs(); }

 private:
  using Results = std::vector<absl::StatusOr<MutateResult>>;

  // A row mutation in progress.
  struct Change {
    size_t index = 0;  // in the batch
    const RowMutation* mutation = nullptr;
    std::string table;  // its identifier
    Predicate predicate;
    SafePointGate::Passage passage;
  };

  // Calls `work`, and again with a fresh identifier if the table is not found: it may have been dropped and created
  // again.
  template <typename Result>
  Result OnTable(const std::string& name, const std::function<Result(const std::string& id)>& work);

  absl::StatusOr<std::vector<Row>> ReadOnce(const std::vector<RowRead>& reads);
  absl::StatusOr<ScanPage> ScanOnce(const std::string& id, const ScanRequest& request);

  // Evaluates the mutations of the batch that `which` names.
  void MutateOnce(const std::vector<RowMutation>& mutations, const std::vector<size_t>& which, Results* results);
  absl::StatusOr<Change> Prepare(const RowMutation& mutation, size_t index);
  static bool OfDistinctRows(const std::vector<Change*>& wave);
  // REQUIRES: no two are of the same row.
  void SendTogether(const std::vector<Change*>& wave, Results* results);
  absl::StatusOr<MutateResult> SendIf(const Change& change);

  absl::Status Closed() const { return StoreClosed(name_); }

  const std::string name_;
  const StoreLimits limits_;
  const std::unique_ptr<BigtableClient> client_;
  BigtableCatalog catalog_;
  SafePointGate gate_;
  Parallel parallel_;
  std::atomic<bool> closed_ = false;
};

// --- Reading

template <typename Result>
Result BigtableStore::OnTable(const std::string& name, const std::function<Result(const std::string& id)>& work) {
  const auto attempt = [&]() -> Result {
    PERCOLATOR_ASSIGN_OR_RETURN(const std::string id, catalog_.IdOf(name));
    return work(id);
  };
  Result result = attempt();
  if (!absl::IsNotFound(result.status())) return result;
  catalog_.Forget(name);
  return attempt();
}

absl::StatusOr<std::vector<Row>> BigtableStore::Read(const std::vector<RowRead>& reads) {
  if (closed_) return Closed();
  for (const RowRead& read : reads) {
    PERCOLATOR_RETURN_IF_ERROR(ValidateRead(read, limits_));
  }
  absl::StatusOr<std::vector<Row>> rows = ReadOnce(reads);
  if (!absl::IsNotFound(rows.status())) return rows;
  for (const RowRead& read : reads) catalog_.Forget(read.table);
  return ReadOnce(reads);
}

absl::StatusOr<std::vector<Row>> BigtableStore::ReadOnce(const std::vector<RowRead>& reads) {
  ReadPlan plan;
  for (const RowRead& read : reads) {
    PERCOLATOR_ASSIGN_OR_RETURN(const std::string id, catalog_.IdOf(read.table));
    plan.Add(id, read);
  }
  parallel_.ForEach(plan.groups().size(), [&](size_t i) {
    ReadGroup& group = plan.groups()[i];
    std::sort(group.keys.begin(), group.keys.end());
    group.keys.erase(std::unique(group.keys.begin(), group.keys.end()), group.keys.end());
    const std::optional<pb::RowFilter> filter = FilterOf(group.selectors);
    if (filter.has_value()) group.rows = client_->Read(group.table, std::move(group.keys), *filter);
  });
  for (const ReadGroup& group : plan.groups()) {
    if (!group.rows.ok()) return group.rows.status();
  }
  std::vector<Row> rows;
  rows.reserve(reads.size());
  for (size_t i = 0; i < reads.size(); ++i) {
    const std::vector<Cell>* cells = plan.CellsOf(i, reads[i].row);
    rows.push_back({reads[i].row, cells == nullptr ? std::vector<Cell>() : Select(*cells, reads[i].selectors)});
  }
  return rows;
}

absl::StatusOr<ScanPage> BigtableStore::Scan(const ScanRequest& request) {
  if (closed_) return Closed();
  PERCOLATOR_RETURN_IF_ERROR(ValidateScan(request, limits_));
  return OnTable<absl::StatusOr<ScanPage>>(request.table, [&](const std::string& id) { return ScanOnce(id, request); });
}

absl::StatusOr<ScanPage> BigtableStore::ScanOnce(const std::string& id, const ScanRequest& request) {
  const std::optional<pb::RowFilter> filter = FilterOf(request.selectors);
  const bool empty = request.rows.limit.has_value() && *request.rows.limit <= request.rows.start;
  if (!filter.has_value() || empty) return ScanPage();
  PERCOLATOR_ASSIGN_OR_RETURN(ScanPage page,
                              client_->Scan(id, request, *filter, std::max<size_t>(limits_.max_scan_bytes, 1)));
  for (Row& row : page.rows) row.cells = Select(row.cells, request.selectors);
  std::erase_if(page.rows, [](const Row& row) { return row.cells.empty(); });  // the filter may pass more
  return page;
}

absl::StatusOr<std::vector<std::string>> BigtableStore::SampleRowKeys(const std::string& name) {
  if (closed_) return Closed();
  return OnTable<absl::StatusOr<std::vector<std::string>>>(
      name, [&](const std::string& id) { return client_->SampleRowKeys(id); });
}

// --- Mutations

std::vector<absl::StatusOr<MutateResult>> BigtableStore::Mutate(const std::vector<RowMutation>& mutations) {
  Results results(mutations.size(), Closed());
  if (closed_) return results;
  std::vector<size_t> which(mutations.size());
  for (size_t i = 0; i < which.size(); ++i) which[i] = i;
  MutateOnce(mutations, which, &results);
  std::erase_if(which, [&results](size_t i) { return !absl::IsNotFound(results[i].status()); });
  if (which.empty()) return results;
  // Nothing was applied; the table may have been dropped and created again.
  for (const size_t i : which) catalog_.Forget(mutations[i].table);
  MutateOnce(mutations, which, &results);
  return results;
}

absl::StatusOr<BigtableStore::Change> BigtableStore::Prepare(const RowMutation& mutation, size_t index) {
  PERCOLATOR_ASSIGN_OR_RETURN(std::string id, catalog_.IdOf(mutation.table));
  PERCOLATOR_RETURN_IF_ERROR(ValidateMutation(mutation, limits_));
  PERCOLATOR_RETURN_IF_ERROR(CheckTimestamps(mutation));
  PERCOLATOR_ASSIGN_OR_RETURN(Predicate predicate, PredicateOf(mutation.condition));
  PERCOLATOR_ASSIGN_OR_RETURN(SafePointGate::Passage passage, gate_.Enter(mutation));
  return Change{index, &mutation, std::move(id), std::move(predicate), std::move(passage)};
}

void BigtableStore::MutateOnce(const std::vector<RowMutation>& mutations, const std::vector<size_t>& which,
                               Results* results) {
  std::vector<Change> changes;
  changes.reserve(which.size());
  for (const size_t i : which) {
    absl::StatusOr<Change> change = Prepare(mutations[i], i);
    if (change.ok()) {
      changes.push_back(*std::move(change));
    } else {
      (*results)[i] = change.status();
    }
  }
  // Mutations of one row are sent one after the other: the first of each row together, then the second, and so on.
  std::map<std::pair<std::string_view, std::string_view>, size_t> seen;
  std::vector<std::vector<Change*>> waves;
  for (Change& change : changes) {
    const size_t wave = seen[{change.table, change.mutation->row}]++;
    if (wave == waves.size()) waves.emplace_back();
    waves[wave].push_back(&change);
  }
  for (const std::vector<Change*>& wave : waves) SendTogether(wave, results);
}

bool BigtableStore::OfDistinctRows(const std::vector<Change*>& wave) {
  std::set<std::pair<std::string_view, std::string_view>> rows;
  return std::all_of(wave.begin(), wave.end(), [&rows](const Change* change) {
    return rows.emplace(change->table, change->mutation->row).second;
  });
}

void BigtableStore::SendTogether(const std::vector<Change*>& wave, Results* results) {
  PERCOLATOR_DCHECK(OfDistinctRows(wave));
  struct Group {
    std::vector<const Change*> changes;
    size_t mutations = 0;
    size_t bytes = 0;
  };
  std::vector<Group> groups;
  std::map<std::string_view, size_t> open;  // the last group of each table
  std::vector<const Change*> alone;
  for (const Change* change : wave) {
    if (change->predicate.holds != Predicate::Holds::kAlways) {
      alone.push_back(change);
    } else if (!HasEffect(*change->mutation)) {
      (*results)[change->index] = MutateResult::kApplied;
    } else {
      const size_t count = change->mutation->mutations.size();
      const size_t bytes = BytesOf(*change->mutation);
      const auto [it, is_new] = open.try_emplace(change->table, groups.size());
      if (!is_new && (groups[it->second].mutations + count > kMutationsAtOnce ||
                      groups[it->second].bytes + bytes > kMutationBytesAtOnce)) {
        it->second = groups.size();
      }
      if (it->second == groups.size()) groups.emplace_back();
      Group& group = groups[it->second];
      group.changes.push_back(change);
      group.mutations += count;
      group.bytes += bytes;
    }
  }
  parallel_.ForEach(groups.size() + alone.size(), [&](size_t i) {
    if (i >= groups.size()) {
      const Change& change = *alone[i - groups.size()];
      (*results)[change.index] = SendIf(change);
      return;
    }
    std::vector<const RowMutation*> mutations;
    for (const Change* change : groups[i].changes) mutations.push_back(change->mutation);
    const std::vector<absl::Status> statuses = client_->Mutate(groups[i].changes[0]->table, mutations);
    for (size_t j = 0; j < statuses.size(); ++j) {
      absl::StatusOr<MutateResult>& result = (*results)[groups[i].changes[j]->index];
      if (statuses[j].ok()) {
        result = MutateResult::kApplied;
      } else {
        result = statuses[j];
      }
    }
  });
}

absl::StatusOr<MutateResult> BigtableStore::SendIf(const Change& change) {
  const Predicate& predicate = change.predicate;
  if (predicate.holds == Predicate::Holds::kNever) return MutateResult::kConditionFailed;
  if (HasEffect(*change.mutation)) return client_->MutateIf(change.table, *change.mutation, predicate);
  // CheckAndMutateRow needs a mutation; if there is none, reading is enough.
  PERCOLATOR_ASSIGN_OR_RETURN(const BigtableClient::Rows rows,
                              client_->Read(change.table, {change.mutation->row}, ReadFilterOf(predicate.filter)));
  const bool if_matched = predicate.holds == Predicate::Holds::kIfMatched;
  return rows.empty() != if_matched ? MutateResult::kApplied : MutateResult::kConditionFailed;
}

absl::Status BigtableStore::RaiseSafePoint(Timestamp ts) {
  if (closed_) return Closed();
  return gate_.Raise(ts);
}

absl::StatusOr<Timestamp> BigtableStore::SafePoint() {
  if (closed_) return Closed();
  return gate_.Get();
}

// --- Tables

absl::Status BigtableStore::CreateTable(const TableInfo& info) {
  if (closed_) return Closed();
  PERCOLATOR_RETURN_IF_ERROR(ValidateTableName(info.name));
  return catalog_.Create(info);
}

absl::Status BigtableStore::DropTable(const std::string& name) {
  if (closed_) return Closed();
  if (!ValidateTableName(name).ok()) return UnknownTable(name);
  return catalog_.Drop(name);
}

absl::StatusOr<std::vector<TableInfo>> BigtableStore::ListTables() {
  if (closed_) return Closed();
  return catalog_.List();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> OpenBigtableStore(const BigtableStoreOptions& options) {
  PERCOLATOR_ASSIGN_OR_RETURN(std::unique_ptr<BigtableClient> client, BigtableClient::Open(options));
  return std::make_unique<BigtableStore>(std::move(client), options);
}

BigtableRpcs RpcsOf(const Store& store) {
  PERCOLATOR_DCHECK(dynamic_cast<const BigtableStore*>(&store) != nullptr);
  return static_cast<const BigtableStore&>(store).rpcs();
}

}  // namespace percolator
