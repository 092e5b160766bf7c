// SPDX-License-Identifier: Apache-2.0

// Assertions of preconditions (REQUIRES:) and of the results of protocol steps.

#ifndef PERCOLATOR_BASE_CHECK_H_
#define PERCOLATOR_BASE_CHECK_H_

namespace percolator::internal {

// Prints the condition and its location to standard error, and aborts.
[[noreturn]] void CheckFailed(const char* condition, const char* file, int line);

}  // namespace percolator::internal

// Aborts if `condition` is false, in builds with PERCOLATOR_DCHECKS: dev, sanitizers, fuzzing, and the simulator. Other
// builds compile the condition and do not evaluate it. Failures that input, a store or another process can cause must be
// reported as a status instead.
#ifdef PERCOLATOR_DCHECKS
#define PERCOLATOR_DCHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::percolator::internal::CheckFailed(#condition, __FILE__, __LINE__))
#else
#define PERCOLATOR_DCHECK(condition) static_cast<void>(sizeof(static_cast<bool>(condition)))
#endif

#endif  // PERCOLATOR_BASE_CHECK_H_
