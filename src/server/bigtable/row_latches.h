// RowLatches: one at a time for each row, as long as it takes to read it, to decide and to write it.
//
// They are a fixed number, shared by all rows: two rows may have the same. They are held across calls of a store, so this is
// for threads that may block, and not for the simulator.

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
  // Which of them is a row's.
  static size_t Of(std::string_view table, std::string_view row) { return absl::HashOf(table, row) % kCount; }

  // Holds some of them while it lives. They are taken in their order, so that two who want the same do not wait for each
  // other forever.
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
