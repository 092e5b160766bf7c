// Waiting for what other threads do.

#ifndef PERCOLATOR_TESTS_OBSERVE_EVENTUALLY_H_
#define PERCOLATOR_TESTS_OBSERVE_EVENTUALLY_H_

#include <chrono>
#include <functional>
#include <thread>

namespace percolator {

// Waits until the condition is true. Returns false if that takes longer than a minute.
inline bool Eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 60'000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_OBSERVE_EVENTUALLY_H_
