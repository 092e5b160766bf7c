// SPDX-License-Identifier: Apache-2.0

// Registers the coordinator on etcd for the conformance suite.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "src/base/strings.h"
#include "src/coord/etcd/etcd_coordinator.h"
#include "src/oracle/local_oracle.h"
#include "tests/coord/conformance.h"
#include "tests/processes/etcd_process.h"

namespace percolator {
namespace {

template <typename T>
T OrAbort(absl::StatusOr<T> result) {
  if (result.ok()) return *std::move(result);
  std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
  std::abort();
}

// One etcd for all tests of the program; each place has its own keys in it.
EtcdProcess& Etcd() {
  static EtcdProcess etcd;
  return etcd;
}

class EtcdPlace final : public CoordinatorPlace {
 public:
  EtcdPlace() : prefix_(NewPrefix()), oracle_(OrAbort(LocalOracle::Create(OraclePath(), Timestamp()))) {}

  // Several threads may call it at once.
  Coordinator* Connect() override {
    EtcdOptions options = Etcd().Options(prefix_);
    options.session_ttl = std::chrono::minutes(2);  // so that no session ends because the machine is busy
    options.timeout = std::chrono::seconds(60);
    std::unique_ptr<Coordinator> connection = OrAbort(OpenEtcdCoordinator(options, oracle_.get()));
    MutexLock lock(&mutex_);
    connections_.push_back(std::move(connection));
    return connections_.back().get();
  }

  void Restart() override {
    {
      MutexLock lock(&mutex_);
      connections_.clear();
    }
    oracle_ = nullptr;
    Etcd().Kill();
    Etcd().Start();
    oracle_ = OrAbort(LocalOracle::Open(OraclePath()));
  }

 private:
  static std::string NewPrefix() {
    static int count = 0;
    return StrCat("place", ++count, "/");
  }
  std::string OraclePath() const { return dir_.path() + "/oracle"; }

  const TempDir dir_;
  const std::string prefix_;
  std::unique_ptr<LocalOracle> oracle_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Coordinator>> connections_ ABSL_GUARDED_BY(mutex_);
};

const bool kRegistered =
    EtcdProcess::WhyNot().empty() && RegisterCoordinator({"etcd", [] { return std::make_unique<EtcdPlace>(); }});

TEST(EtcdCoordinatorsTest, EtcdIsInstalled) {
  if (!kRegistered) GTEST_SKIP() << EtcdProcess::WhyNot();
}

}  // namespace
}  // namespace percolator
