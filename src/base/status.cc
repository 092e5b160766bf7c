// SPDX-License-Identifier: Apache-2.0

// Implements percolator/status.h. A status carries its conflict as a payload:
//
//   conflict := kind:byte table row column:ordered string  start_ts other_start_ts other_commit_ts:fixed64

#include "percolator/status.h"

#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/cord.h"
#include "src/base/coding.h"
#include "src/base/errors.h"
#include "src/base/strings.h"

namespace percolator {
namespace {

constexpr char kConflictPayload[] = "percolator/conflict";
constexpr char kClosedPayload[] = "percolator/closed";

std::string Describe(const Conflict& conflict) {
  const std::string cell = StrCat(conflict.cell.table, "/", conflict.cell.row, "/", conflict.cell.column);
  const std::string self = StrCat("the transaction started at ", conflict.start_ts.ToString());
  switch (conflict.kind) {
    case Conflict::Kind::kNewerWrite:
      return StrCat(self, " lost ", cell, " to a write committed at ", conflict.other_commit_ts.ToString());
    case Conflict::Kind::kLocked:
      return StrCat(self, " found ", cell, " locked by the transaction started at ",
                    conflict.other_start_ts.ToString());
    case Conflict::Kind::kRolledBack:
      return StrCat(self, " was rolled back by another client after its lease expired (cell ", cell, ")");
  }
  return StrCat(self, " lost ", cell);
}

bool Decode(std::string_view in, Conflict* conflict) {
  if (in.empty()) return false;
  conflict->kind = static_cast<Conflict::Kind>(in.front());
  in.remove_prefix(1);
  uint64_t start = 0, other_start = 0, other_commit = 0;
  if (!ConsumeOrderedString(&in, &conflict->cell.table) || !ConsumeOrderedString(&in, &conflict->cell.row) ||
      !ConsumeOrderedString(&in, &conflict->cell.column) || !ConsumeFixed64(&in, &start) ||
      !ConsumeFixed64(&in, &other_start) || !ConsumeFixed64(&in, &other_commit)) {
    return false;
  }
  conflict->start_ts = Timestamp(start);
  conflict->other_start_ts = Timestamp(other_start);
  conflict->other_commit_ts = Timestamp(other_commit);
  return in.empty();
}

}  // namespace

bool IsConflict(const absl::Status& status) { return absl::IsAborted(status); }
bool IsSnapshotTooOld(const absl::Status& status) { return absl::IsOutOfRange(status); }
bool IsTransient(const absl::Status& status) { return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status); }

bool IsClosed(const absl::Status& status) { return status.GetPayload(kClosedPayload).has_value(); }

absl::Status ClosedError(std::string_view text) {
  absl::Status status = absl::FailedPreconditionError(absl::string_view(text.data(), text.size()));
  status.SetPayload(kClosedPayload, absl::Cord());
  return status;
}

absl::Status ConflictError(const Conflict& conflict) {
  std::string payload(1, static_cast<char>(conflict.kind));
  AppendOrderedString(&payload, conflict.cell.table);
  AppendOrderedString(&payload, conflict.cell.row);
  AppendOrderedString(&payload, conflict.cell.column);
  AppendFixed64(&payload, conflict.start_ts.value());
  AppendFixed64(&payload, conflict.other_start_ts.value());
  AppendFixed64(&payload, conflict.other_commit_ts.value());
  absl::Status status = absl::AbortedError(Describe(conflict));
  status.SetPayload(kConflictPayload, absl::Cord(std::move(payload)));
  return status;
}

std::optional<Conflict> GetConflict(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kConflictPayload);
  if (!payload.has_value()) return std::nullopt;
  Conflict conflict;
  if (!Decode(std::string(*payload), &conflict)) return std::nullopt;
  return conflict;
}

}  // namespace percolator
