// SPDX-License-Identifier: Apache-2.0

// The pipeline that is measured: load -> A -> B. A document is loaded under a number. A computes something from it, and B
// something from that, each in a transaction of its own.

#ifndef PERCOLATOR_BENCHMARKS_PIPELINE_H_
#define PERCOLATOR_BENCHMARKS_PIPELINE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace percolator {

// Called when B's transaction for a document has committed.
using ObservedFunction = std::function<void(uint64_t document)>;

class Pipeline {
 public:
  virtual ~Pipeline() = default;

  // Loads a document and returns after the commit. `loader` is the number of the calling thread, from zero.
  virtual void Load(int loader, uint64_t document, const std::string& contents) = 0;
};

// The computation of A and B, the same on both sides.
inline std::string Derive(std::string_view contents) {
  uint64_t sum = 14695981039346656037U;
  for (const char c : contents) sum = (sum ^ static_cast<uint8_t>(c)) * 1099511628211U;
  return std::string(contents.substr(0, 80)) + std::to_string(sum);
}

}  // namespace percolator

#endif  // PERCOLATOR_BENCHMARKS_PIPELINE_H_
