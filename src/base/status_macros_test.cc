// SPDX-License-Identifier: Apache-2.0

#include "percolator/status_macros.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace percolator {
namespace {

absl::Status Bad() { return absl::NotFoundError("a reason"); }

TEST(StatusMacrosTest, AnErrorIsReturnedAsItIs) {
  bool went_on = false;
  const auto function = [&]() -> absl::Status {
    PERCOLATOR_RETURN_IF_ERROR(absl::OkStatus());
    PERCOLATOR_RETURN_IF_ERROR(Bad());
    went_on = true;
    return absl::OkStatus();
  };
  EXPECT_EQ(function(), Bad());
  EXPECT_FALSE(went_on);
}

TEST(StatusMacrosTest, AnIfWithoutBracesKeepsItsElse) {
  const auto function = [](bool fails) -> absl::StatusOr<std::string> {
    if (fails)
      PERCOLATOR_RETURN_IF_ERROR(Bad());
    else
      return std::string("else");
    return std::string("after");
  };
  EXPECT_EQ(function(true).status(), Bad());
  EXPECT_EQ(*function(false), "else");
}

TEST(StatusMacrosTest, AValueIsMovedIntoTheVariable) {
  const auto function = [](absl::StatusOr<std::unique_ptr<int>> number) -> absl::StatusOr<int> {
    PERCOLATOR_ASSIGN_OR_RETURN(const std::unique_ptr<int> value, std::move(number));
    return *value;
  };
  EXPECT_EQ(*function(std::make_unique<int>(7)), 7);
  EXPECT_EQ(function(Bad()).status(), Bad());
}

TEST(StatusMacrosTest, ParenthesesHoldAStructuredBinding) {
  const auto function = [](absl::StatusOr<std::pair<int, int>> numbers) -> absl::StatusOr<int> {
    PERCOLATOR_ASSIGN_OR_RETURN((const auto [a, b]), std::move(numbers));
    return a + b;
  };
  EXPECT_EQ(*function(std::pair(3, 4)), 7);
  EXPECT_EQ(function(Bad()).status(), Bad());
}

}  // namespace
}  // namespace percolator
