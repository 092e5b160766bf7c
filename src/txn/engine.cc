// SPDX-License-Identifier: Apache-2.0

#include "src/txn/engine.h"

#include <algorithm>

#include "percolator/spi/runtime.h"
#include "percolator/status.h"
#include "src/base/errors.h"
#include "src/base/strings.h"

namespace percolator::internal {

std::shared_ptr<Engine> Engine::Make(Parts parts, StoreIs store_is, std::unique_ptr<Session> session,
                                     const ClusterOptions& options, std::string_view address) {
  // In a forked process its threads do not exist, and its files belong to the parent: it is left as it is.
  const auto end = [](Engine* engine) {
    if (engine->forked()) return KeepUntilExit(std::shared_ptr<void>(engine, [](void*) {}));
    delete engine;
  };
  return std::shared_ptr<Engine>(new Engine(std::move(parts), store_is, std::move(session), options, address), end);
}

Engine::Engine(Parts parts, StoreIs store_is, std::unique_ptr<Session> its_session, const ClusterOptions& options,
               std::string_view address)
    : env{.store = std::move(parts.store),
          .oracle = std::move(parts.oracle),
          .coordinator = std::move(parts.coordinator),
          .runtime = parts.runtime.get(),
          .session = its_session->id(),
          .options = options,
          .verdicts = {},
          .counters = {}},
      tables(env.store.get()),
      session(std::move(its_session)),
      name_(address.empty() ? "the cluster" : StrCat("the cluster ", address)),
      store_is_(store_is),
      runtime_(std::move(parts.runtime)),
      turns_(env.runtime, &gate_.closed()),
      changed_(env.runtime->NewWaitQueue()) {
  claims.emplace(env.coordinator.get(), session.get());
  hints.emplace(env.coordinator.get());
  secondaries.emplace(&env, options.max_background_commits);
  keeper.emplace(&env);
}

Engine::~Engine() { Close().IgnoreError(); }

absl::Status Engine::Closed() const {
  return ClosedError(StrCat(name_, forked() ? " was opened by the process that forked this one; open it again here, or "
                                              "fork before opening it"
                                            : " is closed"));
}

bool Engine::AddService(const std::shared_ptr<Service>& service) {
  if (forked()) return false;
  const MutexLock lock(&mutex_);
  if (closing_) return false;
  std::erase_if(services_, [](const std::weak_ptr<Service>& s) { return s.expired(); });
  services_.push_back(service);
  return true;
}

Engine::UserTask::UserTask(Engine* engine) : engine_(engine) {
  const MutexLock lock(&engine_->mutex_);
  engine_->user_tasks_.push_back(engine_->env.runtime->CurrentTask());
}

Engine::UserTask::~UserTask() {
  const MutexLock lock(&engine_->mutex_);
  std::vector<uint64_t>& tasks = engine_->user_tasks_;
  const auto mine = std::find(tasks.begin(), tasks.end(), engine_->env.runtime->CurrentTask());
  *mine = tasks.back();
  tasks.pop_back();
}

bool Engine::InUserTask() const {
  const MutexLock lock(&mutex_);
  return std::find(user_tasks_.begin(), user_tasks_.end(), env.runtime->CurrentTask()) != user_tasks_.end();
}

void Engine::StartPeriodic(Duration period, std::function<void()> run) {
  periodic_.push_back(std::make_unique<Periodic>(env.runtime, period, std::move(run)));
}

absl::Status Engine::Close() {
  if (forked()) return Closed();
  if (InUserTask()) {
    return absl::FailedPreconditionError(StrCat(
        "cannot close ", name_, " from an observer, a load function or another callback: Close waits for those"));
  }
  absl::Status status;
  if (!BeginClose(&status)) return status;
  StopServices();
  gate_.Close();
  gate_.WaitForCalls(env.runtime);
  status = ReleaseParts();
  const MutexLock lock(&mutex_);
  close_status_ = status;
  changed_->WakeAll();
  return status;
}

bool Engine::BeginClose(absl::Status* status) {
  const MutexLock lock(&mutex_);
  if (!closing_.exchange(true)) return true;
  while (!close_status_.has_value()) changed_->Wait(&mutex_);
  *status = *close_status_;
  return false;
}

// No service is added any more. Running services may still call the cluster.
void Engine::StopServices() {
  std::vector<std::weak_ptr<Service>> services;
  {
    const MutexLock lock(&mutex_);
    services.swap(services_);
  }
  for (const std::weak_ptr<Service>& weak : services) {
    if (const std::shared_ptr<Service> service = weak.lock(); service != nullptr) service->StopForClose();
  }
}

// Each part may use those that come after it.
absl::Status Engine::ReleaseParts() {
  while (!periodic_.empty()) periodic_.pop_back();
  keeper.reset();
  secondaries.reset();
  hints.reset();
  claims.reset();
  session.reset();
  tables.reset();
  env.coordinator.reset();
  env.oracle.reset();
  absl::Status status = store_is_ == StoreIs::kOwned ? env.store->Close() : absl::OkStatus();
  env.store.reset();
  return status;
}

}  // namespace percolator::internal
