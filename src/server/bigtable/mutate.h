// Bigtable's changes of rows on a Store: MutateRow, MutateRows, CheckAndMutateRow, ReadModifyWriteRow.
//
// All mutations of a row in one request are applied in their order, in one step, or not at all: they are checked before
// anything is done, and become one RowMutation.
//
// FOREIGN TABLES (tables.h) are changed only here. What needs to know the row (a predicate, the removal of a family
// or of the whole row, read-modify-write) reads it first, under the row's latch, which every change takes.
//
// NATIVE TABLES are changed by Percolator too, at the store itself, so only what the store can decide by itself is possible:
//
//   - setting cells (with a timestamp of their own) and removing them from columns
//   - CheckAndMutateRow with mutations for one outcome only, and one of these predicates, in which a CELL is a column_range
//     of one qualifier, perhaps in a chain with a timestamp_range and a cells_per_column_limit of 1, in this order:
//       CELL, or interleave{CELL ...}                               any of the cells exists
//       chain{interleave{N CELLs}, cells_per_row_offset N-1}        all of them exist; each CELL has its limit of 1, and only
//                                                                   true_mutations are given
//     Many CELLs may be one chain{column_qualifier_regex, FAMILY or interleave{FAMILY ...}}, in which FAMILY is as CELL, but
//     a column_range of a whole family, and the pattern has names and "|" only: letters, digits, "_" and zero bytes as they
//     are, the rest of ASCII behind backslashes.
//
// The rest is kUnimplemented.
//
// TIMESTAMPS of -1 are the server's time, in a foreign table. Others are multiples of 1000, zero or more.
//
// ERRORS      kInvalidArgument   a malformed request, or a limit exceeded
//             kNotFound          no such table, or no such family in it
//             kFailedPrecondition  an increment of a cell that has not 8 bytes
//             and those of the store

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
#include "src/wire/proto/bigtable.pb.h"

namespace percolator {

class BigtableMutator {
 public:
  static constexpr int kMutations = 100'000;  // in one request

  // Both must outlive this.
  BigtableMutator(Store* store, BigtableTables* tables) : store_(store), tables_(tables) {}

  absl::Status MutateRow(const google::bigtable::v2::MutateRowRequest& request);
  // The answer has a status for each entry.
  absl::StatusOr<google::bigtable::v2::MutateRowsResponse> MutateRows(
      const google::bigtable::v2::MutateRowsRequest& request);
  absl::Status CheckAndMutateRow(const google::bigtable::v2::CheckAndMutateRowRequest& request,
                                 google::bigtable::v2::CheckAndMutateRowResponse* response);
  absl::Status ReadModifyWriteRow(const google::bigtable::v2::ReadModifyWriteRowRequest& request,
                                  google::bigtable::v2::ReadModifyWriteRowResponse* response);

 private:
  using Mutations = google::protobuf::RepeatedPtrField<google::bigtable::v2::Mutation>;

  absl::StatusOr<Row> ReadRow(const BigtableTable& table, const std::string& key, std::vector<Selector> selectors);
  // REQUIRES: of a foreign table, the row's latch is held.
  absl::StatusOr<RowMutation> ToRowMutation(const BigtableTable& table, const std::string& key,
                                            const Mutations& mutations);
  absl::Status CheckAndMutateNative(const BigtableTable& table,
                                    const google::bigtable::v2::CheckAndMutateRowRequest& request, bool* matched);
  absl::Status CheckAndMutateForeign(const BigtableTable& table,
                                     const google::bigtable::v2::CheckAndMutateRowRequest& request, bool* matched);

  Store* const store_;
  BigtableTables* const tables_;
  RowLatches latches_;
};

}  // namespace percolator

#endif  // PERCOLATOR_SERVER_BIGTABLE_MUTATE_H_
