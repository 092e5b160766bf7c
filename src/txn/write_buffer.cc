// SPDX-License-Identifier: Apache-2.0

#include "src/txn/write_buffer.h"

#include "src/base/check.h"
#include "src/base/strings.h"

namespace percolator {
namespace {

// The version of a verified cell, until it is known.
constexpr Timestamp kNotThere = Timestamp::Infinity();

absl::Status TooLarge(std::string_view what, size_t size, size_t limit, std::string_view unit) {
  return absl::InvalidArgumentError(StrCat(what, " has ", size, " ", unit, ", more than the limit of ", limit));
}

// The cost of a cell in the requests of its row: names occur in conditions and in effects.
size_t BytesOf(const CellName& cell, const BufferedWrite& write) {
  return cell.table.size() + cell.row.size() + 4 * cell.column.size() + write.value.size();
}

// The primary of a transaction that is not an observer's: the first cell. But every lock repeats its name; if that is
// long, the cell with the shortest name.
const CellName& ChoosePrimary(const WriteBuffer::Cells& cells) {
  constexpr size_t kLongName = 256;
  const auto bytes = [](const CellName& cell) { return cell.table.size() + cell.row.size() + cell.column.size(); };
  const CellName* primary = &cells.begin()->first;
  if (bytes(*primary) <= kLongName) return *primary;
  for (const auto& [cell, write] : cells) {
    if (bytes(cell) < bytes(*primary)) primary = &cell;
  }
  return *primary;
}

// Makes rows of cells that come in order.
class RowGrouper {
 public:
  // Without `primary`, there is only one cell.
  RowGrouper(const Environment& env, Timestamp now, std::optional<CellName> primary, Writes* writes)
      : env_(env), now_(now), primary_(std::move(primary)), writes_(*writes) {}

  // Moves the name and the value.
  void Add(CellName& name, BufferedWrite& write) {
    const bool is_primary = !primary_.has_value() || name == *primary_;
    RowWrites& row = RowOf(name);
    if (is_primary) {
      primary_row_ = writes_.rows.size() - 1;
      primary_cell_ = row.cells.size();
    }
    CellWrite& cell = row.cells.emplace_back();
    cell.column = std::move(name.column);
    if (!is_primary) cell.lock.primary = primary_;
    MakeLock(row.table, write, &cell);
  }

  void PutPrimaryFirst() {
    if (primary_row_ != 0) std::swap(writes_.rows[0], writes_.rows[primary_row_]);
    if (primary_cell_ != 0) std::swap(writes_.rows[0].cells[0], writes_.rows[0].cells[primary_cell_]);
  }

 private:
  RowWrites& RowOf(CellName& name) {
    std::vector<RowWrites>& rows = writes_.rows;
    if (rows.empty() || rows.back().row != name.row || rows.back().table != name.table) {
      rows.push_back({std::move(name.table), std::move(name.row), {}});
    }
    return rows.back();
  }

  void MakeLock(const std::string& table, BufferedWrite& write, CellWrite* cell) const {
    Lock& lock = cell->lock;
    lock.kind = write.kind;
    lock.session = env_.session;
    lock.refreshed = now_;
    if (write.kind == WriteKind::kVerify) {
      PERCOLATOR_DCHECK(write.verified != kNotThere);
      lock.verified = write.verified;
    } else if (env_.observed.Contains(table, cell->column)) {
      lock.observed = true;
      lock.depth = writes_.depth;
    }
    const bool is_inline = write.kind == WriteKind::kPut && write.value.size() <= kInlineBytes;
    (is_inline ? lock.value.emplace() : cell->long_value) = std::move(write.value);
  }

  const Environment& env_;
  const Timestamp now_;
  const std::optional<CellName> primary_;
  Writes& writes_;
  size_t primary_row_ = 0;
  size_t primary_cell_ = 0;
};

}  // namespace

absl::Status WriteBuffer::CheckNames(std::string_view row, std::string_view column, std::string_view value) const {
  if (row.empty()) return absl::InvalidArgumentError("row key is empty");
  if (row.size() > limits_.max_row_key_bytes) {
    return TooLarge("row key", row.size(), limits_.max_row_key_bytes, "bytes");
  }
  if (column.size() > limits_.max_column_bytes) {
    return TooLarge("column name", column.size(), limits_.max_column_bytes, "bytes");
  }
  if (value.size() > limits_.max_value_bytes) {
    return TooLarge("value", value.size(), limits_.max_value_bytes, "bytes");
  }
  return absl::OkStatus();
}

absl::Status WriteBuffer::Add(WriteKind kind, CellName cell, std::string_view value) {
  PERCOLATOR_DCHECK(CheckNames(cell.row, cell.column, value).ok());
  const auto old = cells_.find(cell);
  const bool is_new = old == cells_.end();
  if (kind == WriteKind::kVerify && !is_new) return absl::OkStatus();
  BufferedWrite write{.kind = kind, .value = std::string(value), .verified = kNotThere};
  const size_t bytes = bytes_ + BytesOf(cell, write) - (is_new ? 0 : BytesOf(old->first, old->second));
  if (bytes > limits_.max_total_bytes) return TooLarge("transaction", bytes, limits_.max_total_bytes, "bytes");
  if (is_new && cells_.size() >= limits_.max_cells) {
    return TooLarge("transaction", cells_.size() + 1, limits_.max_cells, "cells");
  }
  bytes_ = bytes;
  cells_.insert_or_assign(std::move(cell), std::move(write));
  return absl::OkStatus();
}

absl::Status WriteBuffer::Notify(CellName cell) {
  if (notified_.size() >= limits_.max_cells) {
    return TooLarge("transaction", notified_.size() + 1, limits_.max_cells, "notifications");
  }
  notified_.insert(std::move(cell));
  return absl::OkStatus();
}

void WriteBuffer::Acknowledge(CellName ack, std::string value) {
  cells_.insert_or_assign(ack, BufferedWrite{.kind = WriteKind::kPut, .value = std::move(value), .verified = {}});
  ack_ = std::move(ack);
}

const BufferedWrite* WriteBuffer::Find(const CellName& cell) const {
  const auto it = cells_.find(cell);
  return it == cells_.end() || it->second.kind == WriteKind::kVerify ? nullptr : &it->second;
}

std::vector<std::pair<const CellName*, Timestamp*>> WriteBuffer::Verified() {
  std::vector<std::pair<const CellName*, Timestamp*>> verified;
  for (auto& [cell, write] : cells_) {
    if (write.kind == WriteKind::kVerify) verified.emplace_back(&cell, &write.verified);
  }
  return verified;
}

size_t WriteBuffer::CountMarks(const ObservedColumns& observed) const {
  size_t count = 0;
  for (const CellName& cell : notified_) count += observed.Contains(cell.table, cell.column) ? 1 : 0;
  for (const auto& [cell, write] : cells_) {
    if (write.kind != WriteKind::kVerify && observed.Contains(cell.table, cell.column)) ++count;
  }
  return count;
}

Writes WriteBuffer::Build(const Environment& env, Timestamp start_ts, Timestamp now) {
  Writes writes{
      .start_ts = start_ts, .rows = {}, .notified = {}, .depth = depth_, .continued = continued_, .removal = removal_};
  // A mark is useful only if the column has an observer.
  for (const CellName& cell : notified_) {
    if (env.observed.Contains(cell.table, cell.column)) writes.notified.push_back(cell);
  }
  if (cells_.empty()) return writes;  // only notifications
  std::optional<CellName> primary;
  if (cells_.size() > 1) primary = ack_.has_value() ? *ack_ : ChoosePrimary(cells_);
  RowGrouper rows(env, now, std::move(primary), &writes);
  while (!cells_.empty()) {
    Cells::node_type node = cells_.extract(cells_.begin());
    rows.Add(node.key(), node.mapped());
  }
  rows.PutPrimaryFirst();
  return writes;
}

}  // namespace percolator
