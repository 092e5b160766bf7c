// RowClaims: the rows that the workers of one process have claimed, so that they keep out of each other's way, and out of
// that of other processes.
//
// A claim of the Coordinator belongs to the session, that is, to the process. Within it rows are counted: an owner may claim
// a row several times, for several cells in it; the first time the coordinator is asked, the last release goes there. Two
// owners in one process exclude each other like two processes.
//
// Claims are advice. They may be lost, or granted twice, and a coordinator that can't be reached refuses nobody:
// that costs work done twice, never more.

#ifndef PERCOLATOR_COORD_ROW_CLAIMS_H_
#define PERCOLATOR_COORD_ROW_CLAIMS_H_

#include <cstddef>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "percolator/spi/coordinator.h"
#include "percolator/spi/mutex.h"

namespace percolator {

class RowClaims {
 public:
  // Both must outlive this.
  RowClaims(Coordinator* coordinator, const Session* session) : coordinator_(coordinator), session_(session) {}

  // Claims the row for `owner`, once more if it has it. False: somebody else has it, here or elsewhere.
  bool Claim(const void* owner, const std::string& table, const std::string& row);
  // Takes back one claim that was granted.
  void Release(const void* owner, const std::string& table, const std::string& row);

  // Rows that are claimed.
  size_t size() const;

 private:
  using TableRow = std::pair<std::string, std::string>;
  struct Held {
    const void* owner;
    int count;
  };

  // Counts down; true: that was the last.
  bool CountDown(const void* owner, const TableRow& row);

  Coordinator* const coordinator_;
  const Session* const session_;
  mutable Mutex mutex_;
  absl::flat_hash_map<TableRow, Held> held_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace percolator

#endif  // PERCOLATOR_COORD_ROW_CLAIMS_H_
