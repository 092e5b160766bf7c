// The public classes of percolator/transaction.h, and the iterator that merges a scan with the transaction's own writes.

#include "percolator/transaction.h"

#include <algorithm>
#include <utility>

#include "percolator/cluster.h"
#include "src/base/mutant.h"
#include "src/base/strings.h"
#include "src/txn/columns.h"
#include "src/txn/scan.h"
#include "src/txn/transaction_core.h"

namespace percolator {
namespace {

// T9: rows of the snapshot, overlaid with what the transaction has written when a row is reached.
class MergingIterator final : public RowIterator {
 public:
  MergingIterator(TransactionCore* core, std::shared_ptr<TransactionCore> owner, ScanOptions options)
      : owner_(std::move(owner)), core_(core), options_(std::move(options)), started_(core->MayRead()) {
    std::sort(options_.columns.begin(), options_.columns.end());
    if (started_.ok()) scan_.emplace(&core->engine()->env, core->start_ts(), options_);
  }
  // Of a cluster that is closed.
  explicit MergingIterator(absl::Status closed) : core_(nullptr), started_(std::move(closed)) {}

  bool Next() override {
    if (!started_.ok()) return Fail(started_);
    if (done_) return false;
    absl::StatusOr<bool> more = core_->engine()->InCall([this]() -> absl::StatusOr<bool> {
      const bool found = Advance();
      if (!status_.ok()) return status_;
      return found;
    });
    return more.ok() ? *more : Fail(more.status());
  }

  const ScannedRow& row() const override { return row_; }
  const absl::Status& status() const override { return status_; }

 private:
  bool Advance() {
    // T9: after the commit the transaction's own writes are not here any more.
    if (absl::Status s = core_->MayRead(); !s.ok()) return Fail(std::move(s));
    while (status_.ok() && !done_) {
      if (!committed_.has_value()) {
        absl::StatusOr<std::optional<ScannedRow>> next = scan_->Next(core_->ReadDeadline());
        if (!next.ok()) return Fail(next.status());
        committed_ = *std::move(next);
        at_end_ = !committed_.has_value();
      }
      const std::optional<std::string> own = NextOwnRow();
      if (at_end_ && !own.has_value()) {
        done_ = true;
      } else if (at_end_ || (own.has_value() && *own < committed_->key)) {
        row_ = {*own, {}};
        Overlay();
      } else {
        row_ = *std::move(committed_);
        committed_.reset();
        Overlay();
      }
      if (!done_) last_ = row_.key;
      if (!done_ && !row_.columns.empty()) return true;
    }
    return false;
  }

  bool Fail(absl::Status status) {
    status_ = std::move(status);
    done_ = true;
    return false;
  }

  bool WantsColumn(const std::string& column) const {
    return options_.columns.empty() || std::binary_search(options_.columns.begin(), options_.columns.end(), column);
  }

  // The first row after the last one in which the transaction has written something of interest.
  std::optional<std::string> NextOwnRow() const {
    if (MutantOn(Mutant::kScanIgnoresOwnWrites)) return std::nullopt;
    const std::string from = last_.has_value() ? *last_ + '\0' : options_.rows.start;
    for (auto it = core_->writes().lower_bound({options_.table, from, ""}); it != core_->writes().end(); ++it) {
      const CellName& cell = it->first;
      if (cell.table != options_.table) break;
      if (options_.rows.limit.has_value() && cell.row >= *options_.rows.limit) break;
      if (it->second.kind == WriteKind::kPut && WantsColumn(cell.column)) return cell.row;
    }
    return std::nullopt;
  }

  void Overlay() {
    if (MutantOn(Mutant::kScanIgnoresOwnWrites)) return;
    for (auto it = core_->writes().lower_bound({options_.table, row_.key, ""}); it != core_->writes().end(); ++it) {
      const auto& [cell, write] = *it;
      if (cell.table != options_.table || cell.row != row_.key) break;
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
  ScanOptions options_;
  const absl::Status started_;
  std::optional<SnapshotScan> scan_;
  std::optional<ScannedRow> committed_;  // read ahead
  bool at_end_ = false;                  // of the committed rows
  bool done_ = false;
  std::optional<std::string> last_;  // the row reached last
  ScannedRow row_;
  absl::Status status_;
};

// The system table is written by Percolator itself only, which does not come this way.
absl::Status CheckUsers(std::string_view table) {
  if (table != kSystemTable) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("the table ", kSystemTable, " is Percolator's own: it can't be written"));
}

absl::Status Buffer(TransactionCore* core, WriteKind kind, std::string_view table, std::string_view row,
                    std::string_view column, std::string_view value) {
  if (absl::Status s = CheckUsers(table); !s.ok()) return s;
  return core->engine()->InCall([&] { return core->Buffer(kind, table, row, column, value); });
}

}  // namespace

ReadView::ReadView(std::shared_ptr<TransactionCore> core) : core_(std::move(core)) {}
ReadView::~ReadView() = default;

absl::StatusOr<std::optional<std::string>> ReadView::Get(std::string_view table, std::string_view row,
                                                         std::string_view column) {
  return core_->engine()->InCall([&] { return core_->Get(table, row, column); });
}

absl::StatusOr<std::vector<std::optional<std::string>>> ReadView::Get(const std::vector<CellName>& cells) {
  return core_->engine()->InCall([&] { return core_->Get(cells); });
}

std::unique_ptr<RowIterator> ReadView::Scan(const ScanOptions& options) {
  std::unique_ptr<RowIterator> rows;
  const absl::Status status = core_->engine()->InCall([&] {
    rows = std::make_unique<MergingIterator>(core_.get(), core_, options);
    return absl::OkStatus();
  });
  return status.ok() ? std::move(rows) : std::make_unique<MergingIterator>(status);
}

Timestamp ReadView::timestamp() const { return core_->start_ts(); }

Snapshot::Snapshot(std::shared_ptr<TransactionCore> core) : ReadView(std::move(core)) {}

absl::StatusOr<Timestamp> ReadWrite::Start() {
  return core().engine()->InCall([&]() -> absl::StatusOr<Timestamp> {
    if (absl::Status s = core().MayRead(); !s.ok()) return s;
    return core().start_ts();
  });
}

absl::Status ReadWrite::Set(std::string_view table, std::string_view row, std::string_view column,
                            std::string_view value) {
  return Buffer(&core(), WriteKind::kPut, table, row, column, value);
}

absl::Status ReadWrite::Delete(std::string_view table, std::string_view row, std::string_view column) {
  return Buffer(&core(), WriteKind::kDelete, table, row, column, {});
}

absl::Status ReadWrite::Verify(std::string_view table, std::string_view row, std::string_view column) {
  return Buffer(&core(), WriteKind::kVerify, table, row, column, {});
}

absl::Status ReadWrite::Notify(std::string_view table, std::string_view row, std::string_view column) {
  return core().engine()->InCall([&] { return core().Notify(table, row, column); });
}

Transaction::Transaction(Cluster* cluster, const TransactionOptions& options)
    : Transaction(cluster->engine(), options) {}

Transaction::Transaction(std::shared_ptr<Engine> engine, const TransactionOptions& options)
    : ReadWrite(std::make_shared<TransactionCore>(std::move(engine), options)) {}

CommitResult Transaction::Commit() {
  if (core().result().has_value()) return *core().result();
  std::optional<CommitResult> result;
  core()
      .engine()
      ->InCall([&] {
        result = core().Commit();
        return absl::OkStatus();
      })
      .IgnoreError();
  return result.has_value() ? *result : core().Abandon();
}

std::unique_ptr<RowIterator> TransactionCore::Scan(const ScanOptions& options) {
  return std::make_unique<MergingIterator>(this, nullptr, options);
}

}  // namespace percolator
