// SPDX-License-Identifier: Apache-2.0

// Faults: the faults of a simulated run and their rates, and the other properties of the world.
//
// Faults::Swarm(seed) rolls a world for a seed: each kind of fault is on or off with equal chance, at a rate of its
// own, because bugs hide from runs in which everything fails a little all the time. Faults::None() is the world without
// faults; World::Heal turns a faulty world into one.

#ifndef PERCOLATOR_SIM_FAULTS_H_
#define PERCOLATOR_SIM_FAULTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "percolator/options.h"
#include "percolator/spi/store.h"
#include "sim/coverage.h"

namespace percolator::sim {

// The calls of a process to the servers.
enum class CallKind : uint8_t { kRead, kScan, kMutate, kMutateTogether, kTable, kOracle, kCoordinator };
std::string_view CallName(CallKind kind);

struct Faults {
  // Probabilities. Each group says per what.
  struct Rates {
    // Per message.
    double request_lost = 0;
    double reply_lost = 0;
    double slow_request = 0;
    double slow_reply = 0;
    double duplicate = 0;   // of mutations, commits in one step and requests of timestamps
    double table_lost = 0;  // request or reply of calls about tables and the safe point, their only fault
    // Per call of a process.
    double crash = 0;
    double crash_after_send = 0;
    double pause = 0;
    double pause_after_send = 0;
    double session_lost = 0;
    // Per message at a server.
    double store_restart = 0;
    double oracle_restart = 0;
    // Per restart of the oracle.
    double clock_step = 0;
    // Per query whether a session is alive.
    double false_dead = 0;
    double false_alive = 0;
    // Per hint and listener.
    double hint_lost = 0;
    double hint_twice = 0;
    // Per wait of a WaitQueue.
    double spurious_wake = 0;
  };
  Rates rates;

  // The latency of a message, and the max extra latency of a slow one.
  Duration latency_min{100};
  Duration latency_max{1'000};
  Duration slow_max{50'000};
  // The max time between the arrivals of the parts of a batch.
  Duration spread_max{200};
  // The max delay of a duplicate.
  Duration duplicate_max{1'000'000};
  // The timeout of a call without an answer.
  Duration call_timeout{20'000};

  // Crashes and pauses are `focus_factor` times as likely before this kind of call.
  std::optional<CallKind> focus;
  // Crashes, pauses, lost sessions and restarts are `focus_factor` times as likely at these steps.
  Steps focus_steps = 0;
  double focus_factor = 10;

  // The lease of sessions. Users of a World also set ClusterOptions::lock_lease to it.
  Duration lease{200'000};
  Duration pause_max{400'000};
  // Users of a World set ClusterOptions::gc_retention to this.
  Duration retention{400'000};
  // A quarter of the pauses are longer than the retention.
  bool long_pauses = false;
  // If a message arrives twice, the caller gets the second answer.
  bool hears_copies = false;
  Duration down_max{20'000};
  // The sessions of a process that dies end at once instead of after the lease.
  bool crash_ends_session = false;

  // Each row of a batch travels, and may get lost, on its own.
  bool rows_travel_alone = false;
  // The number of rows of a page of a scan that are read at one moment. 0: all.
  size_t scan_step = 0;
  StoreLimits limits;

  // Store::CanMutateTogether, and the max time of each of its steps.
  bool one_step = false;
  Duration one_step_max{500};

  // Locks come with a timestamp (Store::MutateThenDraw) that is drawn a step later.
  bool draws_with_locks = false;

  // The front that shares requests (src/oracle/batching_oracle.h) stands before the oracle.
  bool batching_oracle = false;
  // The amount by which the oracle raises its durable bound at a time, and the max step of a clock, in either
  // direction.
  Duration oracle_window{100'000};
  Duration clock_step_max{300'000};

  static Faults None() { return {}; }
  static Faults Swarm(uint64_t seed);
};

// The rates by name: to print them, and to switch one off at a time.
struct RateField {
  std::string_view name;
  double Faults::Rates::*rate;
};
std::span<const RateField> RateFields();

// The differences from Faults::None(), in one line.
std::string ToText(const Faults& faults);

}  // namespace percolator::sim

#endif  // PERCOLATOR_SIM_FAULTS_H_
