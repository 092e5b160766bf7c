// SPDX-License-Identifier: Apache-2.0

// Matchers for absl::Status and absl::StatusOr:
//
//     ASSERT_THAT(store->CreateTable(info), IsOk());
//     EXPECT_THAT(store->Read(reads), StatusIs(absl::StatusCode::kNotFound));

#ifndef PERCOLATOR_TESTS_TESTING_STATUS_MATCHERS_H_
#define PERCOLATOR_TESTS_TESTING_STATUS_MATCHERS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"

namespace percolator {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

MATCHER(IsOk, negation ? "is an error" : "is OK") {
  *result_listener << "which is " << StatusOf(arg).ToString();
  return StatusOf(arg).ok();
}

MATCHER_P(StatusIs, code, (negation ? "is not " : "is ") + absl::StatusCodeToString(code)) {
  *result_listener << "which is " << StatusOf(arg).ToString();
  return StatusOf(arg).code() == code;
}

// The same, and its text matches, for example HasSubstr("the disk is full").
MATCHER_P2(StatusIs, code, message, "is " + absl::StatusCodeToString(code) + " and its text matches") {
  const absl::Status& status = StatusOf(arg);
  *result_listener << "which is " << status.ToString();
  return status.code() == code &&
         ::testing::ExplainMatchResult(message, std::string(status.message()), result_listener);
}

// For StatusOr: OK with a value that matches.
MATCHER_P(IsOkAndHolds, value, "is OK and holds what matches") {
  if (!arg.ok()) {
    *result_listener << "which is " << arg.status().ToString();
    return false;
  }
  return ::testing::ExplainMatchResult(value, *arg, result_listener);
}

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_TESTING_STATUS_MATCHERS_H_
