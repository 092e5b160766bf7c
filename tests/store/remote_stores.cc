// SPDX-License-Identifier: Apache-2.0

// Registers the store of a server for the suites that run on any store: a RemoteStore, a server in this process, and
// the store behind it.

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "percolator/spi/store.h"
#include "src/server/executor.h"
#include "src/server/listen.h"
#include "src/server/store_service.h"
#include "src/store/remote/remote_store.h"
#include "src/wire/channel.h"
#include "tests/harness/test_oracle.h"
#include "tests/store/store_kinds.h"
#include "tests/testing/temp_dir.h"

namespace percolator {
namespace {

// A server draws from an oracle of its own, but the suite passes oracles. So the server asks the one that was passed
// last.
class BroughtOracle final : public Oracle {
 public:
  // Returns the previous one.
  Oracle* Bring(Oracle* oracle) { return oracle_.exchange(oracle); }
  absl::StatusOr<Timestamp> GetTimestamps(uint32_t count) override {
    Oracle* const oracle = oracle_.load();
    return oracle == nullptr ? absl::UnavailableError("no oracle was set") : oracle->GetTimestamps(count);
  }

 private:
  std::atomic<Oracle*> oracle_{nullptr};
};

// A server with its store, and the connection to it.
struct Served {
  explicit Served(std::unique_ptr<Store> behind)
      : store(std::move(behind)),
        executor(/*threads=*/8, /*max_waiting=*/10'000),
        service(store.get(), &oracle, &executor) {}

  std::unique_ptr<Store> store;
  BroughtOracle oracle;
  Executor executor;
  StoreService service;
  Listening listening;
};

class ServedStore final : public RemoteStore {
 public:
  ServedStore(std::unique_ptr<Served> served, const std::shared_ptr<grpc::Channel>& channel)
      : RemoteStore(channel, std::chrono::seconds(60)), served_(std::move(served)) {}
  ~ServedStore() override { EndServer(); }

  absl::StatusOr<JointResult> MutateTogether(const JointMutation& mutation, Oracle* oracle) override {
    served_->oracle.Bring(oracle);
    return RemoteStore::MutateTogether(mutation, oracle);
  }
  absl::Status RaiseSafePoint(Timestamp ts) override {
    TestOracle late(uint64_t{1} << 62);  // above all timestamps of the suite
    Oracle* const before = served_->oracle.Bring(&late);
    absl::Status status = RemoteStore::RaiseSafePoint(ts);
    served_->oracle.Bring(before);
    return status;
  }
  absl::Status Close() override {
    if (absl::Status s = RemoteStore::Close(); !s.ok()) return s;
    EndServer();
    return served_->store->Close();
  }

 private:
  void EndServer() {
    if (served_->listening.server == nullptr) return;
    served_->listening.server->Shutdown();
    served_->listening.server->Wait();
    served_->listening.server = nullptr;
  }

  const std::unique_ptr<Served> served_;
};

class RemotePlace final : public StorePlace {
 public:
  absl::StatusOr<std::unique_ptr<Store>> Open(const StoreLimits& limits) override {
    RocksOptions options;
    options.durability = Durability::kNoSync;
    options.block_cache_bytes = 1 << 20;
    options.limits = limits;
    absl::StatusOr<std::unique_ptr<Store>> store = OpenRocksStore(dir_.path() + "/store", options);
    if (!store.ok()) return store.status();
    auto served = std::make_unique<Served>(*std::move(store));
    absl::StatusOr<Listening> listening = Listen({.address = "127.0.0.1:0"}, {&served->service});
    if (!listening.ok()) return listening.status();
    served->listening = *std::move(listening);
    const auto channel = OpenChannel("127.0.0.1:" + std::to_string(served->listening.port), {});
    if (!channel.ok()) return channel.status();
    return std::make_unique<ServedStore>(std::move(served), *channel);
  }

 private:
  TempDir dir_;
};

const bool kRemoteRegistered =
    RegisterStore({.name = "remote",
                   .make = [] { return std::make_unique<RemotePlace>(); },
                   .keeps_content = true,
                   .takes_limits = true,
                   .cannot = {{"ARequestLimitsTheBytesOfARow", "the limit is for stores in this process"}}});

}  // namespace
}  // namespace percolator
