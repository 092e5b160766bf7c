// DIR/CLEAN: what a clean close has left in the folder, so that the next open can say what is missing.
//
// A clean close puts everything into table files, which have checksums, and then writes this record. An open checks the
// folder against it and removes it before anything is written; so a store that was not closed cleanly has none, and the
// record never describes files that have changed since. Format: docs/format.md.

#ifndef PERCOLATOR_STORE_ROCKS_CLEAN_RECORD_H_
#define PERCOLATOR_STORE_ROCKS_CLEAN_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rocksdb/env.h"
#include "src/store/rocks/folder.h"

namespace percolator {

struct CleanRecord {
  struct File {
    std::string name;
    uint64_t size = 0;
    // CRC-32 of the file; absent for table files, which have their own checksums.
    std::optional<uint32_t> crc;
  };

  uint64_t sequence = 0;    // RocksDB's last
  std::vector<File> files;  // by name

  std::string Encode() const;
  // Absent: `text` is not a whole record.
  static std::optional<CleanRecord> Decode(std::string_view text);
};

// Writes the record durably. `live` are the files as DB::GetLiveFiles names them.
// REQUIRES: the database is closed.
absl::Status WriteCleanRecord(const StoreFolder& folder, uint64_t sequence, const std::vector<std::string>& live,
                              rocksdb::Env* env);

// If there is a record: checks that the folder is as it says, removes it durably, and returns its sequence number. Returns
// 0 if there is none. kDataLoss: a file is missing or not as it was; then the record stays.
absl::StatusOr<uint64_t> TakeCleanRecord(const StoreFolder& folder, rocksdb::Env* env);

}  // namespace percolator

#endif  // PERCOLATOR_STORE_ROCKS_CLEAN_RECORD_H_
