// Assertions on what a caller promises (REQUIRES:) and on what a protocol step must leave behind.

#ifndef PERCOLATOR_BASE_CHECK_H_
#define PERCOLATOR_BASE_CHECK_H_

namespace percolator::internal {

// Prints the condition and its place to standard error, and aborts.
[[noreturn]] void CheckFailed(const char* condition, const char* file, int line);

}  // namespace percolator::internal

// Aborts if `condition` is false, in builds with PERCOLATOR_DCHECKS: dev, sanitizers, fuzzing, and the simulator. In other
// builds the condition is compiled and not evaluated. Must not be used for what input, a store or another process can cause:
// that is an error with a status.
#ifdef PERCOLATOR_DCHECKS
#define PERCOLATOR_DCHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::percolator::internal::CheckFailed(#condition, __FILE__, __LINE__))
#else
#define PERCOLATOR_DCHECK(condition) static_cast<void>(sizeof(static_cast<bool>(condition)))
#endif

#endif  // PERCOLATOR_BASE_CHECK_H_
