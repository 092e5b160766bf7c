// SPDX-License-Identifier: Apache-2.0

// Runs a function in a transaction until it commits, for Cluster::Transact and Loader.

#ifndef PERCOLATOR_TXN_TRANSACT_H_
#define PERCOLATOR_TXN_TRANSACT_H_

#include <cstddef>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "percolator/options.h"
#include "percolator/transaction.h"
#include "src/txn/engine.h"

namespace percolator {

// See Cluster::Transact. If `marks` is not null, it receives the number of notifications that the commit made.
absl::Status RunTransaction(const std::shared_ptr<Engine>& engine, absl::FunctionRef<absl::Status(ReadWrite& t)> fn,
                            const TransactionOptions& options, CommitResult* result, size_t* marks = nullptr);

}  // namespace percolator

#endif  // PERCOLATOR_TXN_TRANSACT_H_
