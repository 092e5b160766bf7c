// Engine: all that the transactions of one cluster, in one process, share.

#ifndef PERCOLATOR_TXN_ENGINE_H_
#define PERCOLATOR_TXN_ENGINE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "percolator/coordinator.h"
#include "percolator/options.h"
#include "src/coord/hint_fan.h"
#include "src/coord/row_claims.h"
#include "src/txn/background.h"
#include "src/txn/environment.h"
#include "src/txn/predictor.h"
#include "src/txn/snapshot_registry.h"
#include "src/txn/tables.h"

namespace percolator {

struct Engine {
  // The parts must outlive the engine.
  Engine(Store* store, Oracle* oracle, Coordinator* coordinator, Runtime* runtime, std::unique_ptr<Session> session,
         const ClusterOptions& options);

  Environment env;
  SnapshotRegistry snapshots;
  Predictor predictor;
  Tables tables;
  const std::unique_ptr<Session> session;
  // Of the workers.
  RowClaims claims;
  HintFan hints;
  // Last: their tasks use what is above.
  SecondaryQueue secondaries;
  LockKeeper keeper;
};

}  // namespace percolator

#endif  // PERCOLATOR_TXN_ENGINE_H_
