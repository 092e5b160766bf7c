// SPDX-License-Identifier: Apache-2.0

// Registers the coordinator of a server for the conformance suite.

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "percolator/server.h"
#include "src/coord/remote/remote_coordinator.h"
#include "src/wire/channel.h"
#include "tests/coord/conformance.h"
#include "tests/testing/temp_dir.h"

namespace percolator {
namespace {

class RemotePlace final : public CoordinatorPlace {
 public:
  RemotePlace() { Start(); }
  ~RemotePlace() override { connections_.clear(); }

  Coordinator* Connect() override {
    const auto channel = OpenChannel("127.0.0.1:" + std::to_string(server_->port()), {});
    connections_.push_back(std::make_unique<RemoteCoordinator>(channel.value(), std::chrono::seconds(60)));
    return connections_.back().get();
  }
  void Restart() override {
    connections_.clear();
    server_ = nullptr;
    Start();
  }

 private:
  void Start() {
    ServerOptions options;
    options.listen = "127.0.0.1:0";
    options.data = dir_.path() + "/data";
    options.session_ttl = std::chrono::minutes(2);  // so that no session ends because the machine is busy
    auto server = Server::Start(options);
    if (!server.ok()) {
      std::cerr << server.status() << "\n";
      std::abort();
    }
    server_ = *std::move(server);
  }

  TempDir dir_;
  std::unique_ptr<Server> server_;
  std::vector<std::unique_ptr<RemoteCoordinator>> connections_;
};

const bool kRegistered = RegisterCoordinator({"remote", [] { return std::make_unique<RemotePlace>(); }});

}  // namespace
}  // namespace percolator
