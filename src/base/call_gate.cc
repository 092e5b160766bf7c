// SPDX-License-Identifier: Apache-2.0

#include "src/base/call_gate.h"

namespace percolator {

size_t CallGate::ThreadIndex() {
  static std::atomic<size_t> next{0};
  thread_local const size_t index = next.fetch_add(1, std::memory_order_relaxed);
  return index;
}

}  // namespace percolator
