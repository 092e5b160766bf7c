#include "src/coord/row_claims.h"

namespace percolator {

// The coordinator is asked without the mutex. Who claims the row for the same owner meanwhile is told yes at once, though the
// answer may be no: that is one of the wrong answers that advice may give.
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
  // If this fails, the claim lasts as long as the session.
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
