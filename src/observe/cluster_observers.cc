// SPDX-License-Identifier: Apache-2.0

#include "src/observe/cluster_observers.h"

#include <algorithm>
#include <cstddef>

namespace percolator {
namespace {

bool IsSame(const ObserverSpec& spec, const ObserverInfo& info) {
  return spec.name == info.name && spec.table == info.table && spec.column == info.column && spec.kind == info.kind;
}

}  // namespace

ClusterObservers::ClusterObservers(std::vector<ObserverSpec> own, const WorkerOptions& options)
    : foreign_(std::make_unique<Lane>(options.threads, std::max<size_t>(options.max_queued_cells, 1))) {
  const size_t max_pending = std::max<size_t>(options.max_queued_cells / std::max<size_t>(own.size(), 1), 1);
  for (ObserverSpec& spec : own) {
    const int max_running = spec.max_concurrency > 0 ? spec.max_concurrency : options.threads;
    own_.push_back(std::make_unique<OwnObserver>(std::move(spec), max_running, max_pending));
    lanes_.push_back(&own_.back()->lane());
  }
  lanes_.push_back(foreign_.get());
}

bool ClusterObservers::Set(std::vector<ObserverInfo> all) {
  std::sort(all.begin(), all.end(), [](const ObserverInfo& a, const ObserverInfo& b) { return a.name < b.name; });
  if (all == all_) return false;
  all_ = std::move(all);
  std::map<std::pair<std::string, std::string>, std::vector<ClusterObserver>> by_column;
  for (const ObserverInfo& info : all_) by_column[{info.table, info.column}].push_back(Describe(info));
  by_column_.clear();
  for (auto& [column, observers] : by_column) {
    by_column_.emplace(column, std::make_shared<const std::vector<ClusterObserver>>(std::move(observers)));
  }
  return true;
}

ClusterObserver ClusterObservers::Describe(const ObserverInfo& info) {
  for (const auto& own : own_) {
    if (IsSame(own->spec(), info)) return {.info = info, .own = own.get(), .lane = &own->lane()};
  }
  return {.info = info, .own = nullptr, .lane = foreign_.get()};
}

ColumnObservers ClusterObservers::Find(std::string_view table, std::string_view column) const {
  const auto it = by_column_.find({std::string(table), std::string(column)});
  return it == by_column_.end() ? nullptr : it->second;
}

std::set<std::string> ClusterObservers::Tables() const {
  std::set<std::string> tables;
  for (const auto& [column, observers] : by_column_) tables.insert(column.first);
  return tables;
}

}  // namespace percolator
