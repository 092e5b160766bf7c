// SPDX-License-Identifier: Apache-2.0

#include "src/store/rocks/cell_key.h"

#include "src/base/check.h"
#include "src/base/coding.h"

namespace percolator {

std::string TablePrefix(uint32_t table) {
  std::string key;
  AppendFixed32(&key, table);
  return key;
}

std::string RowPrefix(uint32_t table, std::string_view row) {
  std::string key;
  key.reserve(row.size() + 32);
  AppendFixed32(&key, table);
  AppendOrderedString(&key, row);
  return key;
}

std::string CellPrefix(std::string_view row_prefix, std::string_view column) {
  std::string key;
  key.reserve(row_prefix.size() + column.size() + 2 + kTimestampBytes);
  key.append(row_prefix.data(), row_prefix.size());
  AppendOrderedString(&key, column);
  return key;
}

std::string CellKey(std::string_view cell_prefix, Timestamp ts) {
  std::string key;
  key.reserve(cell_prefix.size() + kTimestampBytes);
  key.append(cell_prefix.data(), cell_prefix.size());
  AppendFixed64(&key, ~ts.value());
  return key;
}

RowKeys::RowKeys(uint32_t table, std::string_view row) {
  buffer_.reserve(row.size() + 48);
  AppendFixed32(&buffer_, table);
  AppendOrderedString(&buffer_, row);
  row_bytes_ = buffer_.size();
}

HashedPrefix RowKeys::GoTo(std::string_view column) {
  if (cell_bytes_ == 0 || column != column_) {
    column_ = column;
    buffer_.resize(row_bytes_);
    AppendOrderedString(&buffer_, column);
    cell_bytes_ = buffer_.size();
    cell_hash_ = absl::HashOf(std::string_view(buffer_));
    buffer_.reserve(cell_bytes_ + kTimestampBytes);  // so that At does not move the prefix
  }
  return cell();
}

std::string_view RowKeys::At(Timestamp ts) {
  buffer_.resize(cell_bytes_);
  AppendFixed64(&buffer_, ~ts.value());
  return buffer_;
}

std::string SeekKeyBelow(std::string_view cell_prefix, Timestamp until) {
  PERCOLATOR_DCHECK(until > Timestamp());
  return CellKey(cell_prefix, Timestamp(until.value() - 1));
}

std::string PastCell(std::string_view cell_prefix) {
  // The oldest possible version is at timestamp 0; one more byte makes the next key.
  std::string key = CellKey(cell_prefix, Timestamp());
  key.push_back('\0');
  return key;
}

std::string PastRow(std::string_view row_prefix) {
  // An ordered string ends in 0x00 0x01; any later row has a greater byte there or before.
  std::string key(row_prefix);
  key.back() = '\x02';
  return key;
}

Timestamp TimestampOf(std::string_view key) {
  return Timestamp(~DecodeFixed64(key.data() + key.size() - kTimestampBytes));
}

bool ParseCellKey(std::string_view key, ParsedKey* parsed) {
  std::string_view in = key;
  if (!ConsumeFixed32(&in, &parsed->table)) return false;
  if (!ConsumeOrderedString(&in, &parsed->row)) return false;
  parsed->row_prefix_bytes = key.size() - in.size();
  if (!ConsumeOrderedString(&in, &parsed->column)) return false;
  uint64_t complement;
  if (!ConsumeFixed64(&in, &complement) || !in.empty()) return false;
  parsed->timestamp = Timestamp(~complement);
  return true;
}

}  // namespace percolator
