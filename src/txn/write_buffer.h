// SPDX-License-Identifier: Apache-2.0

// WriteBuffer: keeps the writes of a transaction in memory until the commit. Build converts them for the protocol. Used
// by one thread at a time.

#ifndef PERCOLATOR_TXN_WRITE_BUFFER_H_
#define PERCOLATOR_TXN_WRITE_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "percolator/options.h"
#include "src/txn/environment.h"
#include "src/txn/writes.h"

namespace percolator {

struct BufferedWrite {
  WriteKind kind = WriteKind::kPut;
  std::string value;
  Timestamp verified;  // kVerify: see Verified
};

class WriteBuffer {
 public:
  using Cells = std::map<CellName, BufferedWrite>;

  // `limits` must outlive it.
  explicit WriteBuffer(const TransactionLimits& limits) : limits_(limits) {}

  // Returns InvalidArgument if a name or the value is too long, or the row key is empty.
  absl::Status CheckNames(std::string_view row, std::string_view column, std::string_view value) const;

  // Set, Delete or Verify. Replaces an earlier write to the cell; but Verify does not replace a put or delete, which
  // verifies too. Returns InvalidArgument, and changes nothing, if a limit would be exceeded. REQUIRES: CheckNames
  // returned OK.
  absl::Status Add(WriteKind kind, CellName cell, std::string_view value);
  // Adds a weak notification. Errors as in Add.
  absl::Status Notify(CellName cell);

  // --- For observers (src/observe/run.h).

  // Writes an acknowledgement: a cell in a reserved column, which becomes the primary.
  void Acknowledge(CellName ack, std::string value);
  // Removes marks with the commit. Does nothing if the commit has two phases and its primary is in another row.
  void RemoveMarks(MarkRemoval removal) { removal_ = std::move(removal); }
  // Marks a cell as changed, though it is not written.
  void MarkCell(CellName cell) { notified_.insert(std::move(cell)); }
  // Sets the depth of the marks that the transaction makes.
  void set_depth(uint32_t depth) { depth_ = depth; }
  // The mark of this notify-only cell gets no greater depth: an observer that notifies its own cell only continues its
  // work.
  void set_continued(CellName cell) { continued_ = std::move(cell); }

  bool empty() const { return cells_.empty() && notified_.empty(); }
  const Cells& cells() const { return cells_; }
  const std::set<CellName>& notified() const { return notified_; }
  // Returns the put or delete of the cell, or null.
  const BufferedWrite* Find(const CellName& cell) const;
  // Returns the verified cells, each with the place for the commit timestamp of the version that the transaction relies
  // on.
  std::vector<std::pair<const CellName*, Timestamp*>> Verified();
  // Returns the number of notifications that the commit will make, as far as it is known now.
  size_t CountMarks(const ObservedColumns& observed) const;

  // Moves the cells out of the buffer. `now` is the time by the oracle's clock. REQUIRES: the versions of all verified
  // cells are set.
  Writes Build(const Environment& env, Timestamp start_ts, Timestamp now);

 private:
  const TransactionLimits& limits_;
  Cells cells_;
  size_t bytes_ = 0;
  std::set<CellName> notified_;
  std::optional<CellName> ack_;
  std::optional<MarkRemoval> removal_;
  uint32_t depth_ = 0;
  std::optional<CellName> continued_;
};

}  // namespace percolator

#endif  // PERCOLATOR_TXN_WRITE_BUFFER_H_
