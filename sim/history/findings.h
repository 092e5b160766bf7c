// SPDX-License-Identifier: Apache-2.0

// The findings of a checker of histories: anomalies, each with its name, the transactions involved, and the reason why
// it is impossible.

#ifndef PERCOLATOR_SIM_HISTORY_FINDINGS_H_
#define PERCOLATOR_SIM_HISTORY_FINDINGS_H_

#include <cstddef>
#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/history/history.h"

namespace percolator {

struct Anomaly {
  std::string name;                 // of the kind; each checker lists its names
  std::vector<TxnId> transactions;  // involved, in the order in which the text mentions them
  std::string text;
};

// Keeps the first few anomalies of each kind and counts the others: one mistake can show a thousand times.
class Findings {
 public:
  static constexpr size_t kKeptPerName = 20;

  // `text` is a function that makes the text; it is called only if the anomaly is kept.
  template <typename Text>
  void Add(std::string_view name, std::vector<TxnId> transactions, const Text& text) {
    size_t& count = counts_.try_emplace(std::string(name), 0).first->second;
    if (++count <= kKeptPerName) anomalies_.push_back({std::string(name), std::move(transactions), text()});
  }

  bool ok() const { return anomalies_.empty(); }
  const std::vector<Anomaly>& anomalies() const { return anomalies_; }
  // The number of anomalies of this name, including those that were not kept.
  size_t Count(std::string_view name) const;
  // Each name once, sorted.
  std::vector<std::string> Names() const;
  // All anomalies that were kept, and the number of those that were not.
  std::string ToString() const;

 private:
  std::vector<Anomaly> anomalies_;
  std::map<std::string, size_t, std::less<>> counts_;
};

std::ostream& operator<<(std::ostream& os, const Findings& findings);

}  // namespace percolator

#endif  // PERCOLATOR_SIM_HISTORY_FINDINGS_H_
