// SPDX-License-Identifier: Apache-2.0

// ClientStore: the store as one client of a script reaches it. It remembers its requests, can lose a message, and can
// stop the client.
//
// It is not the Wire of tests/harness, which plans the faults of one client before the calls, by their number. A script
// decides between two calls what happens to the next mutation of any client, stops a client in the middle of a call and
// lets it go on, sends everything again, and asks which verdicts a client carried out.

#ifndef PERCOLATOR_TESTS_HISTORIES_CLIENT_STORE_H_
#define PERCOLATOR_TESTS_HISTORIES_CLIENT_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/spi/assemble.h"
#include "percolator/spi/forwarding.h"
#include "percolator/spi/mutex.h"
#include "percolator/spi/runtime.h"
#include "percolator/spi/store.h"
#include "src/txn/verdict.h"

namespace percolator {

// The network between the clients and the store.
struct Network {
  bool down = false;             // nothing arrives
  bool lose_request = false;     // the next mutation does not arrive
  bool lose_answer = false;      // the next mutation arrives, its answer does not
  bool lose_connection = false;  // as lose_answer, then down

  // The next mutation arrives twice, and the client gets the second answer. The second copy arrives right after the
  // first, or when a client that stops after the first continues.
  enum class Copy : uint8_t { kNone, kSoon, kLate };
  Copy copy = Copy::kNone;
};

// A verdict that a client carried out.
struct Deed {
  Timestamp start_ts;  // of the transaction
  Verdict verdict;
};

// The store as one client reaches it. The client may be stopped at one of its mutations, and may be cut off for good.
class ClientStore final : public ForwardingStore {
 public:
  // All must outlive this.
  ClientStore(Store* store, Network* network, Runtime* runtime)
      : ForwardingStore(Borrow(store)), network_(network), go_on_(runtime->NewWaitQueue()) {}

  // The verdicts on transactions of others since the last call.
  std::vector<Deed> TakeDeeds();

  // The client stops before the next mutation (1), the one after it (2) or a later one is sent, or after it was carried
  // out.
  enum class Moment { kBefore, kAfter };
  void StopAt(Moment moment, int mutation);
  // Stops now.
  void StopHere();
  bool stopped() const { return stopped_; }
  void GoOn();
  // Its requests no longer arrive.
  void CutOff();

  // All mutations ever sent arrive again, in the same order; the answers are dropped.
  void SendAllAgain(Oracle* oracle);

  absl::StatusOr<std::vector<Row>> Read(const std::vector<RowRead>& reads) override;
  absl::StatusOr<ScanPage> Scan(const ScanRequest& request) override;
  std::vector<absl::StatusOr<MutateResult>> Mutate(const std::vector<RowMutation>& mutations) override;
  std::vector<DrawnResult> MutateThenDraw(const std::vector<RowMutation>& mutations) override {
    return Store::MutateThenDraw(mutations);  // which calls Mutate
  }
  absl::StatusOr<JointResult> MutateTogether(const JointMutation& mutation, Oracle* oracle) override;
  absl::Status RaiseSafePoint(Timestamp ts) override;
  absl::StatusOr<Timestamp> SafePoint() override;
  absl::StatusOr<Timestamp> SafePointOfReads() override { return SafePoint(); }
  absl::Status Close() override { return absl::OkStatus(); }

 private:
  using Request = std::variant<std::vector<RowMutation>, JointMutation>;

  struct StopPoint {
    Moment moment = Moment::kBefore;
    int mutations = 0;  // until the stop
  };

  void NoteDeeds(const RowMutation& applied);
  void NoteOwn(const RowMutation& sent);
  void MaybeStop(Moment moment);
  bool Reachable() const { return !network_->down && !cut_off_; }
  // Whether a mutation is lost; whether its answer is.
  bool LosesRequest();
  bool LosesAnswer();
  // Sends a mutation, and its copy if it has one; stops in between or afterwards. Returns the last answer.
  template <typename Answer>
  Answer SendCopies(const std::function<Answer()>& send);

  Network* const network_;
  std::vector<Request> sent_;
  std::set<Timestamp> own_;  // the starts of the client's own transactions
  std::vector<Deed> deeds_;

  std::optional<StopPoint> stop_;
  Mutex mutex_;
  const std::unique_ptr<WaitQueue> go_on_;
  bool stopped_ = false;
  bool cut_off_ = false;
};

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_HISTORIES_CLIENT_STORE_H_
