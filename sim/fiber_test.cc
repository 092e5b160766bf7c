// SPDX-License-Identifier: Apache-2.0

#include "sim/fiber.h"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"

namespace percolator::sim {
namespace {

TEST(Fiber, ContinuesWhereItStopped) {
  std::string log;
  Fiber* self = nullptr;
  Fiber fiber([&] {
    log += "a";
    self->Yield();
    log += "b";
    self->Yield();
    log += "c";
  });
  self = &fiber;
  EXPECT_EQ(log, "");
  fiber.Resume();
  log += "1";
  fiber.Resume();
  log += "2";
  EXPECT_FALSE(fiber.finished());
  fiber.Resume();
  EXPECT_TRUE(fiber.finished());
  EXPECT_EQ(log, "a1b2c");
}

TEST(Fiber, EachOfManyKeepsItsOwnStack) {
  constexpr int kFibers = 300;
  std::vector<std::unique_ptr<Fiber>> fibers(kFibers);
  std::vector<int> sums(kFibers);
  for (int i = 0; i < kFibers; ++i) {
    fibers[i] = std::make_unique<Fiber>([&, i] {
      int sum = 0;  // on the stack of the fiber
      for (int round = 0; round < 10; ++round) {
        sum += i;
        fibers[i]->Yield();
      }
      sums[i] = sum;
    });
  }
  for (int round = 0; round <= 10; ++round) {
    for (const std::unique_ptr<Fiber>& fiber : fibers) fiber->Resume();
  }
  for (int i = 0; i < kFibers; ++i) {
    EXPECT_TRUE(fibers[i]->finished());
    EXPECT_EQ(sums[i], 10 * i);
  }
}

// Uses about `bytes` of stack, and yields at the bottom. NOLINTNEXTLINE(misc-no-recursion): recursion is the point.
size_t Deep(Fiber* fiber, size_t bytes) {
  volatile char frame[1024];
  frame[0] = 1;
  frame[sizeof(frame) - 1] = 1;
  if (bytes <= 2 * sizeof(frame)) {
    fiber->Yield();
    return 1;
  }
  const size_t below = Deep(fiber, bytes - sizeof(frame));
  return below + static_cast<size_t>(frame[0]);
}

TEST(Fiber, HasRoomForADeepStack) {
  size_t depth = 0;
  Fiber* self = nullptr;
  // Sanitizers make frames larger than they look.
  Fiber fiber([&] { depth = Deep(self, Fiber::kStackBytes / 4); });
  self = &fiber;
  fiber.Resume();
  fiber.Resume();
  EXPECT_TRUE(fiber.finished());
  EXPECT_GT(depth, 60U);
}

TEST(FiberDeathTest, AStackOverflowEndsTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        Fiber* self = nullptr;
        Fiber fiber([&] { Deep(self, 4 * Fiber::kStackBytes); });
        self = &fiber;
        fiber.Resume();
      },
      "");
}

TEST(Fiber, ADroppedFiberLeavesAReusableStack) {
  for (int i = 0; i < 100; ++i) {
    Fiber* self = nullptr;
    Fiber forgotten([&] { Deep(self, Fiber::kStackBytes / 4); });
    self = &forgotten;
    forgotten.Resume();
  }
  std::string text;
  Fiber next([&] { text = absl::StatusOr<std::string>(std::string(1000, 'x')).value_or(""); });
  next.Resume();
  EXPECT_EQ(text.size(), 1000U);
}

}  // namespace
}  // namespace percolator::sim
