// SPDX-License-Identifier: Apache-2.0

#include "tests/coord/conformance.h"

#include <thread>
#include <utility>

namespace percolator {
namespace {

std::vector<CoordinatorKind>& Registry() {
  static auto& kinds = *new std::vector<CoordinatorKind>();
  return kinds;
}

std::string NameOf(const ::testing::TestParamInfo<CoordinatorKind>& info) { return info.param.name; }

// The result of a call that has to succeed. If it fails, so does the test, and the result is a default one.
template <typename T>
T ValueOf(absl::StatusOr<T> answer) {
  EXPECT_THAT(answer, IsOk());
  return answer.ok() ? *std::move(answer) : T();
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Coordinators, CoordinatorTest, ::testing::ValuesIn(Registry()), NameOf);

bool RegisterCoordinator(CoordinatorKind kind) {
  Registry().push_back(std::move(kind));
  return true;
}

void InThreads(int count, const std::function<void(int thread)>& task) {
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t) threads.emplace_back(task, t);
  for (std::thread& thread : threads) thread.join();
}

void CoordinatorTest::Connect() {
  here_ = place_->Connect();
  there_ = place_->Connect();
}

void CoordinatorTest::Restart() {
  place_->Restart();
  Connect();
}

std::unique_ptr<Session> CoordinatorTest::Open(Coordinator* coordinator) { return ValueOf(coordinator->OpenSession()); }

bool CoordinatorTest::IsAlive(Coordinator* coordinator, SessionId session) {
  return ValueOf(coordinator->IsAlive(session));
}

Timestamp CoordinatorTest::Oldest(Coordinator* coordinator) { return ValueOf(coordinator->OldestSnapshot()); }

bool CoordinatorTest::Campaign(Coordinator* coordinator, std::string_view role, const Session& session) {
  return ValueOf(coordinator->Campaign(role, session));
}

bool CoordinatorTest::Claim(Coordinator* coordinator, std::string_view table, std::string_view row,
                            const Session& session) {
  return ValueOf(coordinator->Claim(table, row, session));
}

}  // namespace percolator
