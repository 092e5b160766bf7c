// SPDX-License-Identifier: Apache-2.0

// Snapshots and transactions.
//
// A transaction reads from the snapshot at its start timestamp and writes at a later commit
// timestamp. Of two overlapping transactions that write the same cell, at most one commits. This is
// snapshot isolation: a read never sees part of a transaction, but it may wait for a commit in
// progress whose writes may belong to its snapshot. It is not serializability: two transactions may
// each read what the other writes (write skew) unless one of them calls Verify on what it read.
//
//     ReadView      reads                              a Snapshot is one
//     ReadWrite     + Set, Delete, Verify, Notify      for observers and Transact functions
//     Transaction   + Commit                           for running a transaction by hand
//
// LIFETIME  Snapshots, transactions and scans keep what they need of the cluster. They may be
//           destroyed in any order, before or after the cluster is closed. Once it is closed,
//           reads, writes and commits fail with FailedPrecondition; Commit returns an earlier
//           result again.

#ifndef PERCOLATOR_TRANSACTION_H_
#define PERCOLATOR_TRANSACTION_H_

#include <array>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "percolator/column.h"
#include "percolator/options.h"
#include "percolator/status.h"
#include "percolator/types.h"

namespace percolator {

class Cluster;
namespace internal {
class Engine;
class RowSource;
class TransactionCore;

// An element of a scan. A copy of an error could be lost without a warning, so there are none.
template <typename T>
class ScanElement : public absl::StatusOr<T> {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor)
  ScanElement(absl::StatusOr<T>&& element) : absl::StatusOr<T>(std::move(element)) {}
  ScanElement(const ScanElement&) = delete;
  using absl::StatusOr<T>::operator=;
};
}  // namespace internal

struct ScanOptions {
  RowRange rows = {};
  std::vector<std::string> columns = {};  // empty: all
  size_t limit = 0;                       // maximum number of rows; 0: no limit
  bool keys_only = false;                 // return rows without columns; saves reading long values
  bool reverse = false;  // in descending order of keys; `limit` keeps the last rows
};

// A row and the values that a scan selected, ordered by column.
struct ScannedRow {
  struct Column {
    std::string name = {};
    std::string value = {};
  };
  std::string key = {};
  std::vector<Column> columns = {};

  // Returns the value of a column, or nullopt if the row has none.
  std::optional<std::string_view> operator[](std::string_view column) const;
  // Same, decoded. Returns DataLoss if the value is not a T; a function that returns void must
  // report that with Fail.
  template <typename T, typename C>
  absl::StatusOr<std::optional<T>> Get(const percolator::Column<T, C>& column) const;
};

// The rows of a scan, in ascending order of their keys unless ScanOptions::reverse is set. Iterate
// once:
//
//     for (const absl::StatusOr<ScannedRow>& row : view.Scan("documents")) {
//       PERCOLATOR_RETURN_IF_ERROR(row.status());
//       Use(*row);
//     }
//
// If the scan fails, its last element is the error, so a scan that was cut short cannot be mistaken
// for a complete one. Elements cannot be copied: take them by reference, which is valid until the
// next one is read. A scan keeps its snapshot or
// transaction alive, and may outlive the ReadView that created it. Used by one thread at a time.
class RowScan {
 public:
  class Iterator {
   public:
    using value_type = internal::ScanElement<ScannedRow>;
    using difference_type = std::ptrdiff_t;
    using reference = value_type&;

    explicit Iterator(RowScan* scan) : scan_(scan) {}
    reference operator*() const { return *scan_->current_; }
    value_type* operator->() const { return &*scan_->current_; }
    Iterator& operator++() { return scan_->Next(), *this; }
    void operator++(int) { scan_->Next(); }
    bool operator==(std::default_sentinel_t) const { return !scan_->current_.has_value(); }

   private:
    RowScan* scan_;
  };

  explicit RowScan(std::unique_ptr<internal::RowSource> source);
  RowScan(const RowScan&) = delete;
  RowScan& operator=(const RowScan&) = delete;
  ~RowScan();

  // Reads the first row. Call it once.
  Iterator begin() &;
  std::default_sentinel_t end() const { return {}; }

  // Implementation detail: keeps an error for FirstReadError, and returns it.
  absl::Status NoteError(absl::Status status);

 private:
  void Next();

  std::unique_ptr<internal::RowSource> source_;
  bool begun_ = false;
  std::optional<internal::ScanElement<ScannedRow>> current_;  // absent: at the end
};

// One row of a ColumnScan.
template <typename T>
struct Entry {
  std::string row;
  T value;
};

// The rows that have a value in one column, decoded, as elements of type absl::StatusOr<Entry<T>>.
// Otherwise like RowScan. A value that cannot be decoded ends the scan with DataLoss.
template <typename T, typename C = Codec<T>>
class ColumnScan;

class ReadView {
 public:
  // Returns the value of a cell, or nullopt if it has none.
  template <typename T, typename C>
  absl::StatusOr<std::optional<T>> Get(const Column<T, C>& column, std::string_view row) const;
  absl::StatusOr<std::optional<std::string>> Get(CellView cell) const;

  // Returns the value of a cell, or `fallback` if it has none.
  template <typename T, typename C>
  absl::StatusOr<T> Get(const Column<T, C>& column, std::string_view row,
                        std::type_identity_t<T> fallback) const;

  // Return many values in as few requests as possible, in the order of the arguments: of several
  // columns of one row, of one column in several rows, or of any cells.
  template <typename... Columns>
  absl::StatusOr<std::tuple<std::optional<typename Columns::Value>...>> GetColumns(
      std::string_view row, const Columns&... columns) const;
  template <typename T, typename C>
  absl::StatusOr<std::vector<std::optional<T>>> GetRows(const Column<T, C>& column,
                                                        absl::Span<const std::string> rows) const;
  absl::StatusOr<std::vector<std::optional<std::string>>> GetCells(
      std::initializer_list<CellView> cells) const;
  absl::StatusOr<std::vector<std::optional<std::string>>> GetCells(
      absl::Span<const CellView> cells) const;
  absl::StatusOr<std::vector<std::optional<std::string>>> GetCells(
      absl::Span<const CellName> cells) const;

  // Scans a table, or the rows of a table that have a value in `column`; then `columns` and
  // `keys_only` have no effect.
  RowScan Scan(std::string_view table, ScanOptions options = {}) const;
  template <typename T, typename C>
  ColumnScan<T, C> Scan(const Column<T, C>& column, ScanOptions options = {}) const;

  // Everything committed at or before this timestamp is visible, and nothing else. Zero if the
  // transaction has not started.
  Timestamp timestamp() const;

  // Implementation detail.
  internal::TransactionCore& core() const { return *core_; }

 protected:
  explicit ReadView(std::shared_ptr<internal::TransactionCore> core);
  ReadView(const ReadView&) = default;  // a move copies: there is no view that was moved from
  ReadView& operator=(const ReadView&) = default;
  ~ReadView();

 private:
  std::shared_ptr<internal::TransactionCore> core_;  // never null
};

// A read-only view. Takes no locks and needs no commit. While a copy exists, garbage collection
// keeps what it sees. Copies are cheap. Thread-safe, but each scan is for one thread.
class Snapshot final : public ReadView {
 public:
  // Implementation detail: Cluster makes snapshots.
  explicit Snapshot(std::shared_ptr<internal::TransactionCore> core);
};

// Reads return this transaction's own earlier writes. Used by one thread at a time, const methods
// included.
//
// Writes are buffered until the commit and return nothing. A write fails only if the call is
// invalid (an exceeded limit, a malformed name, a missing table, a notify-only column), if the
// cluster is closed, or if the list of tables, which the first write to a table reads, cannot be
// read within the timeout of a call. The first such error is kept: all later reads and the commit
// return it, and later writes have no effect.
class ReadWrite : public ReadView {
 public:
  ReadWrite(const ReadWrite&) = delete;
  ReadWrite& operator=(const ReadWrite&) = delete;

  template <typename T, typename C>
  void Set(const Column<T, C>& column, std::string_view row,
           std::type_identity_t<typename Column<T, C>::Param> value) {
    if constexpr (std::is_same_v<C, Codec<std::string>>) {
      Set(column.At(row), value);  // without a copy
    } else {
      Set(column.At(row), C::Encode(value));
    }
  }
  void Set(CellView cell, std::string_view value);

  template <typename T, typename C>
  void Delete(const Column<T, C>& column, std::string_view row) {
    Delete(column.At(row));
  }
  void Delete(CellView cell);

  // Sets the cell, or deletes it if `value` is nullopt.
  template <typename T, typename C>
  void SetOrDelete(const Column<T, C>& column, std::string_view row,
                   const std::optional<std::type_identity_t<T>>& value) {
    value.has_value() ? Set(column, row, *value) : Delete(column, row);
  }

  // Makes the commit fail if another transaction writes or verifies the cell between this one's
  // start and commit. So what was read still holds at the commit timestamp.
  template <typename T, typename C>
  void Verify(const Column<T, C>& column, std::string_view row) {
    Verify(column.At(row));
  }
  void Verify(CellView cell);

  // For a derived value that was recomputed: writes `now` if it differs from `was`, the value read
  // in this transaction. Otherwise verifies the cell, so that a concurrent run on older inputs
  // cannot overwrite it. Returns whether it wrote.
  template <typename T, typename C>
  bool SetOrVerify(const Column<T, C>& column, std::string_view row,
                   const std::optional<std::type_identity_t<T>>& was,
                   const std::optional<std::type_identity_t<T>>& now) {
    std::optional<std::string> bytes_were, bytes;
    if (was.has_value()) bytes_were = C::Encode(*was);
    if (now.has_value()) bytes = C::Encode(*now);
    return SetOrVerify(column.At(row), bytes_were, bytes);
  }
  bool SetOrVerify(CellView cell, const std::optional<std::string>& was,
                   const std::optional<std::string>& now);

  // Notifies the observers of a notify-only column when the transaction commits. Never conflicts.
  // If the commit fails, the observers may be notified nevertheless.
  void Notify(const NotifyColumn& column, std::string_view row) { Notify(column.At(row)); }
  void Notify(CellView cell);

  // Returns the start timestamp, and draws it first if necessary. No other transaction has the
  // same, so it can serve as an ID.
  absl::StatusOr<Timestamp> Start();

  // Fails the transaction, as a failed write does. For functions that write on behalf of their
  // caller and return nothing. Has no effect if `status` is OK.
  void Fail(absl::Status status);
  // Returns the first error of a write or of Fail, or OK.
  absl::Status status() const;

 protected:
  using ReadView::ReadView;
  ~ReadWrite() = default;
};

// A transaction that is committed by hand. Prefer Cluster::Transact, which retries. Without Commit
// it has no effect.
class Transaction final : public ReadWrite {
 public:
  explicit Transaction(const Cluster& cluster, const TransactionOptions& options = {});

  // Returns at the commit point: the transaction is then durable and visible as a whole. Afterwards
  // reads and writes fail with FailedPrecondition, and Commit returns the same result again.
  CommitResult Commit();

  // Implementation detail.
  explicit Transaction(std::shared_ptr<internal::Engine> engine,
                       const TransactionOptions& options = {});
};

// Implementation details follow.

namespace internal {

template <typename R>
inline constexpr bool kIsStatusOr = false;
template <typename T>
inline constexpr bool kIsStatusOr<absl::StatusOr<T>> = true;

// Returns the first error of a read or a scan of a transaction.
absl::Status FirstReadError(const ReadWrite& t);
// Returns the options of a scan of one column, with its values.
ScanOptions OnlyColumn(std::string_view column, ScanOptions options);
// Keeps the error of a read, if it is one, for FirstReadError, and returns it.
absl::Status NoteReadError(const ReadView& view, absl::Status status);

// `bytes`: a std::optional of a string, which is moved if it is the value, or of a view.
template <typename T, typename C, typename Bytes>
absl::StatusOr<std::optional<T>> DecodeCell(const Column<T, C>& column, std::string_view row,
                                            Bytes bytes) {
  if constexpr (std::is_same_v<C, Codec<std::string>> &&
                std::is_same_v<Bytes, std::optional<std::string>>)
    return bytes;
  if (!bytes.has_value()) return std::optional<T>();
  absl::StatusOr<T> value = column.Decode(row, *bytes);
  if (!value.ok()) return std::move(value).status();
  return std::optional<T>(*std::move(value));
}

// Decodes one of the columns of GetColumns.
template <typename T, typename C>
absl::Status DecodeColumn(const Column<T, C>& column, std::string_view row,
                          std::optional<std::string>&& bytes, std::optional<T>* value) {
  absl::StatusOr<std::optional<T>> decoded = DecodeCell(column, row, std::move(bytes));
  if (!decoded.ok()) return std::move(decoded).status();
  *value = *std::move(decoded);
  return absl::OkStatus();
}

}  // namespace internal

template <typename T, typename C>
class ColumnScan {
 public:
  class Iterator {
   public:
    using value_type = internal::ScanElement<Entry<T>>;
    using difference_type = std::ptrdiff_t;
    using reference = value_type&;

    Iterator(ColumnScan* scan, RowScan::Iterator row) : scan_(scan), row_(row) { Load(); }
    reference operator*() const { return scan_->current_; }
    value_type* operator->() const { return &scan_->current_; }
    Iterator& operator++() {
      scan_->failed_ = !scan_->current_.ok();
      if (!scan_->failed_) ++row_;
      return Load(), *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t end) const { return scan_->failed_ || row_ == end; }

   private:
    void Load() {
      if (*this != std::default_sentinel) scan_->current_ = scan_->Decode(*row_);
    }
    ColumnScan* scan_;
    RowScan::Iterator row_;
  };

  ColumnScan(const ReadView& view, const Column<T, C>& column, ScanOptions options)
      : column_(column),
        rows_(view.Scan(column.table(), internal::OnlyColumn(column.name(), std::move(options)))) {}
  ColumnScan(const ColumnScan&) = delete;
  ColumnScan& operator=(const ColumnScan&) = delete;

  // Reads the first row. Call it once.
  Iterator begin() & { return Iterator(this, rows_.begin()); }
  std::default_sentinel_t end() const { return {}; }

 private:
  absl::StatusOr<Entry<T>> Decode(absl::StatusOr<ScannedRow>& row) {
    if (!row.ok()) return row.status();
    std::optional<std::string> bytes = std::move(row->columns.front().value);
    absl::StatusOr<std::optional<T>> value =
        internal::DecodeCell(column_, row->key, std::move(bytes));
    if (!value.ok()) return rows_.NoteError(std::move(value).status());
    return Entry<T>{std::move(row->key), **std::move(value)};
  }

  Column<T, C> column_;
  RowScan rows_;
  internal::ScanElement<Entry<T>> current_ = absl::StatusOr<Entry<T>>();
  bool failed_ = false;
};

template <typename T, typename C>
absl::StatusOr<std::optional<T>> ScannedRow::Get(const percolator::Column<T, C>& column) const {
  return internal::DecodeCell(column, key, (*this)[column.name()]);
}

template <typename T, typename C>
absl::StatusOr<std::optional<T>> ReadView::Get(const Column<T, C>& column,
                                               std::string_view row) const {
  absl::StatusOr<std::optional<std::string>> bytes = Get(column.At(row));
  if constexpr (std::is_same_v<C, Codec<std::string>>) {
    return bytes;
  } else {
    if (!bytes.ok()) return std::move(bytes).status();
    absl::StatusOr<std::optional<T>> value = internal::DecodeCell(column, row, *std::move(bytes));
    if (!value.ok()) return internal::NoteReadError(*this, std::move(value).status());
    return value;
  }
}

template <typename T, typename C>
absl::StatusOr<T> ReadView::Get(const Column<T, C>& column, std::string_view row,
                                std::type_identity_t<T> fallback) const {
  absl::StatusOr<std::optional<T>> value = Get(column, row);
  if (!value.ok()) return std::move(value).status();
  return (*std::move(value)).value_or(std::move(fallback));
}

template <typename... Columns>
absl::StatusOr<std::tuple<std::optional<typename Columns::Value>...>> ReadView::GetColumns(
    std::string_view row, const Columns&... columns) const {
  const std::array<CellView, sizeof...(Columns)> cells{columns.At(row)...};
  absl::StatusOr<std::vector<std::optional<std::string>>> bytes = GetCells(cells);
  if (!bytes.ok()) return std::move(bytes).status();
  std::tuple<std::optional<typename Columns::Value>...> values;
  absl::Status status;
  auto decode = [&, next = bytes->data()](auto&... value) mutable {
    (status.Update(internal::DecodeColumn(columns, row, std::move(*next++), &value)), ...);
  };
  std::apply(decode, values);
  if (!status.ok()) return internal::NoteReadError(*this, std::move(status));
  return values;
}

template <typename T, typename C>
absl::StatusOr<std::vector<std::optional<T>>> ReadView::GetRows(
    const Column<T, C>& column, absl::Span<const std::string> rows) const {
  std::vector<CellView> cells;
  cells.reserve(rows.size());
  for (const std::string& row : rows) cells.push_back(column.At(row));
  absl::StatusOr<std::vector<std::optional<std::string>>> bytes = GetCells(cells);
  if (!bytes.ok()) return std::move(bytes).status();
  std::vector<std::optional<T>> values;
  values.reserve(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    absl::StatusOr<std::optional<T>> value =
        internal::DecodeCell(column, rows[i], std::move((*bytes)[i]));
    if (!value.ok()) return internal::NoteReadError(*this, std::move(value).status());
    values.push_back(*std::move(value));
  }
  return values;
}

template <typename T, typename C>
ColumnScan<T, C> ReadView::Scan(const Column<T, C>& column, ScanOptions options) const {
  return ColumnScan<T, C>(*this, column, std::move(options));
}

}  // namespace percolator

#endif  // PERCOLATOR_TRANSACTION_H_
