// What a checker of histories found: anomalies, each with its name, who is involved, and why it can't be.

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
  std::string name;                 // of the kind: the checkers list theirs
  std::vector<TxnId> transactions;  // involved, in the order in which the text tells of them
  std::string text;
};

// Of each kind the first few are kept and the rest is counted: one mistake can show a thousand times.
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
  // How many of this name; those that were not kept are counted too.
  size_t Count(std::string_view name) const;
  // Each once, in the order of the alphabet.
  std::vector<std::string> Names() const;
  // All that was kept, and how much was not.
  std::string ToString() const;

 private:
  std::vector<Anomaly> anomalies_;
  std::map<std::string, size_t, std::less<>> counts_;
};

std::ostream& operator<<(std::ostream& os, const Findings& findings);

}  // namespace percolator

#endif  // PERCOLATOR_SIM_HISTORY_FINDINGS_H_
