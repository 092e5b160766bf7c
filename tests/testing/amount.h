// SPDX-License-Identifier: Apache-2.0

// The amount of work of a test. With a sanitizer everything takes several times as long, and the mistakes that it finds
// show in a few rounds; the release build does the full amount.

#ifndef PERCOLATOR_TESTS_TESTING_AMOUNT_H_
#define PERCOLATOR_TESTS_TESTING_AMOUNT_H_

namespace percolator {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

template <typename Number>
constexpr Number Amount(Number usually, Number with_sanitizer) {
  return kSanitized ? with_sanitizer : usually;
}

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_TESTING_AMOUNT_H_
