// SPDX-License-Identifier: Apache-2.0

#include "src/base/call_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace percolator {
namespace {

TEST(CallGateTest, AdmitsCallsUntilItIsClosed) {
  CallGate gate;
  {
    const CallGate::Call one(&gate);
    const CallGate::Call nested(&gate);
    EXPECT_TRUE(one.ok());
    EXPECT_TRUE(nested.ok());
  }
  gate.Close();
  EXPECT_FALSE(CallGate::Call(&gate).ok());
  gate.WaitForCalls(Runtime::Real());
}

// `usable` stands for the resources of the calls: they are released only after WaitForCalls.
TEST(CallGateTest, WaitsForAdmittedCalls) {
  for (int round = 0; round < 50; ++round) {
    CallGate gate;
    std::atomic<bool> usable{true};
    std::atomic<int> calls{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (;;) {
          const CallGate::Call call(&gate);
          if (!call.ok()) return;
          ++calls;
          EXPECT_TRUE(usable);
          std::this_thread::yield();
          EXPECT_TRUE(usable);
        }
      });
    }
    while (calls < 100) std::this_thread::yield();
    gate.Close();
    gate.WaitForCalls(Runtime::Real());
    usable = false;
    for (std::thread& thread : threads) thread.join();
  }
}

}  // namespace
}  // namespace percolator
