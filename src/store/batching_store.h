// Lets any number of threads share requests to a distant store: the batching of the paper's section 2.5.
//
// A request costs far more than an operation in it. So only a few requests of each kind (Read, Mutate, MutateThenDraw) are
// in flight at a time; calls made meanwhile gather, and go together in the next request as soon as one of those is
// answered. Nothing is delayed for its own sake: a lone caller's call is sent at once, and the busier it is, the more
// share. The other operations pass through.
//
// FRESHNESS  A call is answered by a request that was sent after the call was made: a batch takes no more calls once it
//            is sent. Else a read could miss a mutation that was acknowledged before it.
// ISOLATION  A call gets its own answers, as if it had been made alone. Read fails or succeeds as a whole; so when a
//            shared Read fails, each of its callers reads again alone, and only who caused the error gets it. These
//            repetitions go out at once, beside the limit of requests in flight, as they all would have without this
//            class. Entries of Mutate have results of their own; nothing is repeated, because it may have been applied.
// ORDER      The entries of a call stay together and in their order, so two for the same row are evaluated in that order.
//            Calls made at the same time by different threads have no order among them, here as in any store.
// SIZE       A call is never divided. It joins others only while the batch stays within the limits on entries and bytes;
//            one that exceeds them by itself goes alone.

#ifndef PERCOLATOR_STORE_BATCHING_STORE_H_
#define PERCOLATOR_STORE_BATCHING_STORE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/spi/runtime.h"
#include "percolator/spi/store.h"

namespace percolator {

struct BatchingStoreOptions {
  // Requests of each kind in flight. Under load a call waits for one of them to be answered before its own is sent: with
  // n of them spread over a round trip, 1/n of it. So with one the latency doubles, and a slow request holds up
  // everybody; with four it grows by a quarter, and more bring little but more requests. The price is that up to four
  // callers at once share nothing: then requests are few anyway. (The oracle's front does with one, because its requests
  // are all equally short and the oracle is everybody's.)
  int in_flight = 4;
  // Of one request. With 256 entries the cost of the request itself is shared well enough, and more would make the last
  // wait for the first.
  size_t entries = 256;
  size_t bytes = 1 << 20;  // names and values
};

class BatchingStore : public Store {
 public:
  // Both must outlive this. REQUIRES: options.in_flight >= 1.
  explicit BatchingStore(Store* store, Runtime* runtime = Runtime::Real(), const BatchingStoreOptions& options = {});
  // Closes nothing: the store behind is its owner's.
  ~BatchingStore() override;

  absl::StatusOr<std::vector<Row>> Read(const std::vector<RowRead>& reads) override;
  std::vector<absl::StatusOr<MutateResult>> Mutate(const std::vector<RowMutation>& mutations) override;
  std::vector<DrawnResult> MutateThenDraw(const std::vector<RowMutation>& mutations) override;

  // As the store behind.
  absl::StatusOr<ScanPage> Scan(const ScanRequest& request) override;
  bool CanMutateTogether() const override;
  absl::StatusOr<JointResult> MutateTogether(const JointMutation& mutation, Oracle* oracle) override;
  absl::Status RaiseSafePoint(Timestamp ts) override;
  absl::StatusOr<Timestamp> SafePoint() override;
  absl::StatusOr<Timestamp> SafePointOfReads() override;
  absl::StatusOr<std::vector<std::string>> SampleRowKeys(const std::string& name) override;
  absl::Status CreateTable(const TableInfo& info) override;
  absl::Status DropTable(const std::string& name) override;
  absl::StatusOr<std::vector<TableInfo>> ListTables() override;
  absl::StatusOr<TableInfo> GetTable(const std::string& name) override;
  absl::Status Close() override;

 private:
  // The calls of one kind.
  template <typename Entry, typename Answer>
  class Lane;

  Store* const store_;
  const std::unique_ptr<Lane<RowRead, Row>> reads_;
  const std::unique_ptr<Lane<RowMutation, absl::StatusOr<MutateResult>>> mutations_;
  const std::unique_ptr<Lane<RowMutation, DrawnResult>> drawing_;
};

}  // namespace percolator

#endif  // PERCOLATOR_STORE_BATCHING_STORE_H_
