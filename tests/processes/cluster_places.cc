// SPDX-License-Identifier: Apache-2.0

#include "tests/processes/cluster_places.h"

#include <utility>

#include "percolator/server.h"
#include "src/base/strings.h"
#include "src/oracle/local_oracle.h"
#include "src/server/executor.h"
#include "src/server/listen.h"
#include "src/server/oracle_service.h"
#include "tests/processes/emulator.h"
#include "tests/processes/etcd_process.h"
#include "tests/testing/temp_dir.h"

namespace percolator {
namespace {

class ServerPlace final : public ClusterPlace {
 public:
  absl::Status Start() {
    ServerOptions options;
    options.listen = "127.0.0.1:0";
    options.data = dir_.path() + "/data";
    options.store.durability = Durability::kNoSync;
    absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(options);
    if (!server.ok()) return server.status();
    server_ = *std::move(server);
    return absl::OkStatus();
  }
  std::string address() const override { return server_->address(); }

 private:
  TempDir dir_;
  std::unique_ptr<Server> server_;
};

class BigtablePlace final : public ClusterPlace {
 public:
  ~BigtablePlace() override {
    if (listening_.server != nullptr) listening_.server->Shutdown();
  }

  absl::Status Start() {
    if (const std::string why = EtcdProcess::WhyNot(); !why.empty()) return absl::UnavailableError(why);
    absl::StatusOr<std::unique_ptr<Emulator>> emulator = Emulator::Start();
    if (!emulator.ok()) return emulator.status();
    emulator_ = *std::move(emulator);
    etcd_ = std::make_unique<EtcdProcess>();
    absl::StatusOr<std::unique_ptr<LocalOracle>> oracle = LocalOracle::Create(dir_.path() + "/oracle", Timestamp());
    if (!oracle.ok()) return oracle.status();
    oracle_ = *std::move(oracle);
    service_ = std::make_unique<OracleService>(oracle_.get(), &executor_);
    absl::StatusOr<Listening> listening = Listen({.address = "127.0.0.1:0"}, {service_.get()});
    if (!listening.ok()) return listening.status();
    listening_ = *std::move(listening);
    return absl::OkStatus();
  }

  std::string address() const override {
    return StrCat("bigtable:projects/p/instances/i?oracle=127.0.0.1:", listening_.port, "&coord=", etcd_->endpoint(),
                  "&endpoint=", emulator_->target());
  }

 private:
  TempDir dir_;
  std::unique_ptr<Emulator> emulator_;
  std::unique_ptr<EtcdProcess> etcd_;
  std::unique_ptr<LocalOracle> oracle_;
  Executor executor_{/*threads=*/4, /*max_waiting=*/1000};
  std::unique_ptr<OracleService> service_;
  Listening listening_;
};

template <typename Place>
absl::StatusOr<std::unique_ptr<ClusterPlace>> Make() {
  auto place = std::make_unique<Place>();
  if (absl::Status s = place->Start(); !s.ok()) return s;
  return place;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ClusterPlace>> MakeServerPlace() { return Make<ServerPlace>(); }
absl::StatusOr<std::unique_ptr<ClusterPlace>> MakeBigtablePlace() { return Make<BigtablePlace>(); }

}  // namespace percolator
