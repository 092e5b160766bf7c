// SPDX-License-Identifier: Apache-2.0

// ReadCache: keeps the cells that a transaction has read, so that it reads each once. With a prefetch profile, it also
// fetches the cells that transactions of this profile are likely to read next (predictor.h), in the same request. Used
// by one thread at a time.

#ifndef PERCOLATOR_TXN_READ_CACHE_H_
#define PERCOLATOR_TXN_READ_CACHE_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "src/txn/environment.h"
#include "src/txn/get.h"
#include "src/txn/predictor.h"
#include "src/txn/write_buffer.h"

namespace percolator {

class ReadCache {
 public:
  ReadCache() = default;
  // `profile`: TransactionOptions::prefetch_profile.
  explicit ReadCache(std::string profile) : profile_(std::move(profile)) {}

  // Returns the version of a cell, or null if it was not read. A prefetched one may be without its value.
  const Version* Find(const CellName& cell) const;
  // Returns whether Value may be called.
  bool HasValue(const CellName& cell) const;

  // Reads the cells at `ts`, and the predicted ones that are not in `writes`.
  absl::Status Fetch(Environment& env, const Predictor& predictor, const WriteBuffer& writes, Timestamp ts,
                     const std::vector<CellName>& cells, const Deadline& deadline);

  // Returns the value of a cell, and counts its use. REQUIRES: HasValue.
  const std::optional<std::string>& Value(const CellName& cell, Counters* counters);

  // Records, for Learn, that the user has read the cell.
  void NoteRead(const CellName& cell);
  // Drops all that was fetched, if it has become too large.
  void Shrink();
  // Passes to the predictor the columns that were read together.
  void Learn(Predictor* predictor) const {
    for (const auto& [row, reads] : row_reads_) predictor->Learn(profile_, row.first, reads.first, reads.others);
  }

 private:
  struct Entry {
    Version version;
    bool prefetched = false;  // true until it is used
  };
  // The columns of a row that the user has read.
  struct RowReads {
    std::string first;
    std::vector<std::string> others;
  };

  void Keep(CellName cell, Version version, bool prefetched);
  void AddPredicted(const Predictor& predictor, const WriteBuffer& writes, std::vector<WantedCell>* wanted) const;

  const std::string profile_;
  std::map<CellName, Entry> entries_;
  size_t bytes_ = 0;
  std::map<std::pair<std::string, std::string>, RowReads> row_reads_;  // by table and row
};

}  // namespace percolator

#endif  // PERCOLATOR_TXN_READ_CACHE_H_
