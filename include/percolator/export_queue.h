// ExportQueue: the way out. What a transaction has to tell an outside system, a search engine, a mail server, another
// database, it adds to the queue; if it commits, that is delivered: in order, with a number, at least once.
//
//     const ExportQueue exports("exports");
//     cluster->CreateTable("exports", ExportQueue::Schema());
//     for (ObserverSpec& observer : exports.Observers(SendToIndex)) worker.Observe(std::move(observer));
//     ...
//     exports.Add(t, url, new_entry);     in any transaction: an observer's, too
//
// NUMBERS  The queue has shards; a key belongs to one of them. In a shard what is delivered is numbered 1, 2, 3, ... When a
//         number is delivered, all smaller ones have been before. After a crash, or a delivery of which nobody knows
//         whether it succeeded, some come again, with the same numbers. So the outside system, if it keeps the largest
//         number it has seen of each shard, together with what it does, and ignores all that are not larger, does
//         everything exactly once.
// ORDER   Of one key: if a transaction began after another had committed, it is delivered after it. (Two that overlap in
//         time have no order; if they write a common cell, at most one commits.) Within a transaction: as added. This
//         holds for transactions that take no longer than `longest_transaction`, from start to commit. One that takes
//         longer is delivered all the same, but perhaps after one that began when it had committed.
// CONFLICTS  Adding never conflicts: numbers are given later, by an observer, in one transaction for many entries. Another
//         observer delivers; an error of the function is tried again, with growing pauses, forever, while the other
//         shards go on. What is delivered is deleted.
// TABLE   One of its own. The number of shards must not change while something waits in it.
// FIRST WORKER  As usual, only what is written while the observers are known to the cluster notifies them. After the first
//         start of a worker on a queue that has been added to before, call NotifyAll once.

#ifndef PERCOLATOR_EXPORT_QUEUE_H_
#define PERCOLATOR_EXPORT_QUEUE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/observer.h"
#include "percolator/options.h"
#include "percolator/transaction.h"

namespace percolator {

// What is delivered.
struct Export {
  uint32_t shard = 0;
  uint64_t sequence = 0;
  std::string key;
  std::string payload;
};
// OK: it has arrived. Called by one thread at a time for a shard, as a rule; by two, if a worker was taken for dead.
using DeliverFunction = std::function<absl::Status(const Export& entry)>;

struct ExportQueueOptions {
  uint32_t shards = 16;  // delivered independently of each other
  // Entries that are numbered, and that are delivered, by one transaction. Their delivery should take seconds at most: if it
  // takes longer than a minute, it was in vain and is done again.
  size_t batch = 100;
  // See ORDER. Numbering scans all entries added within this time, so shorten it for busy queues.
  Duration longest_transaction = std::chrono::seconds(90);
};

// All methods may be called by any thread. Can be copied.
class ExportQueue {
 public:
  explicit ExportQueue(std::string table, const ExportQueueOptions& options = {});

  // For Cluster::CreateTable.
  static TableSchema Schema();
  // For Worker::Observe: number-TABLE gives numbers, deliver-TABLE delivers.
  std::vector<ObserverSpec> Observers(DeliverFunction deliver) const;

  // Delivers it, if the transaction commits.
  absl::Status Add(ReadWrite& t, std::string_view key, std::string_view payload) const;
  // The same, without a key: in no order, except within the transaction.
  absl::Status Add(ReadWrite& t, std::string_view payload) const;

  // How far a shard is: what was given a number, and what of it is delivered.
  struct Progress {
    uint64_t numbered = 0;
    uint64_t delivered = 0;
  };
  absl::StatusOr<Progress> ProgressOf(ReadView& view, uint32_t shard) const;
  uint32_t ShardOf(std::string_view key) const;

  // Notifies the observers of all that waits.
  absl::Status NotifyAll(ReadWrite& t) const;

 private:
  class Impl;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace percolator

#endif  // PERCOLATOR_EXPORT_QUEUE_H_
