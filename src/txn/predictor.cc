// SPDX-License-Identifier: Apache-2.0

#include "src/txn/predictor.h"

namespace percolator {
namespace {

constexpr double kLikely = 0.5;
constexpr double kFadeAt = 64;  // counts are halved when they reach this

}  // namespace

std::vector<std::string> Predictor::After(const std::string& kind, const std::string& table,
                                          const std::string& first) const {
  MutexLock lock(&mutex_);
  const auto it = entries_.find({kind, table, first});
  if (it == entries_.end()) return {};
  std::vector<std::string> columns;
  for (const auto& [column, count] : it->second.followed) {
    if (count >= kLikely * it->second.seen) columns.push_back(column);
  }
  return columns;
}

void Predictor::Learn(const std::string& kind, const std::string& table, const std::string& first,
                      const std::vector<std::string>& others) {
  MutexLock lock(&mutex_);
  const std::tuple key(kind, table, first);
  if (entries_.size() >= kMaxEntries && !entries_.contains(key)) return;
  Entry& entry = entries_[key];
  entry.seen += 1;
  for (const std::string& column : others) {
    if (entry.followed.size() < kMaxColumns || entry.followed.contains(column)) entry.followed[column] += 1;
  }
  if (entry.seen < kFadeAt) return;
  entry.seen /= 2;
  for (auto it = entry.followed.begin(); it != entry.followed.end();) {
    it->second /= 2;
    it = it->second < 1 ? entry.followed.erase(it) : std::next(it);
  }
}

}  // namespace percolator
