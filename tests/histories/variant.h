// The ways to run a script: where its cells are, on which store, and how transactions commit.

#ifndef PERCOLATOR_TESTS_HISTORIES_VARIANT_H_
#define PERCOLATOR_TESTS_HISTORIES_VARIANT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/histories/names.h"
#include "tests/histories/script.h"

namespace percolator {

struct Variant {
  Layout layout = Layout::kOneRow;
  bool on_disk = false;
  bool in_one_step = false;

  // "two_rows_rocksdb_two_phase"
  std::string name() const;
};

// Those that the head of the script allows. kInvalidArgument: it names one that does not exist, or leaves open what its
// commands depend on.
absl::StatusOr<std::vector<Variant>> VariantsOf(const Script& script);

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_HISTORIES_VARIANT_H_
