// SPDX-License-Identifier: Apache-2.0

// RowLatches: admits one thread at a time to a row, to read it, decide and write it.
//
// The number of latches is fixed, so two rows may share one. Threads hold them during calls of a store, so they must be allowed
// to block, and the simulator cannot use this class.

#ifndef PERCOLATOR_SERVER_BIGTABLE_ROW_LATCHES_H_
#define PERCOLATOR_SERVER_BIGTABLE_ROW_LATCHES_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "percolator/spi/mutex.h"

namespace percolator {

class RowLatches {
 public:
  // Returns the index of the latch of a row.
  static size_t Of(std::string_view table, std::string_view row) { return absl::HashOf(table, row) % kCount; }

  // Holds latches while it lives. Takes them in ascending order, so that threads do not deadlock.
  class Hold {
   public:
    Hold(RowLatches* latches, std::vector<size_t> which) ABSL_NO_THREAD_SAFETY_ANALYSIS : latches_(latches),
                                                                                          which_(std::move(which)) {
      std::sort(which_.begin(), which_.end());
      which_.erase(std::unique(which_.begin(), which_.end()), which_.end());
      for (const size_t i : which_) latches_->mutexes_[i].Lock();
    }
    ~Hold() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      for (const size_t i : which_) latches_->mutexes_[i].Unlock();
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    RowLatches* const latches_;
    std::vector<size_t> which_;
  };

 private:
  static constexpr size_t kCount = 1024;
  std::array<Mutex, kCount> mutexes_;
};

}  // namespace percolator

#endif  // PERCOLATOR_SERVER_BIGTABLE_ROW_LATCHES_H_
