#include "src/coord/session_book.h"

#include <algorithm>

#include "src/base/strings.h"

namespace percolator {

void SessionBook::Report(SessionId session, Timestamp oldest) {
  MutexLock lock(&mutex_);
  sessions_[session] = oldest;
}

void SessionBook::End(SessionId session) {
  MutexLock lock(&mutex_);
  const auto is_of_session = [session](const auto& held) { return held.second == session; };
  std::erase_if(leaders_, is_of_session);
  absl::erase_if(claims_, is_of_session);
  sessions_.erase(session);
}

bool SessionBook::Exists(SessionId session) const {
  MutexLock lock(&mutex_);
  return sessions_.contains(session);
}

Timestamp SessionBook::OldestSnapshot() const {
  MutexLock lock(&mutex_);
  Timestamp oldest = Timestamp::Infinity();
  for (const auto& [session, reported] : sessions_) {
    if (reported != Timestamp()) oldest = std::min(oldest, reported);
  }
  return oldest;
}

absl::Status SessionBook::CheckExists(SessionId session) const {
  if (sessions_.contains(session)) return absl::OkStatus();
  return absl::FailedPreconditionError(StrCat("there is no session ", session));
}

absl::StatusOr<bool> SessionBook::Campaign(std::string_view role, SessionId session) {
  MutexLock lock(&mutex_);
  if (absl::Status s = CheckExists(session); !s.ok()) return s;
  const auto leader = leaders_.try_emplace(std::string(role), session).first;
  return leader->second == session;
}

absl::StatusOr<bool> SessionBook::Claim(std::string_view table, std::string_view row, SessionId session) {
  MutexLock lock(&mutex_);
  if (absl::Status s = CheckExists(session); !s.ok()) return s;
  const auto claim = claims_.try_emplace(TableRow(table, row), session).first;
  return claim->second == session;
}

void SessionBook::Release(std::string_view table, std::string_view row, SessionId session) {
  MutexLock lock(&mutex_);
  const auto claim = claims_.find(TableRow(table, row));
  if (claim != claims_.end() && claim->second == session) claims_.erase(claim);
}

}  // namespace percolator
