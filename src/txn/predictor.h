// SPDX-License-Identifier: Apache-2.0

// Predicts the columns of a row that a transaction will read next: those that transactions of its kind read together
// with the one that it reads now. They are fetched in the same request (section 2.5 of the paper, prefetching).
// Thread-safe.
//
// For every (kind, table, column read first in a row), it counts how often that happened, and how often each other
// column of the row was read in the same transaction. It predicts the columns that followed in at least half of the
// cases. Old counts fade.

#ifndef PERCOLATOR_TXN_PREDICTOR_H_
#define PERCOLATOR_TXN_PREDICTOR_H_

#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "percolator/spi/mutex.h"

namespace percolator {

class Predictor {
 public:
  // The maximum number of (kind, table, column), and of columns for each.
  static constexpr size_t kMaxEntries = 4096;
  static constexpr size_t kMaxColumns = 32;

  // Returns the columns likely to be read in a row of the table after `first`.
  std::vector<std::string> After(const std::string& kind, const std::string& table, const std::string& first) const;

  // Records that a transaction of the kind read `first` in a row and then the others.
  void Learn(const std::string& kind, const std::string& table, const std::string& first,
             const std::vector<std::string>& others);

 private:
  struct Entry {
    double seen = 0;
    std::map<std::string, double> followed;
  };

  mutable Mutex mutex_;
  std::map<std::tuple<std::string, std::string, std::string>, Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace percolator

#endif  // PERCOLATOR_TXN_PREDICTOR_H_
