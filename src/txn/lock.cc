// SPDX-License-Identifier: Apache-2.0

#include "src/txn/lock.h"

#include <utility>

#include "src/base/check.h"
#include "src/base/coding.h"
#include "src/txn/record_coding.h"

namespace percolator {
namespace {

constexpr uint8_t kIsPrimary = 2;
constexpr uint8_t kObserved = 4;
constexpr std::string_view kLockRecord = "lock";

bool ConsumePrimary(std::string_view* in, CellName* primary) {
  return ConsumeOrderedString(in, &primary->table) && ConsumeOrderedString(in, &primary->row) &&
         ConsumeOrderedString(in, &primary->column);
}

}  // namespace

std::string EncodeLock(const Lock& lock) {
  PERCOLATOR_DCHECK(lock.kind != WriteKind::kRollback);
  std::string out;
  out.reserve(64 + (lock.value.has_value() ? lock.value->size() : 0));
  out.push_back(static_cast<char>(kRecordVersion));
  out.push_back(static_cast<char>(lock.kind));
  out.push_back(static_cast<char>((lock.value.has_value() ? kHasValue : 0) |
                                  (lock.primary.has_value() ? 0 : kIsPrimary) | (lock.observed ? kObserved : 0)));
  if (lock.primary.has_value()) {
    AppendOrderedString(&out, lock.primary->table);
    AppendOrderedString(&out, lock.primary->row);
    AppendOrderedString(&out, lock.primary->column);
  }
  AppendFixed64(&out, lock.session);
  AppendFixed64(&out, lock.refreshed.value());
  if (lock.observed) AppendFixed32(&out, lock.depth);
  if (lock.kind == WriteKind::kVerify) AppendFixed64(&out, lock.verified.value());
  if (lock.value.has_value()) out.append(*lock.value);
  return out;
}

absl::StatusOr<Lock> DecodeLock(std::string_view bytes) {
  uint8_t kind = 0;
  uint8_t flags = 0;
  if (absl::Status s = ConsumeRecordHead(kLockRecord, kHasValue | kIsPrimary | kObserved, &bytes, &kind, &flags);
      !s.ok()) {
    return s;
  }
  if (kind < static_cast<uint8_t>(WriteKind::kPut) || kind > static_cast<uint8_t>(WriteKind::kVerify)) {
    return CorruptRecord(kLockRecord);
  }
  Lock lock;
  lock.kind = static_cast<WriteKind>(kind);
  lock.observed = (flags & kObserved) != 0;
  if ((flags & kIsPrimary) == 0 && !ConsumePrimary(&bytes, &lock.primary.emplace())) return CorruptRecord(kLockRecord);
  if (!ConsumeFixed64(&bytes, &lock.session) || !ConsumeTimestamp(&bytes, &lock.refreshed))
    return CorruptRecord(kLockRecord);
  if (lock.observed && !ConsumeFixed32(&bytes, &lock.depth)) return CorruptRecord(kLockRecord);
  if (lock.kind == WriteKind::kVerify && !ConsumeTimestamp(&bytes, &lock.verified)) return CorruptRecord(kLockRecord);
  if ((flags & kHasValue) != 0) {
    if (lock.kind != WriteKind::kPut) return CorruptRecord(kLockRecord);
    lock.value.emplace(bytes);
  } else if (!bytes.empty()) {
    return CorruptRecord(kLockRecord);
  }
  return lock;
}

std::string EncodeRecordOf(const Lock& lock, Timestamp start_ts) {
  return EncodeWriteRecord(lock.kind, start_ts, lock.verified, lock.value);
}

}  // namespace percolator
