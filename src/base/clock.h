// Clock: where library code gets the time from. Tests and simulation put their own in its place.

#ifndef PERCOLATOR_BASE_CLOCK_H_
#define PERCOLATOR_BASE_CLOCK_H_

#include <cstdint>

namespace percolator {

class Clock {
 public:
  virtual ~Clock() = default;

  // Microseconds since 2025-01-01 00:00 UTC, by the clock of this machine: it may be wrong, and may be set back.
  // Zero if it says an earlier time.
  virtual uint64_t WallMicros() = 0;

  // Microseconds since an arbitrary moment, the same for all processes of this machine. Nobody can set it, and it goes on
  // while the machine sleeps: for leases, which others may take to be over while we know of nothing.
  virtual uint64_t BootMicros();

  // The machine's clock. Lives as long as the process.
  static Clock* Real();
};

}  // namespace percolator

#endif  // PERCOLATOR_BASE_CLOCK_H_
