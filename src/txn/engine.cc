#include "src/txn/engine.h"

#include <utility>

namespace percolator {

Engine::Engine(Store* store, Oracle* oracle, Coordinator* coordinator, Runtime* runtime,
               std::unique_ptr<Session> its_session, const ClusterOptions& options)
    : env{.store = store,
          .oracle = oracle,
          .coordinator = coordinator,
          .runtime = runtime,
          .session = its_session->id(),
          .options = options,
          .verdicts = {},
          .counters = {}},
      tables(store),
      session(std::move(its_session)),
      claims(coordinator, session.get()),
      hints(coordinator),
      secondaries(&env, options.background_commits),
      keeper(&env) {}

}  // namespace percolator
