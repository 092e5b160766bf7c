// SPDX-License-Identifier: Apache-2.0

#include "src/txn/merged_rows.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "percolator/status_macros.h"
#include "src/txn/scan.h"

namespace percolator::internal {
namespace {

class MergedRows final : public RowSource {
 public:
  MergedRows(TransactionCore* core, std::shared_ptr<TransactionCore> owner, std::string_view table, ScanOptions options)
      : owner_(std::move(owner)),
        core_(core),
        table_(table),
        options_(std::move(options)),
        rest_(options_.rows),
        started_(core->MayRead()) {
    std::sort(options_.columns.begin(), options_.columns.end());
    if (started_.ok()) scan_.emplace(&core->engine()->env, core->start_ts(), table_, options_);
  }

  std::optional<absl::StatusOr<ScannedRow>> Next() override {
    if (done_) return std::nullopt;
    absl::Status status = core_->engine()->InCall([this] { return started_.ok() ? Advance() : started_; });
    if (!status.ok()) {
      done_ = true;
      core_->NoteReadError(status);
      return status;
    }
    if (done_) return std::nullopt;
    if (++returned_ == options_.limit) done_ = true;
    if (options_.keys_only) row_.columns.clear();
    return std::move(row_);
  }

  void NoteError(const absl::Status& status) override { core_->NoteReadError(status); }

 private:
  // Makes `row_` the next row, or sets `done_`.
  absl::Status Advance() {
    // T9: after the commit, the transaction's own writes are gone.
    PERCOLATOR_RETURN_IF_ERROR(core_->MayRead());
    for (;;) {
      if (!committed_.has_value() && !at_end_) {
        PERCOLATOR_ASSIGN_OR_RETURN(std::optional<ScannedRow> next, scan_->Next(core_->ReadDeadline()));
        committed_ = std::move(next);
        at_end_ = !committed_.has_value();
      }
      const std::optional<std::string> own = NextOwnRow();
      if (at_end_ && !own.has_value()) {
        done_ = true;
        return absl::OkStatus();
      }
      if (at_end_ || (own.has_value() && ComesBefore(*own, committed_->key))) {
        row_ = {*own, {}};
      } else {
        row_ = *std::move(committed_);
        committed_.reset();
      }
      Overlay();
      LeaveRow();
      if (!row_.columns.empty()) return absl::OkStatus();
    }
  }

  bool WantsColumn(const std::string& column) const {
    return options_.columns.empty() || std::binary_search(options_.columns.begin(), options_.columns.end(), column);
  }

  bool ComesBefore(const std::string& row, const std::string& other) const {
    return options_.reverse ? row > other : row < other;
  }

  // Removes the current row from the rest. In place, because it is called for every row of a scan.
  void LeaveRow() {
    if (options_.reverse) {
      rest_.limit = row_.key;
    } else {
      rest_.start = row_.key;
      rest_.start.push_back('\0');
    }
  }

  // Returns the next row in which the transaction has written a selected cell.
  std::optional<std::string> NextOwnRow() const {
    const WriteBuffer::Cells& writes = core_->writes().cells();
    if (writes.empty() || (rest_.limit.has_value() && *rest_.limit <= rest_.start)) return std::nullopt;
    const auto begin = writes.lower_bound({table_, rest_.start, ""});
    const auto end = rest_.limit.has_value() ? writes.lower_bound({table_, *rest_.limit, ""})
                                             : writes.lower_bound({table_ + '\0', "", ""});
    if (!options_.reverse) return FirstOwnRow(begin, end);
    return FirstOwnRow(std::make_reverse_iterator(end), std::make_reverse_iterator(begin));
  }

  template <typename Iterator>
  std::optional<std::string> FirstOwnRow(Iterator it, Iterator end) const {
    for (; it != end; ++it) {
      const auto& [cell, write] = *it;
      if (write.kind == WriteKind::kPut && WantsColumn(cell.column)) return cell.row;
    }
    return std::nullopt;
  }

  void Overlay() {
    const WriteBuffer::Cells& writes = core_->writes().cells();
    for (auto it = writes.lower_bound({table_, row_.key, ""}); it != writes.end(); ++it) {
      const auto& [cell, write] = *it;
      if (cell.table != table_ || cell.row != row_.key) break;
      if (write.kind == WriteKind::kVerify || !WantsColumn(cell.column)) continue;
      const auto place =
          std::lower_bound(row_.columns.begin(), row_.columns.end(), cell.column,
                           [](const ScannedRow::Column& c, const std::string& name) { return c.name < name; });
      const bool there = place != row_.columns.end() && place->name == cell.column;
      if (write.kind == WriteKind::kDelete) {
        if (there) row_.columns.erase(place);
      } else if (there) {
        place->value = write.value;
      } else {
        row_.columns.insert(place, {cell.column, write.value});
      }
    }
  }

  const std::shared_ptr<TransactionCore> owner_;  // null: the core outlives this
  TransactionCore* const core_;
  const std::string table_;
  ScanOptions options_;
  RowRange rest_;  // the rows that the scan has not reached
  const absl::Status started_;
  std::optional<SnapshotScan> scan_;
  std::optional<ScannedRow> committed_;  // read ahead
  bool at_end_ = false;                  // of the committed rows
  bool done_ = false;
  ScannedRow row_;
  size_t returned_ = 0;
};

}  // namespace

std::unique_ptr<RowSource> MergeRows(TransactionCore* core, std::shared_ptr<TransactionCore> owner,
                                     std::string_view table, ScanOptions options) {
  return std::make_unique<MergedRows>(core, std::move(owner), table, std::move(options));
}

}  // namespace percolator::internal
