// SPDX-License-Identifier: Apache-2.0

// DIR/CLEAN: the record of a clean close. The next open finds by it what is missing.
//
// A clean close puts everything into table files, which have checksums, and then writes this record. An open checks the
// folder against the record and removes it before anything is written. So a store that was not closed cleanly has none,
// and the record never describes files that have changed since. Format: docs/format.md.

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

  uint64_t sequence = 0;    // the last one of RocksDB
  std::vector<File> files;  // by name

  std::string Encode() const;
  // Returns nullopt unless `text` is a complete record.
  static std::optional<CleanRecord> Decode(std::string_view text);
};

// Writes the record durably. `live` has the files as DB::GetLiveFiles names them. REQUIRES: the database is closed.
absl::Status WriteCleanRecord(const StoreFolder& folder, uint64_t sequence, const std::vector<std::string>& live,
                              rocksdb::Env* env);

// If there is a record, checks the folder against it, removes it durably, and returns its sequence number. Returns 0 if
// there is none. Returns DataLoss if a file is missing or has changed; then the record stays.
absl::StatusOr<uint64_t> TakeCleanRecord(const StoreFolder& folder, rocksdb::Env* env);

}  // namespace percolator

#endif  // PERCOLATOR_STORE_ROCKS_CLEAN_RECORD_H_
