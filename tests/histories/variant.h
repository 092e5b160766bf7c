// SPDX-License-Identifier: Apache-2.0

// The ways to run a script: the layout of its cells, the store, and how transactions commit.

#ifndef PERCOLATOR_TESTS_HISTORIES_VARIANT_H_
#define PERCOLATOR_TESTS_HISTORIES_VARIANT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/histories/names.h"
#include "tests/histories/script.h"
#include "tests/store/store_kinds.h"

namespace percolator {

struct Variant {
  Layout layout = Layout::kOneRow;
  bool on_disk = false;
  bool in_one_step = false;
  const StoreKind* elsewhere = nullptr;  // the store, if not in memory

  // "two_rows_rocksdb_two_phase"
  std::string name() const;
};

// The variants that the head of the script allows. Returns InvalidArgument if it names an unknown one, or leaves open
// one on which its commands depend.
absl::StatusOr<std::vector<Variant>> VariantsOf(const Script& script);

// The variants in memory with two rows, or with the first layout there is, on the stores that the program registers
// instead. Empty if they cannot play the script.
std::vector<Variant> Elsewhere(const std::vector<Variant>& variants);

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_HISTORIES_VARIANT_H_
