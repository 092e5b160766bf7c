// SPDX-License-Identifier: Apache-2.0

// ClusterObservers: the observers of the cluster, and which of them this worker runs.
//
// OWN      An observer of this worker, while the cluster also has it with the same column and kind. Each has a lane.
// FOREIGN  Any other observer of the cluster: only other workers run it. This worker checks whether it has something to do for
//          a cell, because the marks of the cell must stay as long as it has. All foreign observers share a lane.
//
// Not thread-safe: the mutex of dispatch guards it. The specification of an own observer, and its count of runs, may be
// used without the mutex.

#ifndef PERCOLATOR_OBSERVE_CLUSTER_OBSERVERS_H_
#define PERCOLATOR_OBSERVE_CLUSTER_OBSERVERS_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "percolator/observer.h"
#include "src/observe/lane.h"
#include "src/observe/own_observer.h"

namespace percolator {

// An observer of the cluster.
struct ClusterObserver {
  ObserverInfo info;
  OwnObserver* own = nullptr;  // null: foreign
  Lane* lane = nullptr;
};

// The observers of a column, by name. Another object whenever the observers of the cluster change.
using ColumnObservers = std::shared_ptr<const std::vector<ClusterObserver>>;

class ClusterObservers {
 public:
  // The cluster has no observers until Set.
  ClusterObservers(std::vector<ObserverSpec> own, const WorkerOptions& options);

  // Sets the observers of the cluster. Returns false, and changes nothing, if they are the same as before.
  bool Set(std::vector<ObserverInfo> all);
  // Returns null if the column is not observed.
  ColumnObservers Find(std::string_view table, std::string_view column) const;
  // Returns the tables that have an observed column.
  std::set<std::string> Tables() const;

  const std::vector<std::unique_ptr<OwnObserver>>& own() const { return own_; }
  // All lanes: those of own(), then that of the foreign observers.
  const std::vector<Lane*>& lanes() const { return lanes_; }

 private:
  ClusterObserver Describe(const ObserverInfo& info);

  std::vector<std::unique_ptr<OwnObserver>> own_;
  const std::unique_ptr<Lane> foreign_;
  std::vector<Lane*> lanes_;
  std::vector<ObserverInfo> all_;  // by name
  std::map<std::pair<std::string, std::string>, ColumnObservers> by_column_;
};

}  // namespace percolator

#endif  // PERCOLATOR_OBSERVE_CLUSTER_OBSERVERS_H_
