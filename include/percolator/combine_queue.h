// CombineQueue: values that many transactions add to at once without ever being in conflict: hot counters, sums, maxima,
// sets. What would be a read and a write of one cell, over which writers lose against each other, becomes a delta in a cell
// of the transaction's own; an observer folds the deltas into the values, many at a time.
//
//     const CombineQueue words("words", AddDecimals, {.neutral = "0"});
//     cluster->CreateTable("words", CombineQueue::Schema());
//     worker.Observe(words.Observer());
//     ...
//     cluster->Transact([&](ReadWrite& t) { return words.Add(t, "percolator", "1"); });   // also in observers
//     ...
//     words.Get(*snapshot, "percolator");       what is folded: milliseconds old while a worker runs
//     words.GetExact(*snapshot, "percolator");  and what is not: exact, and slower
//
// COMBINING  The function makes one of two: of two deltas, or of a value and a delta. It must be associative and
//         commutative, because nobody says in which order deltas come. A delta is counted once, whatever dies and when:
//         the transaction that folds it deletes it.
// OBSERVING  A value is an ordinary cell, ValueRow(key), kValueColumn: it can be observed, and is then seen to change once
//         for many deltas.
// TABLE   One of its own. What is stored there does not depend on the number of buckets, except that GetExact looks into
//         one bucket only; all processes should have the same.
// FIRST WORKER  As usual, only what is written while the observer is known to the cluster notifies it. After the first
//         start of a worker on a queue that has been added to before, call NotifyAll once.
//
// A delta that the function returns an error for goes, with all those beside it, to quarantine. (The first delta of a key is
// combined with CombineQueueOptions::neutral; without one, it is taken as it is.)

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

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/observer.h"
#include "percolator/options.h"
#include "percolator/transaction.h"

namespace percolator {

using CombineFunction = std::function<absl::StatusOr<std::string>(std::string_view a, std::string_view b)>;

// The sum of two whole numbers in decimal digits, of 64 bits. kInvalidArgument: one of them is not a number. kOutOfRange: the
// sum overflows.
absl::StatusOr<std::string> AddDecimals(std::string_view a, std::string_view b);

struct CombineQueueOptions {
  uint32_t buckets = 64;  // folded independently of each other
  size_t batch = 1000;    // deltas folded by one transaction; about: those that were added together stay together
  // A value equal to this is deleted; combining with it must change nothing.
  std::optional<std::string> neutral;
};

// All methods may be called by any thread. Can be copied.
class CombineQueue {
 public:
  static constexpr std::string_view kValueColumn = "value";

  CombineQueue(std::string table, CombineFunction combine, CombineQueueOptions options = {});

  // For Cluster::CreateTable.
  static TableSchema Schema();
  // For Worker::Observe. Its name is fold-TABLE.
  ObserverSpec Observer() const;

  // Adds to the value of a key, if the transaction commits.
  absl::Status Add(ReadWrite& t, std::string_view key, std::string_view delta) const;
  // The same for many, in fewer requests.
  absl::Status Add(ReadWrite& t, const std::map<std::string, std::string>& deltas) const;

  // The value as folded; absent: there is none.
  absl::StatusOr<std::optional<std::string>> Get(ReadView& view, std::string_view key) const;
  // With all that was added and is not folded yet. Passes over every delta that was added to the bucket since garbage was
  // collected last: for a hot queue that may be tens of thousands.
  absl::StatusOr<std::optional<std::string>> GetExact(ReadView& view, std::string_view key) const;
  // All values as folded, in the order of their keys.
  absl::Status ForEach(ReadView& view,
                       const std::function<void(std::string_view key, std::string_view value)>& fn) const;

  // Notifies the observer of all that is not folded.
  absl::Status NotifyAll(ReadWrite& t) const;

  static std::string ValueRow(std::string_view key);
  // And back: for observers of values.
  static std::string_view KeyOf(std::string_view value_row);

 private:
  class Impl;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace percolator

#endif  // PERCOLATOR_COMBINE_QUEUE_H_
