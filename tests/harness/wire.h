// SPDX-License-Identifier: Apache-2.0

// The wire between one client and the world: its Store and its Oracle, and the faults of the n-th call.
//
//     Wire wire(&store, &oracle);
//     wire.FailAt(3, {.kind = Fault::Kind::kLoseReply});
//     wire.FailAt({"mutate", 2}, {.kind = Fault::Kind::kDieAfter});
//
// counts the calls of both, from 1. At the third call the store carries out the request but the client does not get the
// reply; at its second mutation, the client dies. Death is final: no later request of the client reaches the store or
// the oracle, and its results do not matter.
//
// A batch of row mutations that is lost or cut off by death may have been applied in part (percolator/spi/store.h);
// `rows` says which rows.

#ifndef PERCOLATOR_TESTS_HARNESS_WIRE_H_
#define PERCOLATOR_TESTS_HARNESS_WIRE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "percolator/spi/assemble.h"
#include "percolator/spi/forwarding.h"
#include "percolator/spi/mutex.h"
#include "percolator/spi/oracle.h"
#include "percolator/spi/store.h"

namespace percolator {

struct Fault {
  enum class Kind {
    kDieBefore,    // the client dies before it sends the request
    kDieAfter,     // the client dies after it sent the request, which is carried out
    kLoseRequest,  // the request is lost; the client gets Unavailable
    kLoseReply,    // the request is carried out, the reply is lost; the client gets Unavailable
    kTwice,        // the request is carried out twice, and the client gets the second answer
    kEchoLate,     // the request is carried out, and a copy of it arrives at DeliverLate
    kLate,         // the request arrives at DeliverLate; the client gets Unavailable
    kRefused,      // the answer is `error`, and nothing is done
  };
  static constexpr uint64_t kAllRows = ~uint64_t{0};

  Kind kind = Kind::kLoseReply;
  // For kDieAfter and kLoseReply of a batch: only the rows whose bit is set are applied.
  uint64_t rows = kAllRows;
  absl::Status error;
};

std::string FaultName(Fault::Kind kind);

class Wire {
 public:
  // A call that was made.
  struct Call {
    std::string what;  // "read", "scan", "mutate", "together", "safe point", "timestamp", "tables"
    size_t rows = 0;   // the number of rows of a mutate
  };

  Wire(Store* store, Oracle* oracle);

  Store* store() { return &store_; }
  Oracle* oracle() { return &oracle_; }

  // The n-th call of all, or of one kind.
  struct Place {
    Place(size_t nth) : n(nth) {}  // NOLINT(google-explicit-constructor): a number is a place
    Place(std::string kind, size_t nth) : what(std::move(kind)), n(nth) {}
    friend auto operator<=>(const Place&, const Place&) = default;

    std::string what;
    size_t n;
  };

  // Restarts the count: the next call is the first.
  void CountFromHere();
  void FailAt(const Place& place, Fault fault);
  // This call and all later ones fail.
  void FailFrom(size_t call, Fault fault);
  // Runs once, when the call is about to be sent, or when its answer is about to be returned.
  void Before(const Place& place, std::function<void()> run);
  void After(const Place& place, std::function<void()> run);
  void ForgetFaults();

  // From now on the store draws a timestamp for every lock: Store::MutateThenDraw.
  void DrawWithLocks() { draws_ = true; }

  // Delivers everything that is still on its way.
  void DeliverLate();
  bool dead() const;
  void Die();

  std::vector<Call> calls() const;
  // The number of calls of this kind.
  size_t CountOf(const std::string& what) const;

 private:
  class WiredStore final : public ForwardingStore {
   public:
    WiredStore(Wire* wire, Store* store, Oracle* oracle)
        : ForwardingStore(Borrow(store)), wire_(wire), oracle_(oracle) {}
    absl::StatusOr<std::vector<Row>> Read(const std::vector<RowRead>& reads) override;
    absl::StatusOr<ScanPage> Scan(const ScanRequest& request) override;
    std::vector<absl::StatusOr<MutateResult>> Mutate(const std::vector<RowMutation>& mutations) override;
    std::vector<DrawnResult> MutateThenDraw(const std::vector<RowMutation>& mutations) override;
    absl::StatusOr<JointResult> MutateTogether(const JointMutation& mutation, Oracle* oracle) override;
    absl::Status RaiseSafePoint(Timestamp ts) override;
    absl::StatusOr<Timestamp> SafePoint() override;
    absl::StatusOr<std::vector<std::string>> SampleRowKeys(const std::string& name) override;
    absl::Status CreateTable(const TableInfo& info) override;
    absl::Status DropTable(const std::string& name) override;
    absl::StatusOr<std::vector<TableInfo>> ListTables() override;
    absl::StatusOr<TableInfo> GetTable(const std::string& name) override { return Store::GetTable(name); }
    absl::Status Close() override { return absl::OkStatus(); }

   private:
    Wire* const wire_;
    Oracle* const oracle_;  // of the store, not of the client
  };
  class WiredOracle final : public Oracle {
   public:
    WiredOracle(Wire* wire, Oracle* oracle) : wire_(wire), oracle_(oracle) {}
    absl::StatusOr<Timestamp> GetTimestamps(uint32_t count) override;

   private:
    Wire* const wire_;
    Oracle* const oracle_;
  };

  // Makes one call: `run` carries it out, at the store or the oracle, for the given rows.
  template <typename Answer>
  Answer Send(
      const Call& call, const std::function<Answer(uint64_t rows)>& run,
      const std::function<Answer(const absl::Status&)>& failed = [](const absl::Status& error) {
        return Answer(error);
      });
  // Counts the call. Returns its two places, and the fault there.
  std::vector<Place> Enter(const Call& call, std::optional<Fault>* fault);
  void RunHook(std::map<Place, std::function<void()>>* hooks, const std::vector<Place>& places);

  bool draws_ = false;
  mutable Mutex mutex_;
  bool dead_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Call> calls_ ABSL_GUARDED_BY(mutex_);
  std::map<Place, Fault> faults_ ABSL_GUARDED_BY(mutex_);
  std::optional<std::pair<size_t, Fault>> faults_from_ ABSL_GUARDED_BY(mutex_);
  std::map<Place, std::function<void()>> before_ ABSL_GUARDED_BY(mutex_);
  std::map<Place, std::function<void()>> after_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::function<void()>> late_ ABSL_GUARDED_BY(mutex_);
  WiredStore store_;
  WiredOracle oracle_;
};

// All faults of a call. For a batch of rows, also those in which each part of it is applied.
std::vector<Fault> FaultsOf(const Wire::Call& call);

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_HARNESS_WIRE_H_
