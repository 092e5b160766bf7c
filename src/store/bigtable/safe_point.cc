// SPDX-License-Identifier: Apache-2.0

#include "src/store/bigtable/safe_point.h"

#include <algorithm>
#include <utility>

#include "percolator/status_macros.h"
#include "src/store/validate.h"

namespace percolator {
namespace {

constexpr int kMaxQuestions = 10;

// Returns the oldest lock that the mutation sets; infinite if it sets none.
Timestamp OldestLock(const RowMutation& mutation) {
  Timestamp oldest = Timestamp::Infinity();
  for (const Mutation& m : mutation.mutations) {
    if (m.kind == Mutation::Kind::kSet && m.family == Family::kLock) oldest = std::min(oldest, m.range.from);
  }
  return oldest;
}

}  // namespace

SafePointGate::SafePointGate(BigtableCatalog* catalog, Duration age, Clock* clock)
    : catalog_(catalog), age_(age), clock_(clock), runtime_(Runtime::Real()), passed_(runtime_->NewWaitQueue()) {}

Duration SafePointGate::Now() const { return Duration(static_cast<int64_t>(clock_->BootMicros())); }

void SafePointGate::Learn(Timestamp ts) { known_ = std::max(known_, ts); }

absl::StatusOr<Timestamp> SafePointGate::Get() {
  for (int i = 0; i < kMaxQuestions; ++i) {
    const Duration now = Now();
    {
      MutexLock lock(&mutex_);
      // One thread asks ahead of time, so that not all have to wait at once.
      const bool soon_old = !asked_.has_value() || now - *asked_ >= age_ / 2;
      if (!IsOld(now) && (!soon_old || asking_)) return known_;
      asking_ = true;
    }
    const absl::StatusOr<Timestamp> ts = catalog_->ReadSafePoint();
    MutexLock lock(&mutex_);
    asking_ = false;
    if (ts.ok()) {
      Learn(*ts);
      asked_ = std::max(asked_.value_or(now), now);
    }
    if (!IsOld(Now())) return known_;  // the answer may already be old
    if (!ts.ok()) return ts.status();
  }
  return absl::UnavailableError("Bigtable did not return the safe point in time");
}

bool SafePointGate::IsOld(Duration now) const { return !asked_.has_value() || now - *asked_ >= age_; }

absl::Status SafePointGate::Raise(Timestamp ts) {
  PERCOLATOR_RETURN_IF_ERROR(catalog_->RaiseSafePoint(ts));
  {
    MutexLock lock(&mutex_);
    Learn(ts);
    while (!passing_.empty() && *passing_.begin() <= ts) passed_->Wait(&mutex_);
  }
  runtime_->Sleep(age_);  // other processes have asked again by then
  return absl::OkStatus();
}

absl::StatusOr<SafePointGate::Passage> SafePointGate::Enter(const RowMutation& mutation) {
  const Timestamp oldest = OldestLock(mutation);
  if (oldest == Timestamp::Infinity()) return Passage();
  if (const absl::StatusOr<Timestamp> known = Get(); !known.ok()) return known.status();
  MutexLock lock(&mutex_);
  PERCOLATOR_RETURN_IF_ERROR(CheckSafePoint(mutation, known_));
  passing_.insert(oldest);
  Passage passage;
  passage.gate_ = this;
  passage.lock_ = oldest;
  return passage;
}

SafePointGate::Passage::Passage(Passage&& other) noexcept
    : gate_(std::exchange(other.gate_, nullptr)), lock_(other.lock_) {}

SafePointGate::Passage::~Passage() {
  if (gate_ == nullptr) return;
  MutexLock lock(&gate_->mutex_);
  gate_->passing_.erase(gate_->passing_.find(lock_));
  gate_->passed_->WakeAll();
}

}  // namespace percolator
