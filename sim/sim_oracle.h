// SPDX-License-Identifier: Apache-2.0

// The simulated oracle: the server that all processes share, and the Oracle of one process.
//
// The server works like src/oracle/local_oracle.h: a timestamp is max(last + 1, microseconds of its clock), below a
// bound that is durable before a timestamp below it is handed out (O2), and after a restart it continues at the bound
// (O3; mutant OracleRestartsLow). Its clock is virtual time, but a restart may find a clock that was set back or
// forward.

#ifndef PERCOLATOR_SIM_SIM_ORACLE_H_
#define PERCOLATOR_SIM_SIM_ORACLE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "percolator/spi/oracle.h"
#include "sim/network.h"

namespace percolator::sim {

// Is notified of all timestamps when they are drawn, in the middle of events: must not wait.
class OracleWatcher {
 public:
  virtual ~OracleWatcher() = default;
  virtual void OnTimestamps(Duration time, Timestamp first, uint32_t count) = 0;
};

class OracleServer final : public Server {
 public:
  // The time of the clock when virtual time begins: some hours, so that ages can be subtracted from it.
  static constexpr uint64_t kFirst = 10'000'000'000;

  explicit OracleServer(Kernel* kernel);

  // Draws, at the server.
  Timestamp Draw(uint32_t count);
  // As Draw, for a server that asks, as a message that arrives. Returns Unavailable if the oracle is down.
  absl::StatusOr<Timestamp> Serve(uint32_t count);
  // May be null; must outlive this.
  void SetWatcher(OracleWatcher* watcher) { watcher_ = watcher; }

 private:
  void OnRestart() override;
  uint64_t ClockMicros() const;

  OracleWatcher* watcher_ = nullptr;
  uint64_t durable_bound_ = kFirst;  // survives restarts
  uint64_t next_ = kFirst;           // no timestamp below it will be handed out any more
  Duration clock_offset_{0};
};

class SimOracle final : public Oracle {
 public:
  // All must outlive this.
  SimOracle(Kernel* kernel, Process* process, OracleServer* server)
      : kernel_(kernel), process_(process), server_(server) {}

  absl::StatusOr<Timestamp> GetTimestamps(uint32_t count) override;

 private:
  Kernel* const kernel_;
  Process* const process_;
  OracleServer* const server_;
};

}  // namespace percolator::sim

#endif  // PERCOLATOR_SIM_SIM_ORACLE_H_
