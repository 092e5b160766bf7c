// SPDX-License-Identifier: Apache-2.0

// ExportQueue: messages from transactions to an outside system, such as a search engine, a mail
// server or another database. If the transaction commits, its messages are delivered: in order,
// numbered, at least once.
//
//     const ExportQueue exports("exports");
//     PERCOLATOR_RETURN_IF_ERROR(exports.EnsureTable(cluster));
//     exports.Attach(worker, SendToIndex);    // absl::Status SendToIndex(const Export& entry)
//     ...
//     exports.Add(t, url, payload);           // in any transaction, also an observer's
//
// NUMBERS  A queue has shards, and each key belongs to one of them. The messages of a shard are
//         numbered 1, 2, 3, ... and delivered in this order. After a crash, or after a delivery
//         whose result was lost, some messages are delivered again with the same numbers. An
//         outside system achieves exactly-once processing as follows: together with the effect of a
//         message it stores the message's number, and it ignores numbers that are not larger than
//         the last one of the shard.
// ORDER   If a transaction began after another one had committed, its messages of the same key are
//         delivered later. Transactions that overlap in time have no order; if they write a common
//         cell, at most one commits. The messages of one transaction keep the order in which they
//         were added. This holds for transactions that take at most `longest_transaction` from
//         start to commit. A message of a longer one is delivered too, but perhaps after a message
//         of a transaction that began after its commit.
// CONFLICTS  Adding a message never conflicts. An observer numbers many messages in one transaction
//         later. Another observer delivers them and then deletes them. If the function returns an
//         error, the delivery is retried with growing delays, indefinitely, while other shards
//         continue.
// TABLE   A queue has a table of its own. The number of shards must not change while messages wait.
// FIRST WORKER  As for any observer, messages that a process adds before it knows the observers do
//         not notify them. Other processes learn of them within about half of
//         ClusterOptions::lock_lease after a worker with this queue first started. Call NotifyAll
//         once after that time.

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
#include "percolator/cluster.h"
#include "percolator/observer.h"
#include "percolator/options.h"
#include "percolator/transaction.h"

namespace percolator {

// A message.
struct Export {
  uint32_t shard = 0;
  uint64_t sequence = 0;
  std::string key = {};
  std::string payload = {};
};
// Delivers a message. Returns OK if it has arrived. Calls for one shard may overlap: workers claim
// the shard that they deliver, but a claim is only advice and may be lost.
using DeliverFunction = std::function<absl::Status(const Export& entry)>;

struct ExportQueueOptions {
  // Shards are delivered independently of each other.
  uint32_t shards = 16;
  // Maximum number of messages that one transaction delivers, and approximate number that it
  // numbers: all messages that one transaction added to a shard are numbered together. Delivering
  // this many should take seconds: if the process dies or the transaction conflicts, all of them
  // are delivered again.
  size_t batch = 100;
  // See ORDER. Numbering scans all messages added during this time, so shorten it for a busy queue.
  Duration longest_transaction = std::chrono::seconds(90);
};

// Copies are cheap. Thread-safe.
class ExportQueue {
 public:
  explicit ExportQueue(std::string table, const ExportQueueOptions& options = {});
  ExportQueue(const ExportQueue&) = default;  // a move copies
  ExportQueue& operator=(const ExportQueue&) = default;

  // Creates the table unless it exists.
  absl::Status EnsureTable(const Cluster& cluster) const {
    return cluster.EnsureTable(table(), Schema());
  }
  // Adds the observers that number and deliver messages, "number-TABLE" and "deliver-TABLE".
  void Attach(Worker& worker, DeliverFunction deliver) const;

  // Delivers a message if the transaction commits. Never conflicts. Without a key, only messages of
  // the same transaction are ordered. An error fails the transaction, as that of a write does.
  void Add(ReadWrite& t, std::string_view key, std::string_view payload) const;
  void Add(ReadWrite& t, std::string_view payload) const;

  // The last number that was assigned in a shard, and the last one that was delivered.
  struct Progress {
    uint64_t numbered = 0;
    uint64_t delivered = 0;
  };
  absl::StatusOr<Progress> GetProgress(const ReadView& view, uint32_t shard) const;
  uint32_t GetShard(std::string_view key) const;

  // Notifies the observers of all waiting messages.
  absl::Status NotifyAll(ReadWrite& t) const;

 private:
  class Impl;
  const std::string& table() const;
  static TableSchema Schema();

  std::shared_ptr<const Impl> impl_;
};

}  // namespace percolator

#endif  // PERCOLATOR_EXPORT_QUEUE_H_
