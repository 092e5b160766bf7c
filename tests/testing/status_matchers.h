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

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_TESTING_STATUS_MATCHERS_H_
