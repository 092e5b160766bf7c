// SPDX-License-Identifier: Apache-2.0

// Registers the coordinator in this process for the conformance suite.

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "src/coord/local_coordinator.h"
#include "src/oracle/local_oracle.h"
#include "tests/coord/conformance.h"
#include "tests/testing/temp_dir.h"

namespace percolator {
namespace {

class LocalPlace final : public CoordinatorPlace {
 public:
  LocalPlace() { Start(LocalOracle::Create(OraclePath(), Timestamp())); }

  Coordinator* Connect() override { return coordinator_.get(); }
  void Restart() override {
    coordinator_ = nullptr;
    oracle_ = nullptr;
    Start(LocalOracle::Open(OraclePath()));
  }

 private:
  std::string OraclePath() const { return dir_.path() + "/oracle"; }

  void Start(absl::StatusOr<std::unique_ptr<LocalOracle>> oracle) {
    if (!oracle.ok()) {
      std::fprintf(stderr, "%s\n", oracle.status().ToString().c_str());
      std::abort();
    }
    oracle_ = *std::move(oracle);
    coordinator_ = std::make_unique<LocalCoordinator>(oracle_.get());
  }

  TempDir dir_;
  std::unique_ptr<LocalOracle> oracle_;
  std::unique_ptr<LocalCoordinator> coordinator_;
};

const bool kRegistered = RegisterCoordinator({"local", [] { return std::make_unique<LocalPlace>(); }});

}  // namespace
}  // namespace percolator
