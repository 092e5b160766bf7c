// SPDX-License-Identifier: Apache-2.0

// The public classes of percolator/transaction.h.

#include "percolator/transaction.h"

#include <algorithm>
#include <utility>

#include "percolator/cluster.h"
#include "percolator/status_macros.h"
#include "src/base/strings.h"
#include "src/txn/columns.h"
#include "src/txn/merged_rows.h"
#include "src/txn/row_source.h"
#include "src/txn/transaction_core.h"

namespace percolator {
namespace {

// The maximum bytes of a cell's name in an error.
constexpr size_t kMaxNameInText = 200;

// The only element of a scan of a closed cluster.
class FailedRows final : public internal::RowSource {
 public:
  explicit FailedRows(absl::Status error) : error_(std::move(error)) {}

  std::optional<absl::StatusOr<ScannedRow>> Next() override {
    if (std::exchange(returned_, true)) return std::nullopt;
    return error_;
  }
  void NoteError(const absl::Status& /*status*/) override {}

 private:
  const absl::Status error_;
  bool returned_ = false;
};

// Returns read(), or the error that the cluster is closed, and keeps an error.
template <typename Fn>
auto Read(TransactionCore& core, const Fn& read) -> decltype(read()) {
  decltype(read()) result = core.engine()->InCall(read);
  if (!result.ok()) core.NoteReadError(result.status());
  return result;
}

// Returns the status of a write, with its cell.
absl::Status AtWrite(CellView cell, const absl::Status& status) {
  if (IsClosed(status)) return status;
  return absl::Status(status.code(),
                      StrCat("write to ", ToString(cell).substr(0, kMaxNameInText), ": ", status.message()));
}

// Only Percolator itself writes the system table, and not through these classes.
absl::Status CheckUsers(std::string_view table) {
  if (table != kSystemTable) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("table ", kSystemTable, " is Percolator's own and cannot be written"));
}

// Keeps the error of `write` if it is the first of the transaction.
template <typename Fn>
void KeepError(TransactionCore& core, CellView cell, const Fn& write) {
  if (!core.write_error().ok()) return;
  absl::Status status = core.engine()->InCall([&] { return write(); });
  if (!status.ok()) core.KeepWriteError(AtWrite(cell, status));
}

void Buffer(TransactionCore& core, WriteKind kind, CellView cell, std::string_view value) {
  KeepError(core, cell, [&]() -> absl::Status {
    PERCOLATOR_RETURN_IF_ERROR(CheckUsers(cell.table));
    return core.Buffer(kind, cell.table, cell.row, cell.column, value);
  });
}

}  // namespace

std::optional<std::string_view> ScannedRow::operator[](std::string_view column) const {
  const auto place = std::lower_bound(columns.begin(), columns.end(), column,
                                      [](const Column& c, std::string_view name) { return c.name < name; });
  if (place == columns.end() || place->name != column) return std::nullopt;
  return place->value;
}

namespace internal {

absl::Status FirstReadError(const ReadWrite& t) { return t.core().read_error(); }

ScanOptions OnlyColumn(std::string_view column, ScanOptions options) {
  options.columns = {std::string(column)};
  options.keys_only = false;
  return options;
}

absl::Status NoteReadError(const ReadView& view, absl::Status status) {
  view.core().NoteReadError(status);
  return status;
}

}  // namespace internal

RowScan::RowScan(std::unique_ptr<internal::RowSource> source) : source_(std::move(source)) {}
RowScan::~RowScan() = default;

RowScan::Iterator RowScan::begin() & {
  if (!std::exchange(begun_, true)) Next();
  return Iterator(this);
}

absl::Status RowScan::NoteError(absl::Status status) {
  source_->NoteError(status);
  return status;
}

void RowScan::Next() { current_ = source_->Next(); }

ReadView::ReadView(std::shared_ptr<TransactionCore> core) : core_(std::move(core)) {}
ReadView::~ReadView() = default;

absl::StatusOr<std::optional<std::string>> ReadView::Get(CellView cell) const {
  return Read(*core_, [&] { return core_->Get(cell.table, cell.row, cell.column); });
}

absl::StatusOr<std::vector<std::optional<std::string>>> ReadView::GetCells(
    std::initializer_list<CellView> cells) const {
  return GetCells(absl::Span<const CellView>(cells.begin(), cells.size()));
}

absl::StatusOr<std::vector<std::optional<std::string>>> ReadView::GetCells(absl::Span<const CellView> cells) const {
  std::vector<CellName> names;
  names.reserve(cells.size());
  for (const CellView& cell : cells) {
    names.push_back({std::string(cell.table), std::string(cell.row), std::string(cell.column)});
  }
  return GetCells(names);
}

absl::StatusOr<std::vector<std::optional<std::string>>> ReadView::GetCells(absl::Span<const CellName> cells) const {
  return Read(*core_, [&] { return core_->Get(cells); });
}

RowScan ReadView::Scan(std::string_view table, ScanOptions options) const {
  std::unique_ptr<internal::RowSource> rows;
  absl::Status status = core_->engine()->InCall([&] {
    rows = internal::MergeRows(core_.get(), core_, table, std::move(options));
    return absl::OkStatus();
  });
  return RowScan(status.ok() ? std::move(rows) : std::make_unique<FailedRows>(std::move(status)));
}

Timestamp ReadView::timestamp() const { return core_->start_ts(); }

Snapshot::Snapshot(std::shared_ptr<TransactionCore> core) : ReadView(std::move(core)) {}

absl::StatusOr<Timestamp> ReadWrite::Start() {
  return core().engine()->InCall([&]() -> absl::StatusOr<Timestamp> {
    PERCOLATOR_RETURN_IF_ERROR(core().MayRead());
    return core().start_ts();
  });
}

void ReadWrite::Set(CellView cell, std::string_view value) { Buffer(core(), WriteKind::kPut, cell, value); }

void ReadWrite::Delete(CellView cell) { Buffer(core(), WriteKind::kDelete, cell, {}); }

void ReadWrite::Verify(CellView cell) { Buffer(core(), WriteKind::kVerify, cell, {}); }

bool ReadWrite::SetOrVerify(CellView cell, const std::optional<std::string>& was,
                            const std::optional<std::string>& now) {
  if (was == now) return Verify(cell), false;
  now.has_value() ? Set(cell, *now) : Delete(cell);
  return true;
}

void ReadWrite::Notify(CellView cell) {
  KeepError(core(), cell, [&] { return core().Notify(cell.table, cell.row, cell.column); });
}

void ReadWrite::Fail(absl::Status status) {
  if (core().write_error().ok()) core().KeepWriteError(std::move(status));
}

absl::Status ReadWrite::status() const { return core().write_error(); }

Transaction::Transaction(const Cluster& cluster, const TransactionOptions& options)
    : Transaction(cluster.engine(), options) {}

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

}  // namespace percolator
