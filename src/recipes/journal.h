// Journal: what many transactions add at once without ever meeting, for one observer to take up later. The queues of
// percolator/combine_queue.h and percolator/export_queue.h are made of it.
//
// A transaction writes what it adds to a shard into one cell that nobody else writes, because the cell is named after its
// start timestamp; and notifies, weakly, which never conflicts:
//
//   entries   row j/SHARD/START    column entries    what the transaction that started at START has added, in its order
//   notified  row n/SHARD/EPOCH    a notify-only column; EPOCH is START without its last 20 bits: about a second
//
// Numbers are in hexadecimal, of 8 and 16 digits, so that rows order as numbers do. The value of a cell:
//
//   entries := version (key payload)*       version 01; key and payload ordered strings
//
// Why epochs: cells that were taken away are passed over by every scan until they are garbage collected, which is an hour
// later. A scan of the epoch that is notified passes over those of a second, not of an hour; and a transaction that
// commits late notifies its own epoch, so it is found, however late.

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

// What one transaction has added to one shard.
struct JournalCell {
  Timestamp start_ts;
  std::vector<JournalEntry> entries;
};

struct JournalPage {
  std::vector<JournalCell> cells;
  std::optional<Timestamp> next;  // where it goes on; absent: all is read
};

class Journal {
 public:
  // `column`: the notify-only one.
  Journal(std::string table, std::string column) : table_(std::move(table)), column_(std::move(column)) {}

  // Adds the entries, each to its shard, after those that the transaction added before. An error is kept as that of a write.
  void Append(ReadWrite& t, const std::vector<JournalEntry>& entries) const;

  // The cells of a shard, in the order of their timestamps, until there are `limit` entries or they are many bytes. A cell
  // is read whole, and at least one.
  absl::StatusOr<JournalPage> Read(const ReadView& view, uint32_t shard, TimestampRange range, size_t limit) const;
  void Delete(ReadWrite& t, uint32_t shard, const JournalCell& cell) const;

  // Which part of the journal a notification is of.
  struct Epoch {
    uint32_t shard = 0;
    TimestampRange range;
  };
  absl::StatusOr<Epoch> EpochOf(std::string_view row) const;
  void Notify(ReadWrite& t, const Epoch& epoch) const;
  // Notifies all that have entries.
  absl::Status NotifyAll(ReadWrite& t) const;

 private:
  const std::string table_;
  const std::string column_;
};

// Numbers in row keys.
std::string Hex(uint32_t number);
std::string Hex(uint64_t number);
// Takes one of so many digits off the front.
bool ConsumeHex(std::string_view* in, size_t digits, uint64_t* number);

}  // namespace percolator

#endif  // PERCOLATOR_RECIPES_JOURNAL_H_
