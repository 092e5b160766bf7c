// SPDX-License-Identifier: Apache-2.0

#include "src/coord/row_claims.h"

namespace percolator {

// Asks the coordinator without holding the mutex. Until it answers, further claims by the same owner are granted at once, even
// if the answer is no. Claims are advisory, so that is allowed.
bool RowClaims::Claim(const void* owner, const std::string& table, const std::string& row) {
  {
    MutexLock lock(&mutex_);
    const auto [it, is_first] = held_.try_emplace({table, row}, Held{owner, 0});
    if (it->second.owner != owner) return false;
    ++it->second.count;
    if (!is_first) return true;
  }
  const absl::StatusOr<bool> granted = coordinator_->Claim(table, row, *session_);
  if (!granted.ok() || *granted) return true;
  CountDown(owner, {table, row});
  return false;
}

void RowClaims::Release(const void* owner, const std::string& table, const std::string& row) {
  if (!CountDown(owner, {table, row})) return;
  // Ignores errors: the claim then lasts as long as the session.
  coordinator_->Release(table, row, *session_).IgnoreError();
}

bool RowClaims::CountDown(const void* owner, const TableRow& row) {
  MutexLock lock(&mutex_);
  const auto it = held_.find(row);
  if (it == held_.end() || it->second.owner != owner) return false;
  if (--it->second.count > 0) return false;
  held_.erase(it);
  return true;
}

size_t RowClaims::size() const {
  MutexLock lock(&mutex_);
  return held_.size();
}

}  // namespace percolator
