// SPDX-License-Identifier: Apache-2.0

// Clock: the source of time for library code. Tests and the simulator replace it.

#ifndef PERCOLATOR_BASE_CLOCK_H_
#define PERCOLATOR_BASE_CLOCK_H_

#include <cstdint>

namespace percolator {

class Clock {
 public:
  virtual ~Clock() = default;

  // Microseconds since 2025-01-01 00:00 UTC, by the clock of this machine, which may be wrong or set back.
  // Zero if the clock shows an earlier time.
  virtual uint64_t WallMicros() = 0;

  // Microseconds since an arbitrary moment, the same for all processes of this machine. It cannot be set, and goes on while
  // the machine sleeps. For leases: other processes may treat a lease as expired while this one is suspended.
  virtual uint64_t BootMicros();

  // The clock of this machine. Never destroyed.
  static Clock* Real();
};

}  // namespace percolator

#endif  // PERCOLATOR_BASE_CLOCK_H_
