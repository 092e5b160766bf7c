// SPDX-License-Identifier: Apache-2.0

// The write record: makes a version of a cell visible. Family write, at the commit timestamp.
//
//   record  := version kind flags start_ts [verified] [value]
//   version := 01                    a larger number: written by a newer Percolator, refused
//   kind    := 01 put | 02 delete | 03 verify | 04 rollback
//   flags   := 00 | 01               01: a value follows, inline
//   start_ts, verified := fixed64    verified only with kind verify
//   value   := the rest
//
// A put without an inline value has it in the family data, at start_ts. A verify record says that its transaction
// relied on the cell. It changes nothing; `verified` is the commit timestamp of the put or delete below it (zero:
// none), so that a reader finds that in one step. A rollback record is the marker in RollbackColumn(), at start_ts.

#ifndef PERCOLATOR_TXN_WRITE_RECORD_H_
#define PERCOLATOR_TXN_WRITE_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "percolator/timestamp.h"

namespace percolator {

enum class WriteKind : uint8_t { kPut = 1, kDelete = 2, kVerify = 3, kRollback = 4 };

// "put", "delete", "verify" or "rollback".
std::string_view WriteKindName(WriteKind kind);

// Values up to this size are kept in the lock and in the write record: one lookup reads them.
inline constexpr size_t kInlineBytes = 256;

struct WriteRecord {
  WriteKind kind = WriteKind::kPut;
  Timestamp start_ts;
  Timestamp verified;                // kVerify only
  std::optional<std::string> value;  // kPut only

  friend bool operator==(const WriteRecord&, const WriteRecord&) = default;
};

std::string EncodeWriteRecord(const WriteRecord& record);
std::string EncodeWriteRecord(WriteKind kind, Timestamp start_ts, Timestamp verified,
                              const std::optional<std::string>& value);
// Returns DataLoss if `bytes` are not a record, and FailedPrecondition if they are of a newer format.
absl::StatusOr<WriteRecord> DecodeWriteRecord(std::string_view bytes);
// The same, but the value takes over the memory of `bytes`.
absl::StatusOr<WriteRecord> TakeWriteRecord(std::string bytes);

}  // namespace percolator

#endif  // PERCOLATOR_TXN_WRITE_RECORD_H_
