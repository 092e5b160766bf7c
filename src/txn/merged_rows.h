// SPDX-License-Identifier: Apache-2.0

// The rows of a scan: those of the snapshot (scan.h), overlaid with the writes that the transaction has made by the
// time when the scan reaches a row (T9).

#ifndef PERCOLATOR_TXN_MERGED_ROWS_H_
#define PERCOLATOR_TXN_MERGED_ROWS_H_

#include <memory>
#include <string_view>

#include "percolator/options.h"
#include "src/txn/row_source.h"
#include "src/txn/transaction_core.h"

namespace percolator::internal {

// `owner` keeps the core alive; null: the core outlives the rows.
std::unique_ptr<RowSource> MergeRows(TransactionCore* core, std::shared_ptr<TransactionCore> owner,
                                     std::string_view table, ScanOptions options);

}  // namespace percolator::internal

#endif  // PERCOLATOR_TXN_MERGED_ROWS_H_
