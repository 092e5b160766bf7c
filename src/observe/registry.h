// The observers that a cluster has, as kept in the cluster itself.
//
// They are cells of one row of the system table: column = the observer's name, value:
//
//   observer := version kind table column      version 01; kind 01 strong | 02 weak; each name an ordered string
//
// From them the transactions of a process know which columns to mark (src/txn/observed.h). They are read when the cluster is
// opened, when a worker of this process starts, and now and then (Cluster, at every half of the lease).

#ifndef PERCOLATOR_OBSERVE_REGISTRY_H_
#define PERCOLATOR_OBSERVE_REGISTRY_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/observer.h"
#include "src/txn/engine.h"

namespace percolator {

std::string EncodeObserver(const ObserverInfo& info);
// kDataLoss: no observer. kFailedPrecondition: of a newer format.
absl::StatusOr<ObserverInfo> DecodeObserver(std::string_view name, std::string_view bytes);

// Reads the observers, and tells the transactions of this process what is observed. None, if no worker ever started.
absl::StatusOr<std::vector<ObserverInfo>> LoadObservers(Engine* engine);

// Makes these the observers of the cluster; with `add_only`, adds them to those there are. Returns all there are then, of
// which the transactions of this process know. Creates the system table if it does not exist.
absl::StatusOr<std::vector<ObserverInfo>> StoreObservers(Engine* engine, const std::vector<ObserverInfo>& infos,
                                                         bool add_only);

}  // namespace percolator

#endif  // PERCOLATOR_OBSERVE_REGISTRY_H_
