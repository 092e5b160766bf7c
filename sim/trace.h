// SPDX-License-Identifier: Apache-2.0

// Trace: the events of a run, as a hash to compare and as lines to read.
//
// The hash is always computed: two runs of one seed with different hashes are a bug of the simulator, or of code that
// takes chance or time from elsewhere. Lines are composed only if they will be read:
//
//      12.345ms  p1       mutate t/a none(lock:x write:x[7,inf)) set lock:x@7=... -> applied
//      12.602ms  p1       ! reply lost: mutate

#ifndef PERCOLATOR_SIM_TRACE_H_
#define PERCOLATOR_SIM_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/options.h"
#include "percolator/spi/store.h"
#include "sim/chance.h"

namespace percolator::sim {

class Trace {
 public:
  static constexpr size_t kOff = 0;
  static constexpr size_t kEverything = SIZE_MAX;

  // Keeps this number of last lines.
  void Keep(size_t lines) { keep_ = lines; }
  bool on() const { return keep_ > 0; }

  // Adds the value to the hash.
  void Mark(uint64_t value) { hash_ = Mix(hash_, value); }
  void Mark(std::string_view bytes) { Mark(HashBytes(bytes)); }
  uint64_t hash() const { return hash_; }

  // Adds a line; ask on() before composing it.
  void Line(Duration time, std::string_view source, std::string_view text);
  // All kept lines.
  std::string Text() const;

 private:
  uint64_t hash_ = 0;
  size_t keep_ = kOff;
  size_t dropped_ = 0;
  std::deque<std::string> lines_;
};

// The types of percolator/spi/store.h, short; values are cut.
std::string Brief(const Cell& cell);
std::string Brief(const std::vector<Cell>& cells);
std::string Brief(const RowRead& read);
std::string Brief(const ScanRequest& request);
std::string Brief(const RowMutation& mutation);
std::string Brief(const absl::Status& status);
std::string Brief(const absl::StatusOr<MutateResult>& result);

// A hash of everything that could differ between runs if they are not deterministic.
uint64_t HashOf(const RowMutation& mutation);
uint64_t HashOf(const std::vector<Cell>& cells);

}  // namespace percolator::sim

#endif  // PERCOLATOR_SIM_TRACE_H_
