// SPDX-License-Identifier: Apache-2.0

// Well-formed requests of percolator.v1.Store on existing tables, one after another: each goes through its message to
// one store in memory, and directly to another. Both answers are equal, and scans agree with reads.
#include <fuzzer/FuzzedDataProvider.h>

#include <memory>
#include <string>
#include <vector>

#include "percolator/spi/oracle.h"
#include "percolator/spi/store.h"
#include "src/wire/convert.h"
#include "tests/fuzz/check.h"
#include "tests/harness/test_oracle.h"

namespace percolator {
namespace {

constexpr const char* kTables[] = {"t", "u"};
constexpr const char* kNames[] = {"a", "b", "c", "\xff"};
constexpr int kSteps = 40;

class Requests {
 public:
  explicit Requests(FuzzedDataProvider* bytes) : bytes_(*bytes) {}

  RowRead Read() { return {Table(), Name(), Selectors()}; }
  ScanRequest Scan() {
    ScanRequest scan{Table(), {Name(), {}}, Selectors(), bytes_.ConsumeIntegralInRange<size_t>(0, 3)};
    if (bytes_.ConsumeBool()) scan.rows.limit = Name();
    scan.reverse = bytes_.ConsumeBool();
    return scan;
  }
  RowMutation Change(bool together) {
    RowMutation change{Table(), Name(), {}, {}};
    change.condition.quantifier = bytes_.PickValueInArray(
        {Condition::Quantifier::kNone, Condition::Quantifier::kAny, Condition::Quantifier::kAll});
    for (int left = Few(); left > 0; --left) change.condition.cells.push_back({Family_(), Name(), Range()});
    for (int left = Few(); left > 0; --left) change.mutations.push_back(One(together));
    return change;
  }

 private:
  int Few() { return bytes_.ConsumeIntegralInRange<int>(0, 3); }
  std::string Table() { return bytes_.PickValueInArray(kTables); }
  std::string Name() { return bytes_.PickValueInArray(kNames); }
  Family Family_() { return static_cast<Family>(bytes_.ConsumeIntegralInRange<int>(0, 3)); }
  Timestamp Time() {
    constexpr uint64_t kExtremes[] = {0, 1, 5, UINT64_MAX - 1, UINT64_MAX};
    return Timestamp(bytes_.ConsumeBool() ? bytes_.PickValueInArray(kExtremes) : bytes_.ConsumeIntegral<uint8_t>());
  }
  TimestampRange Range() { return bytes_.ConsumeBool() ? TimestampRange::All() : TimestampRange{Time(), Time()}; }
  std::vector<Selector> Selectors() {
    std::vector<Selector> selectors;
    for (int left = Few(); left > 0; --left) {
      Selector& one = selectors.emplace_back(Selector{Family_(), {}, Range(), static_cast<uint32_t>(Few())});
      if (bytes_.ConsumeBool()) one.column = Name();
    }
    return selectors;
  }
  Mutation One(bool together) {
    if (bytes_.ConsumeBool()) return Mutation::Erase(Family_(), Name(), Range());
    const Timestamp ts = together && bytes_.ConsumeBool() ? JointMutation::AtCommit() : Time();
    return Mutation::Set(Family_(), Name(), ts, bytes_.ConsumeRandomLengthString(8));
  }

  FuzzedDataProvider& bytes_;
};

template <typename Message, typename Type>
Type OverTheWire(const Type& type) {
  Message message;
  ToMessage(type, &message);
  Message received;
  FUZZ_CHECK(received.ParseFromString(message.SerializeAsString()));
  absl::StatusOr<Type> back = FromMessage(&received);
  FUZZ_CHECK(back.ok());
  return *std::move(back);
}

class World {
 public:
  World() {
    for (const auto& store : {near_.get(), far_.get()}) {
      for (const char* table : kTables) FUZZ_CHECK(store->CreateTable({table, ""}).ok());
    }
  }

  void Read(const RowRead& read) {
    const auto near = near_->Read({read});
    const auto far = far_->Read({OverTheWire<v1::RowRead>(read)});
    FUZZ_CHECK(near.status() == far.status());
    if (near.ok()) FUZZ_CHECK(*near == *far);
  }

  void Scan(const ScanRequest& scan) {
    const auto near = near_->Scan(scan);
    const auto far = far_->Scan(OverTheWire<v1::ScanRequest>(scan));
    FUZZ_CHECK(near.status() == far.status());
    if (!near.ok()) return;
    FUZZ_CHECK(near->rows == far->rows && near->resume == far->resume);
    for (const Row& row : near->rows) {
      const auto read = near_->Read({{scan.table, row.key, scan.selectors}});
      FUZZ_CHECK(read.ok() && read->front() == row);
    }
  }

  void Mutate(const RowMutation& change) {
    const auto near = near_->Mutate({change});
    const auto far = far_->Mutate({OverTheWire<v1::RowMutation>(change)});
    FUZZ_CHECK(near[0].status() == far[0].status());
    if (near[0].ok()) FUZZ_CHECK(*near[0] == *far[0]);
  }

  void Together(const std::vector<RowMutation>& rows) {
    std::vector<RowMutation> sent;
    for (const RowMutation& row : rows) sent.push_back(OverTheWire<v1::RowMutation>(row));
    const auto near = near_->MutateTogether({Timestamp(50), rows}, &near_oracle_);
    const auto far = far_->MutateTogether({Timestamp(50), sent}, &far_oracle_);
    FUZZ_CHECK(near.status() == far.status());
    if (near.ok()) FUZZ_CHECK(near->applied == far->applied && near->timestamp == far->timestamp);
  }

 private:
  const std::unique_ptr<Store> near_ = NewMemoryStore();
  const std::unique_ptr<Store> far_ = NewMemoryStore();
  TestOracle near_oracle_{100};
  TestOracle far_oracle_{100};
};

}  // namespace
}  // namespace percolator

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace percolator;
  FuzzedDataProvider bytes(data, size);
  Requests requests(&bytes);
  World world;
  for (int step = 0; step < kSteps && bytes.remaining_bytes() > 0; ++step) {
    switch (bytes.ConsumeIntegralInRange<int>(0, 4)) {
      case 0:
        world.Read(requests.Read());
        break;
      case 1:
        world.Scan(requests.Scan());
        break;
      case 2:
        world.Together({requests.Change(true), requests.Change(true)});
        break;
      default:
        world.Mutate(requests.Change(false));
    }
  }
  return 0;
}
