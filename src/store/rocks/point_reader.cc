// SPDX-License-Identifier: Apache-2.0

#include "src/store/rocks/point_reader.h"

namespace percolator {

PointReader::~PointReader() {
  for (int i = 0; i < kFamilyCount; ++i) {
    rocksdb::Iterator* it = iterators_[i];
    if (it == nullptr) continue;
    if (it->status().ok()) {
      (*pools_)[i].Return(it);
    } else {
      delete it;  // an iterator that met an error is not used again
    }
  }
}

rocksdb::Iterator* PointReader::FreshIterator(Family family) {
  const int i = static_cast<int>(family);
  if (iterators_[i] == nullptr) iterators_[i] = (*pools_)[i].Take();
  if (!fresh_[i]) {
    if (!iterators_[i]->Refresh().ok()) {
      // The iterator's state is unknown. A new one sees the newest state as well, and reports the error.
      delete iterators_[i];
      iterators_[i] = (*pools_)[i].New();
    }
    fresh_[i] = true;
  }
  return iterators_[i];
}

}  // namespace percolator
