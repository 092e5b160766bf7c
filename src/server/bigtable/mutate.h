// SPDX-License-Identifier: Apache-2.0

// Bigtable's requests that change rows of a Store: MutateRow, MutateRows, CheckAndMutateRow, ReadModifyWriteRow.
//
// All mutations of a row in one request are applied in order and atomically, or not at all: they are checked first, and become
// one RowMutation.
//
// FOREIGN TABLES (tables.h) are changed only by this class. A change that depends on the row (a predicate, the deletion of a
// family or of the whole row, read-modify-write) reads the row first, under the row's latch, which every change takes.
//
// NATIVE TABLES are also changed by Percolator, directly in the store. So this class supports only changes that the store can
// decide itself:
//
//   - setting cells, with explicit timestamps, and deleting cells from columns
//   - CheckAndMutateRow with mutations for one outcome only, and one of these predicates, in which a CELL is a column_range
//     of one qualifier, perhaps in a chain with a timestamp_range and a cells_per_column_limit of 1, in this order:
//       CELL, or interleave{CELL ...}                               any of the cells exists
//       chain{interleave{N CELLs}, cells_per_row_offset N-1}        all of them exist; each CELL has its limit of 1, and only
//                                                                   true_mutations are given
//     Many CELLs may be one chain{column_qualifier_regex, FAMILY or interleave{FAMILY ...}}, in which FAMILY is as CELL, but
//     a column_range of a whole family, and the pattern has names and "|" only: letters, digits, "_" and zero bytes as they
//     are, the rest of ASCII behind backslashes.
//
// Other changes of native tables return Unimplemented.
//
// TIMESTAMPS  A timestamp of -1 means the server's time, in a foreign table. Others must be multiples of 1000 and not negative.
//
// ERRORS      InvalidArgument     The request is malformed or exceeds a limit.
//             NotFound            The table or the family does not exist.
//             FailedPrecondition  The cell to increment does not have 8 bytes.
//             Other errors are those of the store.

#ifndef PERCOLATOR_SERVER_BIGTABLE_MUTATE_H_
#define PERCOLATOR_SERVER_BIGTABLE_MUTATE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/spi/store.h"
#include "src/server/bigtable/row_latches.h"
#include "src/server/bigtable/tables.h"
#include "src/server/requests.h"
#include "src/wire/proto/bigtable.pb.h"

namespace percolator {

// Thread-safe.
class BigtableMutator {
 public:
  static constexpr int kMaxMutations = 100'000;  // per request

  // Counts the large rows that it reads in `memory`, unless that is null. REQUIRES: all outlive this object.
  BigtableMutator(Store* store, BigtableTables* tables, RequestMemory* memory = nullptr)
      : store_(store), tables_(tables), memory_(memory) {}

  absl::Status MutateRow(const google::bigtable::v2::MutateRowRequest& request);
  // The answer contains a status for each entry.
  absl::StatusOr<google::bigtable::v2::MutateRowsResponse> MutateRows(
      const google::bigtable::v2::MutateRowsRequest& request);
  absl::Status CheckAndMutateRow(const google::bigtable::v2::CheckAndMutateRowRequest& request,
                                 google::bigtable::v2::CheckAndMutateRowResponse* response);
  absl::Status ReadModifyWriteRow(const google::bigtable::v2::ReadModifyWriteRowRequest& request,
                                  google::bigtable::v2::ReadModifyWriteRowResponse* response);

 private:
  using Mutations = google::protobuf::RepeatedPtrField<google::bigtable::v2::Mutation>;

  // Reads a row that is needed as long as `share`.
  absl::StatusOr<Row> ReadRow(const BigtableTable& table, const std::string& key, std::vector<Selector> selectors,
                              RequestMemory::Share* share);
  // REQUIRES: the row's latch is held if the table is foreign.
  absl::StatusOr<RowMutation> ToRowMutation(const BigtableTable& table, const std::string& key,
                                            const Mutations& mutations);
  absl::Status CheckAndMutateNative(const BigtableTable& table,
                                    const google::bigtable::v2::CheckAndMutateRowRequest& request, bool* matched);
  absl::Status CheckAndMutateForeign(const BigtableTable& table,
                                     const google::bigtable::v2::CheckAndMutateRowRequest& request, bool* matched);

  Store* const store_;
  BigtableTables* const tables_;
  RequestMemory* const memory_;
  RowLatches latches_;
};

}  // namespace percolator

#endif  // PERCOLATOR_SERVER_BIGTABLE_MUTATE_H_
