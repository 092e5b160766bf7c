// SPDX-License-Identifier: Apache-2.0

// Early return on errors. Opt-in: no other public header includes this one.

#ifndef PERCOLATOR_STATUS_MACROS_H_
#define PERCOLATOR_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Evaluates `expr`, an absl::Status, and returns it from the enclosing function unless it is OK.
#define PERCOLATOR_RETURN_IF_ERROR(expr) \
  PERCOLATOR_INTERNAL_RETURN_(PERCOLATOR_INTERNAL_CAT_(percolator_status_, __COUNTER__), expr)

// Evaluates `expr`, an absl::StatusOr, and assigns its value to `lhs`, which may declare a
// variable. On an error, returns the status from the enclosing function. Enclose structured
// bindings in parentheses:
//
//     PERCOLATOR_ASSIGN_OR_RETURN(Snapshot now, cluster.GetSnapshot());
//     PERCOLATOR_ASSIGN_OR_RETURN((auto [title, links]), now.GetColumns(url, kTitle, kLinks));
#define PERCOLATOR_ASSIGN_OR_RETURN(lhs, expr) \
  PERCOLATOR_INTERNAL_ASSIGN_(PERCOLATOR_INTERNAL_CAT_(percolator_or_, __COUNTER__), lhs, expr)

// Implementation details follow.

// A loop that ends at once has no `else` to be confused with that of an `if` around the macro.
#define PERCOLATOR_INTERNAL_RETURN_(status, expr) \
  for (absl::Status status = (expr); !(status).ok();) [[unlikely]] return status

// NOLINTBEGIN(bugprone-macro-parentheses): `result` is a name
#define PERCOLATOR_INTERNAL_ASSIGN_(result, lhs, expr) \
  auto result = (expr);                                \
  if (!result.ok()) [[unlikely]]                       \
    return std::move(result).status();                 \
  PERCOLATOR_INTERNAL_UNPAREN_(lhs) = *std::move(result)
// NOLINTEND(bugprone-macro-parentheses)

#define PERCOLATOR_INTERNAL_CAT_(a, b) PERCOLATOR_INTERNAL_CAT2_(a, b)
#define PERCOLATOR_INTERNAL_CAT2_(a, b) a##b

// Removes the parentheses around `lhs`, if it has any.
#define PERCOLATOR_INTERNAL_UNPAREN_(lhs)                                            \
  PERCOLATOR_INTERNAL_CAT_(PERCOLATOR_INTERNAL_LHS_,                                 \
                           PERCOLATOR_INTERNAL_EMPTY_(PERCOLATOR_INTERNAL_EAT_ lhs)) \
  (lhs)
#define PERCOLATOR_INTERNAL_EAT_(...)
#define PERCOLATOR_INTERNAL_FIRST_(first, ...) first
#define PERCOLATOR_INTERNAL_EMPTY_(...) PERCOLATOR_INTERNAL_FIRST_(__VA_OPT__(0, ) 1)
#define PERCOLATOR_INTERNAL_STRIP_(...) __VA_ARGS__
#define PERCOLATOR_INTERNAL_LHS_0(lhs) lhs
#define PERCOLATOR_INTERNAL_LHS_1(lhs) PERCOLATOR_INTERNAL_STRIP_ lhs

#endif  // PERCOLATOR_STATUS_MACROS_H_
