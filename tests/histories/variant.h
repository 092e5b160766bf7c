// The ways to run a script: where its cells are, on which store, and how transactions commit.

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
  const StoreKind* elsewhere = nullptr;  // instead of in memory

  // "two_rows_rocksdb_two_phase"
  std::string name() const;
};

// Those that the head of the script allows. kInvalidArgument: it names one that does not exist, or leaves open what its
// commands depend on.
absl::StatusOr<std::vector<Variant>> VariantsOf(const Script& script);

// Of those in memory the ones with cells in two rows, or in the first layout there is, on the stores that the program
// registers instead. Empty: the script has none that they can play.
std::vector<Variant> Elsewhere(const std::vector<Variant>& variants);

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_HISTORIES_VARIANT_H_
