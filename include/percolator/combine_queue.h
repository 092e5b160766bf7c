// SPDX-License-Identifier: Apache-2.0

// CombineQueue: values that many transactions update concurrently without conflicts: counters,
// sums, maxima, sets. Instead of reading and writing the value, a transaction adds a delta in a
// cell of its own. An observer folds the deltas into the values, many at a time.
//
//     const CombineQueue<int64_t> words("words", Sum);
//     PERCOLATOR_RETURN_IF_ERROR(words.EnsureTable(cluster));
//     words.Attach(worker);
//     ...
//     words.Add(t, "percolator", 1);           // in any transaction or observer; never conflicts
//     ...
//     words.Get(snapshot, "percolator");       // folded; milliseconds behind while a worker runs
//     words.GetExact(snapshot, "percolator");  // including deltas that are not folded yet; slower
//
// COMBINING  The function combines two deltas, or a value and a delta. It must be associative and
//         commutative, because deltas are folded in no particular order. Each delta is folded
//         exactly once: the transaction that folds it deletes it. If the function returns an error
//         for a delta, the notification for that delta and for those folded with it is quarantined.
// OBSERVING  Observe adds an observer of the values. It sees one change for many deltas.
// TABLE   A queue has a table of its own. All processes should use the same number of buckets,
//         because GetExact reads the deltas of one bucket.
// FIRST WORKER  As for any observer, deltas that a process adds before it knows the observer do not
//         notify it. Other processes learn of it within about half of ClusterOptions::lock_lease
//         after a worker with this queue first started. Call NotifyAll once after that time.

#ifndef PERCOLATOR_COMBINE_QUEUE_H_
#define PERCOLATOR_COMBINE_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "percolator/cluster.h"
#include "percolator/column.h"
#include "percolator/observer.h"
#include "percolator/transaction.h"

namespace percolator {

struct CombineQueueOptions {
  uint32_t buckets = 64;  // folded independently of each other; the same in every process
  size_t batch = 1000;    // approximate number of deltas folded by one transaction
};

// Returns a + b, or InvalidArgument if the sum overflows.
absl::StatusOr<int64_t> Sum(int64_t a, int64_t b);

namespace internal {

// The queue as bytes.
class RawCombineQueue {
 public:
  using Combine =
      std::function<absl::StatusOr<std::string>(std::string_view a, std::string_view b)>;

  RawCombineQueue(std::string table, Combine combine, std::optional<std::string> neutral,
                  const CombineQueueOptions& options);
  RawCombineQueue(const RawCombineQueue&) = default;  // a move copies
  RawCombineQueue& operator=(const RawCombineQueue&) = default;

  const std::string& table() const;
  static TableSchema Schema();
  void Attach(Worker& worker) const;
  void Observe(Worker& worker, std::string name, ObserverFunction fn,
               const ObserverOptions& options) const;
  void Add(ReadWrite& t, const std::map<std::string, std::string>& deltas) const;
  absl::StatusOr<std::optional<std::string>> Get(const ReadView& view, std::string_view key) const;
  absl::StatusOr<std::vector<std::optional<std::string>>> Get(
      const ReadView& view, absl::Span<const std::string> keys) const;
  absl::StatusOr<std::optional<std::string>> GetExact(const ReadView& view,
                                                      std::string_view key) const;
  absl::Status ForEach(
      const ReadView& view,
      absl::FunctionRef<absl::Status(std::string_view key, std::string_view value)> fn) const;
  absl::Status NotifyAll(ReadWrite& t) const;
  // Returns DataLoss, with the bytes.
  static absl::Status NotAValue(std::string_view bytes);

 private:
  class Impl;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace internal

// Copies are cheap. Thread-safe.
template <typename T, typename C = Codec<T>>
class CombineQueue {
 public:
  // Combines two deltas, or a value and a delta.
  using Combine = std::function<absl::StatusOr<T>(const T& a, const T& b)>;

  // Combining with `neutral` must change nothing. The first constructor uses T(). A value that
  // becomes equal to it is deleted. Pass a std::optional<T> without a value if there is no neutral
  // value, as for a minimum; then values are never deleted.
  CombineQueue(std::string table, Combine combine, const CombineQueueOptions& options = {})
      : CombineQueue(std::move(table), std::move(combine), std::optional<T>(T()), options) {}
  CombineQueue(std::string table, Combine combine, const std::optional<T>& neutral,
               const CombineQueueOptions& options = {})
      : raw_(
            std::move(table),
            [combine = std::move(combine)](std::string_view a,
                                           std::string_view b) -> absl::StatusOr<std::string> {
              const std::optional<T> left = C::Decode(a);
              const std::optional<T> right = C::Decode(b);
              if (!left.has_value() || !right.has_value()) {
                return internal::RawCombineQueue::NotAValue(left.has_value() ? b : a);
              }
              absl::StatusOr<T> both = combine(*left, *right);
              if (!both.ok()) return std::move(both).status();
              return C::Encode(*both);
            },
            neutral.has_value() ? std::optional<std::string>(C::Encode(*neutral)) : std::nullopt,
            options) {}

  // Creates the table unless it exists.
  absl::Status EnsureTable(const Cluster& cluster) const {
    return cluster.EnsureTable(raw_.table(), internal::RawCombineQueue::Schema());
  }
  // Adds the observer that folds deltas, "fold-TABLE".
  void Attach(Worker& worker) const { raw_.Attach(worker); }
  // Adds an observer of the values. The row of its notifications is the key.
  void Observe(Worker& worker, std::string name, ObserverFunction fn,
               const ObserverOptions& options = {}) const {
    raw_.Observe(worker, std::move(name), std::move(fn), options);
  }

  // Add deltas if the transaction commits. Adding many in one call takes fewer requests. If Add
  // fails, so does the transaction, as after a failed write.
  void Add(ReadWrite& t, std::string_view key, typename C::Param delta) const {
    raw_.Add(t, {{std::string(key), C::Encode(delta)}});
  }
  void Add(ReadWrite& t, const std::map<std::string, T>& deltas) const {
    std::map<std::string, std::string> bytes;
    for (const auto& [key, delta] : deltas) bytes.emplace_hint(bytes.end(), key, C::Encode(delta));
    raw_.Add(t, bytes);
  }

  // Returns the folded value of a key, or nullopt if it has none.
  absl::StatusOr<std::optional<T>> Get(const ReadView& view, std::string_view key) const {
    return Decode(view, raw_.Get(view, key));
  }
  // Returns the folded values of many keys, in their order.
  absl::StatusOr<std::vector<std::optional<T>>> GetMany(const ReadView& view,
                                                        absl::Span<const std::string> keys) const {
    absl::StatusOr<std::vector<std::optional<std::string>>> bytes = raw_.Get(view, keys);
    if (!bytes.ok()) return std::move(bytes).status();
    std::vector<std::optional<T>> values;
    values.reserve(keys.size());
    for (std::optional<std::string>& value : *bytes) {
      absl::StatusOr<std::optional<T>> decoded = Decode(view, std::move(value));
      if (!decoded.ok()) return std::move(decoded).status();
      values.push_back(*std::move(decoded));
    }
    return values;
  }
  // Returns the value of a key with the deltas that are not folded yet. Passes over every delta of
  // the bucket that garbage collection has not removed, by default those of the last hour. In a hot
  // queue these can be very many.
  absl::StatusOr<std::optional<T>> GetExact(const ReadView& view, std::string_view key) const {
    return Decode(view, raw_.GetExact(view, key));
  }
  // Calls `fn` for each folded value, in the order of the keys.
  absl::Status ForEach(const ReadView& view,
                       absl::FunctionRef<void(std::string_view key, const T& value)> fn) const {
    return raw_.ForEach(view, [&](std::string_view key, std::string_view bytes) -> absl::Status {
      const std::optional<T> value = C::Decode(bytes);
      if (!value.has_value()) return internal::RawCombineQueue::NotAValue(bytes);
      return fn(key, *value), absl::OkStatus();
    });
  }

  // Notifies the observer of all deltas that are not folded.
  absl::Status NotifyAll(ReadWrite& t) const { return raw_.NotifyAll(t); }

 private:
  static absl::StatusOr<std::optional<T>> Decode(const ReadView& view,
                                                 absl::StatusOr<std::optional<std::string>> bytes) {
    if (!bytes.ok()) return std::move(bytes).status();
    if (!bytes->has_value()) return std::optional<T>();
    std::optional<T> value = C::Decode(**bytes);
    if (!value.has_value()) {
      return internal::NoteReadError(view, internal::RawCombineQueue::NotAValue(**bytes));
    }
    return value;
  }

  internal::RawCombineQueue raw_;
};

}  // namespace percolator

#endif  // PERCOLATOR_COMBINE_QUEUE_H_
