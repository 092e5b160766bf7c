// SPDX-License-Identifier: Apache-2.0

// The keys of cells in RocksDB. docs/format.md specifies them; cell_key_test.cc checks the bytes.
//
//   key         := cell_prefix timestamp
//   cell_prefix := row_prefix column
//   row_prefix  := table row
//   table       := fixed32           the table's id
//   row, column := ordered string    see src/base/coding.h
//   timestamp   := fixed64           of the complement, so that newer versions come first
//
// The family is not in the key: each has its own RocksDB column family. Keys order as (table, row, column, newest
// first); each part orders by its bytes.

#ifndef PERCOLATOR_STORE_ROCKS_CELL_KEY_H_
#define PERCOLATOR_STORE_ROCKS_CELL_KEY_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/hash/hash.h"
#include "percolator/timestamp.h"

namespace percolator {

inline constexpr size_t kTimestampBytes = 8;

std::string TablePrefix(uint32_t table);
std::string RowPrefix(uint32_t table, std::string_view row);
std::string CellPrefix(std::string_view row_prefix, std::string_view column);
std::string CellKey(std::string_view cell_prefix, Timestamp ts);

// The key to seek for the newest version below `until`. REQUIRES: until > 0.
std::string SeekKeyBelow(std::string_view cell_prefix, Timestamp until);

// The smallest key greater than every key of the cell, and of the row.
std::string PastCell(std::string_view cell_prefix);
std::string PastRow(std::string_view row_prefix);

// The prefix of a cell and its hash. All that memory holds about cells is found by this hash, so it is computed once
// and passed on.
struct HashedPrefix {
  HashedPrefix(std::string_view cell_prefix, uint64_t its_hash) : prefix(cell_prefix), hash(its_hash) {}
  template <std::convertible_to<std::string_view> String>
  HashedPrefix(const String& cell_prefix)  // NOLINT(google-explicit-constructor): it is the same thing, hashed
      : prefix(cell_prefix), hash(absl::HashOf(prefix)) {}

  std::string_view prefix;
  uint64_t hash;
};

// The keys of one row, made one after the other in one buffer. Mutations of a row tend to name the same column in
// several families, so the last cell is kept.
class RowKeys {
 public:
  RowKeys(uint32_t table, std::string_view row);

  std::string_view row_prefix() const { return std::string_view(buffer_).substr(0, row_bytes_); }

  // The cell of the last GoTo.
  HashedPrefix cell() const { return {std::string_view(buffer_).substr(0, cell_bytes_), cell_hash_}; }

  // Goes to a cell and returns its prefix, valid until the next call. `column` must not change until then.
  HashedPrefix GoTo(std::string_view column);
  // Returns the key of a version of the cell of the last GoTo, valid until the next call.
  std::string_view At(Timestamp ts);

 private:
  std::string buffer_;  // row prefix, then column, then timestamp
  size_t row_bytes_;
  size_t cell_bytes_ = 0;  // 0: no cell yet
  uint64_t cell_hash_ = 0;
  std::string_view column_;
};

// REQUIRES: `key` was made by CellKey.
inline std::string_view CellPrefixOf(std::string_view key) { return key.substr(0, key.size() - kTimestampBytes); }
Timestamp TimestampOf(std::string_view key);

// The parts of a key.
struct ParsedKey {
  uint32_t table = 0;
  std::string row;
  std::string column;
  Timestamp timestamp;
  size_t row_prefix_bytes = 0;
};
// Returns false if `key` is not a key of a cell.
bool ParseCellKey(std::string_view key, ParsedKey* parsed);

}  // namespace percolator

#endif  // PERCOLATOR_STORE_ROCKS_CELL_KEY_H_
