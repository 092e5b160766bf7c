// RocksDB counts what it does in variables of the thread (rocksdb::perf_context), for programs that look at them. To get at
// such a variable costs about as much as comparing two keys, and it counts every comparison: some forty for one write.
// Nobody looks at them here, so while the store calls RocksDB it does not count; what the caller's thread had set holds
// again afterwards.

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
