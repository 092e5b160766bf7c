// SPDX-License-Identifier: Apache-2.0

// World: a simulated cluster. The same seed always gives the same run.
//
//     World world(seed, Faults::Swarm(seed));
//     Client* client = world.NewClient();
//     client->process().Start([&] { UseThe(client->store(), client->oracle(), client->coordinator(), ...); });
//     Scheduler::Report report = world.Run({.events = 1'000'000});
//
// A world has one store, one oracle and one coordinator, and any number of clients: processes with their own view of
// the three. The library runs in them as it would anywhere, with the Process as its Runtime. A client that has crashed
// stays (its ghosts may still run); a new one takes its place.
//
// Outside of fibers only calls that do not wait are allowed: disk(), not store().

#ifndef PERCOLATOR_SIM_WORLD_H_
#define PERCOLATOR_SIM_WORLD_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/kernel.h"
#include "sim/process.h"
#include "sim/sim_coordinator.h"
#include "sim/sim_oracle.h"
#include "sim/sim_store.h"
#include "sim/store_server.h"
#include "src/oracle/batching_oracle.h"

namespace percolator::sim {

class World;

class Client {
 public:
  Process& process() { return process_; }
  Store* store() { return &store_; }
  // With the front that shares requests if Faults::batching_oracle is set.
  Oracle* oracle() { return front_.has_value() ? static_cast<Oracle*>(&*front_) : &oracle_; }
  Coordinator* coordinator() { return &coordinator_; }

 private:
  friend class World;
  Client(World* world, ActorId id, std::string name);

  Process process_;
  SimStore store_;
  SimOracle oracle_;
  std::optional<BatchingOracle> front_;
  SimCoordinator coordinator_;
};

class World {
 public:
  World(uint64_t seed, const Faults& faults);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // Lives as long as the world. Without a name it is called p1, p2 and so on.
  Client* NewClient(std::string name = {});
  const std::vector<std::unique_ptr<Client>>& clients() const { return clients_; }

  // Runs until no event is left, or a bound is reached. May be called again.
  Scheduler::Report Run(const Scheduler::Bounds& bounds = {}) { return kernel_.scheduler.Run(bounds); }
  // Ends all faults: servers come up, paused processes continue. Messages on their way, including late duplicates, stay
  // on their way; dead processes stay dead.
  void Heal();

  Duration now() const { return kernel_.now(); }
  Chance& chance() { return kernel_.chance; }
  const Faults& faults() const { return kernel_.faults; }
  Trace& trace() { return kernel_.trace; }
  uint64_t hash() const { return kernel_.trace.hash(); }
  Scheduler& scheduler() { return kernel_.scheduler; }
  Kernel& kernel() { return kernel_; }
  StoreServer& store_server() { return store_server_; }
  OracleServer& oracle_server() { return oracle_server_; }
  CoordinatorServer& coordinator_server() { return coordinator_server_; }

  // Chance for workloads, in [0, n). REQUIRES: n > 0.
  uint64_t Draw(const Process& process, uint64_t n) { return chance().Below(process.id(), Site::kWorkload, n); }
  // A line of the trace by a workload: "T5 begins". Compose it only if trace().on().
  void Note(const Process& process, std::string_view what) { trace().Line(now(), process.name(), what); }

 private:
  friend class Client;

  Kernel kernel_;
  std::vector<std::unique_ptr<Client>> clients_;  // before the servers, which hold answers for them
  OracleServer oracle_server_;
  StoreServer store_server_;
  CoordinatorServer coordinator_server_;
};

}  // namespace percolator::sim

#endif  // PERCOLATOR_SIM_WORLD_H_
