// SPDX-License-Identifier: Apache-2.0

#include "src/coord/session_table.h"

#include <algorithm>

#include "percolator/status_macros.h"
#include "src/base/strings.h"

namespace percolator {
namespace {

size_t BytesOf(const std::pair<std::string, std::string>& row) { return row.first.size() + row.second.size(); }

}  // namespace

void SessionTable::Report(SessionId session, Timestamp oldest) {
  MutexLock lock(&mutex_);
  sessions_[session].oldest = oldest;
}

void SessionTable::End(SessionId session) {
  MutexLock lock(&mutex_);
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  if (found->second.roles > 0) {
    std::erase_if(leaders_, [session](const auto& held) { return held.second == session; });
  }
  if (found->second.claims > 0) {
    absl::erase_if(claims_, [&](const auto& held) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      if (held.second != session) return false;
      claim_bytes_ -= BytesOf(held.first);
      return true;
    });
  }
  sessions_.erase(found);
}

bool SessionTable::Exists(SessionId session) const {
  MutexLock lock(&mutex_);
  return sessions_.contains(session);
}

Timestamp SessionTable::OldestSnapshot() const {
  MutexLock lock(&mutex_);
  Timestamp oldest = Timestamp::Infinity();
  for (const auto& [session, entry] : sessions_) {
    if (entry.oldest != Timestamp()) oldest = std::min(oldest, entry.oldest);
  }
  return oldest;
}

absl::StatusOr<SessionTable::Entry*> SessionTable::Find(SessionId session) {
  const auto found = sessions_.find(session);
  if (found != sessions_.end()) return &found->second;
  return absl::FailedPreconditionError(StrCat("unknown session ", session, ": it has ended or expired"));
}

absl::StatusOr<bool> SessionTable::Campaign(std::string_view role, SessionId session) {
  MutexLock lock(&mutex_);
  PERCOLATOR_ASSIGN_OR_RETURN(Entry* const entry, Find(session));
  const auto leader = leaders_.find(role);
  if (leader != leaders_.end()) return leader->second == session;
  if (entry->roles == kMaxRoles) {
    return absl::ResourceExhaustedError(StrCat("session ", session, " cannot lead the role ", Quoted(role),
                                               ": limit of ", kMaxRoles, " roles reached"));
  }
  ++entry->roles;
  leaders_.emplace(role, session);
  return true;
}

absl::StatusOr<bool> SessionTable::Claim(std::string_view table, std::string_view row, SessionId session) {
  MutexLock lock(&mutex_);
  PERCOLATOR_ASSIGN_OR_RETURN(Entry* const entry, Find(session));
  TableRow name(table, row);
  const auto claim = claims_.find(name);
  if (claim != claims_.end()) return claim->second == session;
  const size_t bytes = BytesOf(name);
  if (entry->claims == kMaxClaims || claim_bytes_ + bytes > kMaxClaimBytes) return true;
  ++entry->claims;
  claim_bytes_ += bytes;
  claims_.emplace(std::move(name), session);
  return true;
}

void SessionTable::Release(std::string_view table, std::string_view row, SessionId session) {
  MutexLock lock(&mutex_);
  const auto claim = claims_.find(TableRow(table, row));
  if (claim == claims_.end() || claim->second != session) return;
  --sessions_[session].claims;
  claim_bytes_ -= BytesOf(claim->first);
  claims_.erase(claim);
}

}  // namespace percolator
