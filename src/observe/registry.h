// SPDX-License-Identifier: Apache-2.0

// The observers of a cluster, as stored in the cluster itself.
//
// They are cells of one row of the system table: column = the observer's name, value:
//
//   observer := version kind table column      version 01; kind 01 strong | 02 weak; each name an ordered string
//
// They tell the transactions of a process which columns to mark (src/txn/observed.h). A process reads them when it
// opens the cluster, when one of its workers starts, and periodically (Cluster, after each half of the lease).

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
// Returns DataLoss if `bytes` are not an observer, and FailedPrecondition if they are of a newer format.
absl::StatusOr<ObserverInfo> DecodeObserver(std::string_view name, std::string_view bytes);

// Reads the observers, and passes the observed columns to the transactions of this process. Returns none if no worker
// ever started.
absl::StatusOr<std::vector<ObserverInfo>> LoadObservers(Engine* engine);

// Makes these the observers of the cluster; with `add_only`, adds them. Returns all observers after that, which the
// transactions of this process then know. Creates the system table if it does not exist.
absl::StatusOr<std::vector<ObserverInfo>> StoreObservers(Engine* engine, const std::vector<ObserverInfo>& infos,
                                                         bool add_only);

}  // namespace percolator

#endif  // PERCOLATOR_OBSERVE_REGISTRY_H_
