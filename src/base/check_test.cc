// SPDX-License-Identifier: Apache-2.0

#include "src/base/check.h"

#include <gtest/gtest.h>

namespace percolator {
namespace {

TEST(CheckTest, ATrueConditionDoesNothing) { PERCOLATOR_DCHECK(1 + 1 == 2); }

#ifdef PERCOLATOR_DCHECKS
TEST(CheckDeathTest, AFalseConditionAbortsAndNamesItself) {
  EXPECT_DEATH(PERCOLATOR_DCHECK(1 + 1 == 3), "check_test.cc:[0-9]+: check failed: 1 \\+ 1 == 3");
}
#else
TEST(CheckTest, ConditionsAreNotEvaluatedInReleaseBuilds) {
  bool evaluated = false;
  PERCOLATOR_DCHECK((evaluated = true));
  EXPECT_FALSE(evaluated);
}
#endif

}  // namespace
}  // namespace percolator
