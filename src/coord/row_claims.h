// SPDX-License-Identifier: Apache-2.0

// RowClaims: the rows that the workers of one process have claimed, so that no two workers or processes process the same row.
//
// A claim in the Coordinator belongs to the session, that is, to the process. Within the process claims are counted: an owner
// may claim a row several times, for several cells. The first claim asks the coordinator, and the last release informs it.
// Two owners in one process exclude each other like two processes.
//
// Claims are advisory. A claim may be lost or granted twice, and is granted if the coordinator cannot be reached. The cost is
// duplicate work, and nothing else.

#ifndef PERCOLATOR_COORD_ROW_CLAIMS_H_
#define PERCOLATOR_COORD_ROW_CLAIMS_H_

#include <cstddef>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "percolator/spi/coordinator.h"
#include "percolator/spi/mutex.h"

namespace percolator {

// Thread-safe.
class RowClaims {
 public:
  // REQUIRES: both outlive this object.
  RowClaims(Coordinator* coordinator, const Session* session) : coordinator_(coordinator), session_(session) {}

  // Claims the row for `owner`, or counts one more claim if it has the row. Returns false if another owner or process has it.
  bool Claim(const void* owner, const std::string& table, const std::string& row);
  // Releases one claim that was granted.
  void Release(const void* owner, const std::string& table, const std::string& row);

  // Returns the number of claimed rows.
  size_t size() const;

 private:
  using TableRow = std::pair<std::string, std::string>;
  struct Held {
    const void* owner;
    int count;
  };

  // Removes one claim. Returns true if it was the owner's last claim of the row.
  bool CountDown(const void* owner, const TableRow& row);

  Coordinator* const coordinator_;
  const Session* const session_;
  mutable Mutex mutex_;
  absl::flat_hash_map<TableRow, Held> held_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace percolator

#endif  // PERCOLATOR_COORD_ROW_CLAIMS_H_
