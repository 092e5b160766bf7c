// Faults: what may go wrong in a simulated run, how often, and the shape of the world otherwise.
//
// Faults::Swarm(seed) rolls a world for a seed: each kind of fault is on or off by the toss of a coin, at a rate of its
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
  // Probabilities: of a message, of a call, of a message at a server, of a question or of a wait.
  struct Rates {
    // Per message.
    double request_lost = 0;
    double reply_lost = 0;
    double slow_request = 0;
    double slow_reply = 0;
    double duplicate = 0;   // of mutations, commits in one step and requests of timestamps
    double table_lost = 0;  // request or reply of calls about tables and the safe point; they know no other fault
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
    // Per question whether a session lives.
    double false_dead = 0;
    double false_alive = 0;
    // Per hint and listener.
    double hint_lost = 0;
    double hint_twice = 0;
    // Per wait of a WaitQueue.
    double spurious_wake = 0;
  };
  Rates rates;

  // How long a message takes, unless it is slow; and then, besides.
  Duration latency_min{100};
  Duration latency_max{1'000};
  Duration slow_max{50'000};
  // The parts of a batch arrive so far apart at most.
  Duration spread_max{200};
  // When a duplicate arrives at the latest.
  Duration duplicate_max{1'000'000};
  // A call without an answer is given up after this time.
  Duration call_timeout{20'000};

  // Crashes and pauses come so many times as often before this kind of call.
  std::optional<CallKind> focus;
  // Crashes, pauses, lost sessions and restarts come so many times as often at these steps.
  Steps focus_steps = 0;
  double focus_factor = 10;

  // Of sessions; World's users take it for ClusterOptions::lock_lease too.
  Duration lease{200'000};
  Duration pause_max{400'000};
  // ClusterOptions::gc_retention of World's users.
  Duration retention{400'000};
  // A pause in four is longer than that.
  bool long_pauses = false;
  // Of a message that arrives twice, the caller hears the second answer.
  bool hears_copies = false;
  Duration down_max{20'000};
  // The sessions of a process that dies end at once, not after the lease.
  bool crash_ends_session = false;

  // Each row of a batch travels, and gets lost, on its own.
  bool rows_travel_alone = false;
  // The parts of a page of a scan are read at different moments, so many rows at a time. 0: all at once.
  size_t scan_step = 0;
  StoreLimits limits;

  // Store::CanMutateTogether, and how long each of the steps of it takes at most.
  bool one_step = false;
  Duration one_step_max{500};

  // Locks come with a timestamp (Store::MutateThenDraw), drawn a step later.
  bool draws_with_locks = false;

  // The front that shares requests (src/oracle/batching_oracle.h) stands before the oracle.
  bool batching_oracle = false;
  // How far the durable bound of the oracle is raised at a time, and how far a clock steps at most, either way.
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

// What differs from Faults::None(), in one line.
std::string ToText(const Faults& faults);

}  // namespace percolator::sim

#endif  // PERCOLATOR_SIM_FAULTS_H_
