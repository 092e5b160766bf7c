// SPDX-License-Identifier: Apache-2.0

// Threads share requests to a distant store: the batching of the paper's section 2.5.
//
// A request costs far more than an operation in it. So only a few requests of each kind (Read, Mutate, MutateThenDraw)
// are in flight at a time. Calls made while they are gather into a batch, which is sent as soon as one of the requests
// is answered. No call is delayed on purpose: a lone call is sent at once, and calls share more requests under load.
// The other operations pass through.
//
// FRESHNESS  A call is answered by a request that was sent after the call was made: a batch takes no more calls once it
//            is sent. Otherwise a read could miss a mutation that was acknowledged before it.
// ISOLATION  A call gets its own answers, as if it had been made alone. Read fails or succeeds as a whole; so when a
//            shared Read fails, each of its callers reads again alone, and only the caller that caused the error gets it.
//            These repetitions are sent at once and do not count as requests in flight. Entries of Mutate have results of
//            their own; none is repeated, because it may have been applied.
// ORDER      The entries of a call stay together and in order, so two for the same row are evaluated in that order.
//            Calls made at the same time by different threads have no order, as in any store.
// SIZE       A call is never divided. It joins others only while the batch stays within the limits on entries and bytes;
//            a call that exceeds them is sent alone.
//
// Thread-safe.

#ifndef PERCOLATOR_STORE_BATCHING_STORE_H_
#define PERCOLATOR_STORE_BATCHING_STORE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/spi/forwarding.h"
#include "percolator/spi/runtime.h"
#include "percolator/spi/store.h"

namespace percolator {

struct BatchingStoreOptions {
  // Requests of each kind in flight. Under load, a call waits until one of them is answered: of n requests spread over
  // a round trip, the next answer comes after 1/n of it. With one request, latency doubles and a slow request delays
  // every call. With four, it grows by a quarter; more add requests and little else. The cost: up to four concurrent
  // callers share nothing, but then requests are few anyway. (The oracle's front allows one, because its requests are
  // all equally short and every transaction uses the oracle.)
  int in_flight = 4;
  // The limits of one request. 256 entries share the cost of a request well; with more, the last entry would delay the
  // first.
  size_t entries = 256;
  size_t bytes = 1 << 20;  // names and values
};

class BatchingStore : public ForwardingStore {
 public:
  // `runtime` must outlive this object. REQUIRES: options.in_flight >= 1.
  explicit BatchingStore(std::shared_ptr<Store> store, Runtime* runtime = Runtime::Real(),
                         const BatchingStoreOptions& options = {});
  ~BatchingStore() override;

  absl::StatusOr<std::vector<Row>> Read(const std::vector<RowRead>& reads) override;
  std::vector<absl::StatusOr<MutateResult>> Mutate(const std::vector<RowMutation>& mutations) override;
  std::vector<DrawnResult> MutateThenDraw(const std::vector<RowMutation>& mutations) override;

 private:
  // Gathers and sends the calls of one kind.
  template <typename Entry, typename Answer>
  class Lane;

  const std::unique_ptr<Lane<RowRead, Row>> reads_;
  const std::unique_ptr<Lane<RowMutation, absl::StatusOr<MutateResult>>> mutations_;
  const std::unique_ptr<Lane<RowMutation, DrawnResult>> drawing_;
};

}  // namespace percolator

#endif  // PERCOLATOR_STORE_BATCHING_STORE_H_
