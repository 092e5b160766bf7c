// SPDX-License-Identifier: Apache-2.0

// RocksDB counts its work in thread-local variables (rocksdb::perf_context), for programs that read them. To find such
// a variable costs about as much as to compare two keys, and RocksDB counts every comparison: about forty for one
// write. Percolator does not read them, so the store turns the counting off around its calls, and restores the level of
// the caller's thread afterwards.

#ifndef PERCOLATOR_STORE_ROCKS_NO_PERF_COUNTERS_H_
#define PERCOLATOR_STORE_ROCKS_NO_PERF_COUNTERS_H_

#include "rocksdb/perf_level.h"

namespace percolator {

class NoPerfCounters {
 public:
  NoPerfCounters() { rocksdb::SetPerfLevel(rocksdb::PerfLevel::kDisable); }
  ~NoPerfCounters() { rocksdb::SetPerfLevel(before_); }
  NoPerfCounters(const NoPerfCounters&) = delete;
  NoPerfCounters& operator=(const NoPerfCounters&) = delete;

 private:
  const rocksdb::PerfLevel before_ = rocksdb::GetPerfLevel();
};

}  // namespace percolator

#endif  // PERCOLATOR_STORE_ROCKS_NO_PERF_COUNTERS_H_
