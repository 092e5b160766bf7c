// SPDX-License-Identifier: Apache-2.0

// The workload of the crash tests: row mutations whose effects are determined by three numbers.
//
// Each writer performs steps 1, 2, 3, ... one after the other, and the step number is the timestamp of all its writes.
// The effects of a step follow from (plan, writer, step) alone. So the steps that were sent and their results determine
// what the store must hold, and values need not be kept. There are three kinds of steps:
//
//   batch    mutations of rows that only this writer touches: several columns in several families at once, erases,
//            conditions, sometimes a row twice. Every applied mutation leaves at least one cell with its
//            step's timestamp.
//   joint    mutations like those of a batch, of different rows, by MutateTogether: all of them or none.
//   counter  one increment of a row that all writers share: reads the newest version v and writes version v + 1 into
//            two families, on condition that v + 1 does not exist. Also erases versions older than kCounterWindow.

#ifndef PERCOLATOR_TESTS_STORE_CRASH_WORKLOAD_H_
#define PERCOLATOR_TESTS_STORE_CRASH_WORKLOAD_H_

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "percolator/spi/store.h"

namespace percolator {

struct CrashPlan {
  uint64_t seed = 1;
  uint32_t writers = 4;
  uint64_t rows_per_writer = 24;
  uint64_t value_bytes = 300;  // the max size of a value
};

inline constexpr size_t kMaxBatch = 6;
inline constexpr uint64_t kCounterWindow = 50;
inline constexpr char kCounterTable[] = "counters";
inline constexpr char kCounterColumn[] = "n";

// Creates the missing tables of the workload.
absl::Status CreateCrashTables(Store* store);
const std::vector<std::string>& CrashTables();

// Rows of different writers do not share a prefix up to and with the "-".
std::string CrashRowKey(uint32_t writer, uint64_t row);

struct CrashStep {
  // A counter step names its row; a batch or joint step has mutations.
  std::string counter_row;
  std::vector<RowMutation> mutations;
  bool is_joint = false;

  bool is_counter() const { return !counter_row.empty(); }
};
CrashStep MakeCrashStep(const CrashPlan& plan, uint32_t writer, uint64_t step);

// The increment of a counter to `version`, and the values that it writes.
RowMutation CounterIncrement(const std::string& row, uint64_t version, uint32_t writer, uint64_t step);
std::string CounterValue(uint32_t writer, uint64_t step);

// The result of one mutation of a step.
enum class CrashOutcome : uint8_t {
  kApplied,
  kConditionFailed,
  kNotApplied,  // an error that proves that it was not applied
  kUnknown,     // any other error, or no answer
};
CrashOutcome OutcomeOf(const absl::StatusOr<MutateResult>& result);
CrashOutcome OutcomeOf(const absl::Status& error);

// The result of a step. Plain bytes, small enough for one atomic write to a pipe.
struct CrashReport {
  uint32_t writer = 0;
  uint64_t step = 0;
  uint64_t counter_version = 0;  // the version that a counter step tried to write; 0 if unknown
  uint8_t count = 0;
  std::array<CrashOutcome, kMaxBatch> outcomes{};
};

// Is notified of the steps, by the writer's thread.
struct CrashListener {
  std::function<void(uint32_t writer, uint64_t step)> sending;
  // Returns whether the writer continues.
  std::function<bool(const CrashReport& report, const absl::Status& first_error)> done;
};

// Performs steps `first_step`, `first_step` + 1, ... until the listener ends it.
void RunCrashWriter(Store* store, const CrashPlan& plan, uint32_t writer, uint64_t first_step,
                    const CrashListener& listener);

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_STORE_CRASH_WORKLOAD_H_
