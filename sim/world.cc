// SPDX-License-Identifier: Apache-2.0

#include "sim/world.h"

#include <utility>

#include "src/base/strings.h"

namespace percolator::sim {

Client::Client(World* world, ActorId id, std::string name)
    : process_(&world->kernel_, id, std::move(name)),
      store_(&world->kernel_, &process_, &world->store_server_),
      oracle_(&world->kernel_, &process_, &world->oracle_server_),
      coordinator_(&world->kernel_, &process_, &world->coordinator_server_) {
  process_.AddListener(&world->coordinator_server_);
  if (world->kernel_.faults.batching_oracle) front_.emplace(&oracle_, &process_);
}

World::World(uint64_t seed, const Faults& faults)
    : kernel_(seed, faults),
      oracle_server_(&kernel_),
      store_server_(&kernel_, &oracle_server_),
      coordinator_server_(&kernel_) {}

// Events on their way are cleared first: they refer to everything else.
World::~World() { kernel_.scheduler.Clear(); }

Client* World::NewClient(std::string name) {
  const size_t number = clients_.size() + 1;
  if (name.empty()) name = StrCat("p", number);
  const auto id = static_cast<ActorId>(kFirstProcessActor + number - 1);
  // NOLINTNEXTLINE(modernize-make-unique): the constructor is private.
  clients_.push_back(std::unique_ptr<Client>(new Client(this, id, std::move(name))));
  return clients_.back().get();
}

void World::Heal() {
  kernel_.faults.rates = {};
  store_server_.ComeUp();
  oracle_server_.ComeUp();
  for (const std::unique_ptr<Client>& client : clients_) client->process().Resume();
}

}  // namespace percolator::sim
