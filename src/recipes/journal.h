// SPDX-License-Identifier: Apache-2.0

// Journal: transactions add entries to it without conflicts, for an observer to process later. The queues of
// percolator/combine_queue.h and percolator/export_queue.h are built on it.
//
// A transaction writes its entries for a shard into one cell that no other transaction writes, because the cell is
// named after its start timestamp; and notifies weakly, which never conflicts:
//
//   entries   row j/SHARD/START    column entries    the entries of the transaction that started at START, in order
//   notified  row n/SHARD/EPOCH    a notify-only column; EPOCH is START without its last 20 bits: about a second
//
// Numbers are in hexadecimal, of 8 and 16 digits, so that rows order as numbers do. The value of a cell:
//
//   entries := version (key payload)*       version 01; key and payload ordered strings
//
// Why epochs: every scan steps over cells that were deleted until garbage collection removes them, an hour later. A
// scan of the notified epoch steps over those of a second instead. A transaction that commits late notifies its own
// epoch, so it is found, however late.

#ifndef PERCOLATOR_RECIPES_JOURNAL_H_
#define PERCOLATOR_RECIPES_JOURNAL_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/spi/timestamp_range.h"
#include "percolator/transaction.h"

namespace percolator {

struct JournalEntry {
  uint32_t shard = 0;
  std::string key;
  std::string payload;
};

// The entries that one transaction has added to one shard.
struct JournalCell {
  Timestamp start_ts;
  std::vector<JournalEntry> entries;
};

struct JournalPage {
  std::vector<JournalCell> cells;
  std::optional<Timestamp> next;  // where the next page begins; absent: the end
};

class Journal {
 public:
  // `column`: the notify-only one.
  Journal(std::string table, std::string column) : table_(std::move(table)), column_(std::move(column)) {}

  // Adds the entries, each to its shard, after those that the transaction added before. An error fails the transaction,
  // as that of a write does.
  void Append(ReadWrite& t, const std::vector<JournalEntry>& entries) const;

  // Returns the cells of a shard, ordered by timestamp, up to `limit` entries or a limit of bytes. A cell is read
  // completely, and at least one is.
  absl::StatusOr<JournalPage> Read(const ReadView& view, uint32_t shard, TimestampRange range, size_t limit) const;
  void Delete(ReadWrite& t, uint32_t shard, const JournalCell& cell) const;

  // The part of the journal that a notification is about.
  struct Epoch {
    uint32_t shard = 0;
    TimestampRange range;
  };
  absl::StatusOr<Epoch> EpochOf(std::string_view row) const;
  void Notify(ReadWrite& t, const Epoch& epoch) const;
  // Notifies all epochs with entries.
  absl::Status NotifyAll(ReadWrite& t) const;

 private:
  const std::string table_;
  const std::string column_;
};

// Numbers in row keys.
std::string Hex(uint32_t number);
std::string Hex(uint64_t number);
// Consumes a number of this many digits.
bool ConsumeHex(std::string_view* in, size_t digits, uint64_t* number);

}  // namespace percolator

#endif  // PERCOLATOR_RECIPES_JOURNAL_H_
