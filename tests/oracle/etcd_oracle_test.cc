// SPDX-License-Identifier: Apache-2.0

// The oracle on etcd: its leader, the bound, and clocks. For processes that die and stand still see
// etcd_oracle_failover_test.cc.

#include "src/oracle/etcd/etcd_oracle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "src/base/strings.h"
#include "src/etcd/etcd_client.h"
#include "src/oracle/next_timestamps.h"
#include "src/wire/channel.h"
#include "tests/harness/eventually.h"
#include "tests/harness/wrong_clock.h"
#include "tests/processes/etcd_process.h"
#include "tests/testing/status_matchers.h"

namespace percolator {
namespace {

using std::chrono::milliseconds;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr milliseconds kLease(400);
constexpr uint64_t kSecond = 1'000'000;

EtcdProcess& Etcd() {
  static EtcdProcess etcd;
  return etcd;
}

class EtcdOracleTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!EtcdProcess::WhyNot().empty()) GTEST_SKIP() << EtcdProcess::WhyNot();
    static int count = 0;
    prefix_ = StrCat("oracle test ", ++count, "/");
    client_ = EtcdClient::Open({Etcd().endpoint()}, TlsFiles()).value();
  }

  EtcdOracleOptions Options(const std::string& name, Clock* clock = Clock::Real()) const {
    EtcdOracleOptions options;
    options.etcd = Etcd().Options(prefix_);
    options.name = name;
    options.lease = kLease;
    options.clock = clock;
    return options;
  }
  std::unique_ptr<Oracle> Open(const std::string& name, Clock* clock = Clock::Real()) {
    return OpenEtcdOracle(Options(name, clock)).value();
  }

  // Waits until the oracle answers.
  static Timestamp Get(Oracle* oracle, uint32_t count = 1) {
    absl::StatusOr<Timestamp> first;
    EXPECT_TRUE(Eventually([&] { return (first = oracle->GetTimestamps(count)).ok(); })) << first.status();
    return first.value_or(Timestamp());
  }

  std::string RecordKey() const { return prefix_ + "oracle"; }
  // The bound in etcd.
  uint64_t Bound() {
    const auto record = client_->Get(RecordKey(), std::chrono::seconds(60));
    EXPECT_TRUE(record.ok() && record->has_value());
    return std::stoull((*record)->value());
  }

  // Writes the record of a leader that has given up, perhaps a very long time ago.
  void PutVacant(uint64_t bound) {
    ASSERT_THAT(client_->Put(RecordKey(), StrCat(bound, " 1000 0 gone"), 0, std::chrono::seconds(60)), IsOk());
  }
  void DeleteRecord() {
    EtcdTxn txn;
    txn.ThenDelete(RecordKey());
    ASSERT_THAT(client_->Commit(txn, std::chrono::seconds(60)), IsOk());
  }

  std::string prefix_;
  std::unique_ptr<EtcdClient> client_;
};

// On a machine that gives a process no time during the lease another one rightly takes the lead. Then the test tries a
// longer lease.
TEST_F(EtcdOracleTest, OneOracleLeadsAndTheOthersNameIt) {
  const auto first_keeps_the_lead = [&](Duration lease) {
    EtcdOracleOptions options = Options("first");
    options.lease = lease;
    options.etcd.prefix = StrCat(prefix_, lease.count(), "/");
    const std::unique_ptr<Oracle> first = OpenEtcdOracle(options).value();
    Get(first.get());
    options.name = "second";
    const std::unique_ptr<Oracle> second = OpenEtcdOracle(options).value();
    absl::Status answer;
    EXPECT_TRUE(Eventually([&] {
      answer = second->GetTimestamp().status();
      return answer.ok() || ToPiece(answer.message()) == "not the leader; the leader is first";
    })) << answer;
    std::this_thread::sleep_for(2 * lease);  // the second must not lead later either
    return absl::IsUnavailable(answer) && absl::IsUnavailable(second->GetTimestamp().status()) &&
           first->GetTimestamp().ok();
  };
  EXPECT_TRUE(first_keeps_the_lead(kLease) || first_keeps_the_lead(5 * kLease) || first_keeps_the_lead(25 * kLease));
}

TEST_F(EtcdOracleTest, TimestampsGrowAndFollowTheClock) {
  const std::unique_ptr<Oracle> oracle = Open("one");
  Timestamp last = Get(oracle.get());
  for (int i = 0; i < 1000; ++i) {
    const uint64_t before = Clock::Real()->WallMicros();
    const Timestamp next = Get(oracle.get(), 7);
    EXPECT_GT(next, last);
    EXPECT_GE(next.value(), before);
    last = Timestamp(next.value() + 6);
  }
  EXPECT_THAT(oracle->GetTimestamps(0), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(oracle->GetTimestamps(Oracle::kMaxCount + 1), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(EtcdOracleTest, NothingIsHandedOutAboveTheBound) {
  const std::unique_ptr<Oracle> oracle = Open("one");
  for (int i = 0; i < 40; ++i) {
    const Timestamp first = Get(oracle.get(), Oracle::kMaxCount);
    ASSERT_LE(first.value() + Oracle::kMaxCount, Bound());
  }
}

TEST_F(EtcdOracleTest, ARequestMayExceedTheWindow) {
  EtcdOracleOptions options = Options("one");
  options.window = milliseconds(100);
  const std::unique_ptr<Oracle> oracle = OpenEtcdOracle(options).value();
  const Timestamp first = Get(oracle.get(), Oracle::kMaxCount);
  EXPECT_GE(Get(oracle.get(), Oracle::kMaxCount).value(), first.value() + Oracle::kMaxCount);
}

TEST_F(EtcdOracleTest, ALeaderThatGivesUpIsSucceededAtOnceFromTheBound) {
  EtcdOracleOptions patient = Options("first");
  patient.lease = std::chrono::minutes(10);
  PutVacant(0);
  std::unique_ptr<Oracle> first = OpenEtcdOracle(patient).value();
  Get(first.get());
  const std::unique_ptr<Oracle> second = Open("second");
  const uint64_t bound = Bound();
  first = nullptr;
  EXPECT_GE(Get(second.get()).value(), bound);
}

TEST_F(EtcdOracleTest, ALeaderThatIsSilentForTheLeaseIsSucceeded) {
  WrongClock clock;
  const std::unique_ptr<Oracle> first = Open("first");
  Get(first.get());
  const std::unique_ptr<Oracle> second = Open("second", &clock);
  ASSERT_TRUE(Eventually([&] { return absl::IsUnavailable(second->GetTimestamp().status()); }));
  // For the second oracle, the lease passes between two writes of the first.
  ASSERT_TRUE(Eventually([&] {
    clock.boot_ahead += static_cast<uint64_t>(Duration(kLease).count()) * 2;
    std::this_thread::sleep_for(milliseconds(60));
    return second->GetTimestamp().ok();
  }));
  EXPECT_TRUE(Eventually([&] {
    const absl::StatusOr<Timestamp> answer = first->GetTimestamp();
    return !answer.ok() && ToPiece(answer.status().message()) == "not the leader; the leader is second";
  }));
}

// O4: another oracle may lead already.
TEST_F(EtcdOracleTest, ALeaderWhoseLeaseMayBeOverDoesNotAnswer) {
  WrongClock clock;
  EtcdOracleOptions options = Options("one", &clock);
  options.window = std::chrono::minutes(10);
  const std::unique_ptr<Oracle> oracle = OpenEtcdOracle(options).value();
  const Timestamp before = Get(oracle.get());
  Etcd().Stop();
  clock.boot_ahead += static_cast<uint64_t>(Duration(kLease).count());
  const absl::StatusOr<Timestamp> answer = oracle->GetTimestamp();
  EXPECT_THAT(answer, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(std::string(ToPiece(answer.status().message())), HasSubstr("lease of this leader has expired"));
  Etcd().Continue();
  EXPECT_GT(Get(oracle.get()), before);
}

TEST_F(EtcdOracleTest, ALeaderThatCannotWriteSaysWhy) {
  const std::unique_ptr<Oracle> oracle = Open("one");
  Get(oracle.get());
  Etcd().Kill();
  absl::Status answer;
  EXPECT_TRUE(Eventually([&] {
    answer = oracle->GetTimestamp().status();
    return ToPiece(answer.message()).find("lease of this leader has expired: ") != std::string_view::npos;
  })) << answer;
  Etcd().Start();
  Get(oracle.get());
}

TEST_F(EtcdOracleTest, TheClockMayBeSetBackAndForward) {
  WrongClock clock;
  clock.wall_ahead = 3600 * kSecond;  // so that it can be set back
  const std::unique_ptr<Oracle> oracle = Open("one", &clock);
  const Timestamp before = Get(oracle.get());
  clock.wall_ahead -= 1800 * kSecond;
  const Timestamp back = Get(oracle.get());
  EXPECT_GT(back, before);
  EXPECT_LT(back.value(), before.value() + 600 * kSecond);
  clock.wall_ahead += 24 * 3600 * kSecond;
  const Timestamp forth = Get(oracle.get());
  EXPECT_GT(forth.value(), before.value() + 22 * 3600 * kSecond);
  clock.wall_ahead -= 24 * 3600 * kSecond;
  EXPECT_GT(Get(oracle.get()), forth);
}

TEST_F(EtcdOracleTest, AClockBeyondTheLastTimestampIsReported) {
  WrongClock clock;
  clock.wall_ahead = kLastTimestamp;
  const std::unique_ptr<Oracle> oracle = Open("one", &clock);
  EXPECT_TRUE(Eventually([&] { return absl::IsOutOfRange(oracle->GetTimestamp().status()); }));
}

// It is unknown which timestamps were handed out, so none is, rather than one twice.
TEST_F(EtcdOracleTest, WithAMalformedRecordNoOracleLeads) {
  ASSERT_THAT(client_->Put(RecordKey(), "12x", 0, std::chrono::seconds(60)), IsOk());
  const std::unique_ptr<Oracle> oracle = Open("one");
  absl::StatusOr<Timestamp> answer;
  EXPECT_TRUE(Eventually([&] {
    answer = oracle->GetTimestamp();
    return ToPiece(answer.status().message()).find("oracle: 12x") != std::string_view::npos;
  })) << answer.status();
  std::this_thread::sleep_for(2 * kLease);
  EXPECT_THAT(oracle->GetTimestamp(), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(EtcdOracleTest, ARecordThatWasLostIsReplacedAboveTheBound) {
  WrongClock clock;
  clock.wall_ahead = 3600 * kSecond;  // so that it can be set back
  const std::unique_ptr<Oracle> oracle = Open("one", &clock);
  Get(oracle.get());
  clock.wall_ahead = 0;  // an hour back
  const uint64_t bound = Bound();
  DeleteRecord();
  EXPECT_TRUE(Eventually([&] {
    const absl::StatusOr<Timestamp> answer = oracle->GetTimestamp();
    return answer.ok() && answer->value() >= bound;
  }));
}

// A leader hands out timestamps above the clock for a while, because the previous leader had reserved them.
TEST_F(EtcdOracleTest, ARestoredOldRecordDoesNotMakeTimestampsRepeat) {
  constexpr std::chrono::minutes kWindow(10);
  const auto get_of_next = [&](const std::string& name) {
    EtcdOracleOptions options = Options(name);
    options.window = kWindow;
    const std::unique_ptr<Oracle> oracle = OpenEtcdOracle(options).value();
    return Get(oracle.get());
  };
  const uint64_t reserved = Clock::Real()->WallMicros() + static_cast<uint64_t>(Duration(kWindow).count());
  PutVacant(reserved);
  const Timestamp last = get_of_next("first");
  EXPECT_GE(last.value(), reserved);
  PutVacant(1);
  EXPECT_GT(get_of_next("second"), last);
}

// O4: a leader that writes rarely notices late that its record was deleted or replaced.
TEST_F(EtcdOracleTest, WhenTheRecordIsLostOrRestoredTheLeaderHasTimeToNotice) {
  const std::function<void()> damages[] = {[&] { DeleteRecord(); }, [&] { PutVacant(1); }};
  for (const std::function<void()>& damage : damages) {
    PutVacant(0);
    EtcdOracleOptions patient = Options("first");
    patient.lease = patient.window = std::chrono::minutes(10);
    const std::unique_ptr<Oracle> first = OpenEtcdOracle(patient).value();
    Get(first.get());
    WrongClock clock;
    const std::unique_ptr<Oracle> second = Open("second", &clock);
    const auto second_says = [&](std::string_view text) {
      return Eventually([&] { return ToPiece(second->GetTimestamp().status().message()) == text; });
    };
    ASSERT_TRUE(second_says("not the leader; the leader is first"));
    damage();
    ASSERT_TRUE(second_says("no oracle leads yet"));
    std::this_thread::sleep_for(2 * kLease);
    EXPECT_THAT(second->GetTimestamp(), StatusIs(absl::StatusCode::kUnavailable));
    const Timestamp last = Get(first.get());
    clock.boot_ahead += 13 * 60 * kSecond;
    EXPECT_GT(Get(second.get()), last);
  }
}

TEST_F(EtcdOracleTest, TheLeaderCompactsEtcd) {
  const std::string key = prefix_ + "key";
  std::atomic<int> heard = 0;
  const EtcdWatch watch(client_.get(), key, [&](const etcd::KeyValue&) { ++heard; });
  const auto put = [&] {
    EtcdTxn txn;
    txn.ThenPut(key, "value");
    return client_->Commit(txn, std::chrono::seconds(60)).value().revision;
  };
  EtcdOracleOptions options = Options("one");
  options.history = milliseconds(200);
  const std::unique_ptr<Oracle> oracle = OpenEtcdOracle(options).value();
  etcd::RangeRequest long_ago;
  long_ago.set_key(key);
  long_ago.set_revision(put());
  const auto stub = etcd::KV::NewStub(OpenChannel(Etcd().endpoint(), TlsFiles()).value());
  EXPECT_TRUE(Eventually([&] {
    etcd::RangeResponse response;
    return absl::IsOutOfRange(Call(*stub, &etcd::KV::Stub::Range, std::chrono::seconds(60), long_ago, &response));
  }));
  heard = 0;
  EXPECT_TRUE(Eventually([&] {
    put();
    return heard > 0;
  })) << "a watch continues";
  Get(oracle.get());
}

TEST_F(EtcdOracleTest, AnOracleStartsBeforeEtcd) {
  EtcdOracleOptions options = Options("one");
  Etcd().Kill();
  const std::unique_ptr<Oracle> oracle = OpenEtcdOracle(options).value();
  EXPECT_THAT(oracle->GetTimestamp(), StatusIs(absl::StatusCode::kUnavailable));
  Etcd().Start();
  Get(oracle.get());
}

TEST_F(EtcdOracleTest, TheLeaderIsReported) {
  Mutex mutex;
  std::vector<std::string> leaders;
  EtcdOracleOptions options = Options("second");
  options.on_leader = [&](const std::string& name, bool is_self) {
    MutexLock lock(&mutex);
    leaders.push_back(is_self ? "I, " + name : name);
  };
  EtcdOracleOptions patient = Options("first");
  patient.lease = std::chrono::minutes(10);  // it keeps the lead until it gives it up
  PutVacant(0);
  std::unique_ptr<Oracle> first = OpenEtcdOracle(patient).value();
  Get(first.get());
  const std::unique_ptr<Oracle> second = OpenEtcdOracle(options).value();
  ASSERT_TRUE(Eventually([&] {
    MutexLock lock(&mutex);
    return leaders.size() == 1;
  }));
  first = nullptr;
  Get(second.get());
  MutexLock lock(&mutex);
  EXPECT_THAT(leaders, AnyOf(std::vector<std::string>{"first", "", "I, second"},
                             std::vector<std::string>{"first", "I, second"}));
}

TEST_F(EtcdOracleTest, InvalidOptionsOfTheOracleAreRefused) {
  EtcdOracleOptions options = Options("one");
  options.lease = Duration(0);
  EXPECT_THAT(OpenEtcdOracle(options), StatusIs(absl::StatusCode::kInvalidArgument));
  options = Options("one");
  options.etcd.endpoints.clear();
  EXPECT_THAT(OpenEtcdOracle(options), StatusIs(absl::StatusCode::kInvalidArgument));
  options = Options("one");
  options.etcd.tls.ca = "/no such file";
  EXPECT_THAT(OpenEtcdOracle(options), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace percolator
