// The parts of a cluster.

#ifndef PERCOLATOR_TXN_PARTS_H_
#define PERCOLATOR_TXN_PARTS_H_

#include <memory>

#include "percolator/coordinator.h"
#include "percolator/oracle.h"
#include "percolator/store.h"
#include "src/base/runtime.h"

namespace percolator {

// The order of the fields is the order in which parts may depend on each other.
struct Parts {
  std::shared_ptr<Store> store = nullptr;
  std::shared_ptr<Oracle> oracle = nullptr;
  std::shared_ptr<Coordinator> coordinator = nullptr;
  std::shared_ptr<Runtime> runtime = nullptr;
};

// Returns a pointer that does not own `part`.
template <typename T>
std::shared_ptr<T> Borrow(T* part) {
  return std::shared_ptr<T>(std::shared_ptr<void>(), part);
}

}  // namespace percolator

#endif  // PERCOLATOR_TXN_PARTS_H_
