// SPDX-License-Identifier: Apache-2.0

// The common part of all commands of the command line: apps/percolator/shell.h.

#include <gtest/gtest.h>

#include <chrono>

#include "apps/percolator/shell.h"
#include "tests/testing/status_matchers.h"
#include "tests/txn/world.h"

namespace percolator::cli {
namespace {

using FaultKind = Fault::Kind;

class ShellCommitTest : public ClusterTest {
 protected:
  ShellCommitTest() : process_(&world_, ShortOptions()) {}

  static ClusterOptions ShortOptions() {
    ClusterOptions options = Options();
    options.call_timeout = std::chrono::seconds(1);
    return options;
  }

  absl::StatusOr<Timestamp> SetBob() {
    return Commit(*process_, [](ReadWrite& t) {
      t.Set({kTable, "Bob", kColumn}, "3");
      return absl::OkStatus();
    });
  }

  Process process_;
};

TEST_F(ShellCommitTest, ALostAnswerIsFoundOut) {
  process_.wire().FailAt(kCommitsTogether, {.kind = FaultKind::kLoseReply});
  EXPECT_THAT(SetBob(), IsOk());
  EXPECT_EQ(Now("Bob"), "3");
}

// An error that only says that the cluster cannot be reached would suggest that nothing was written.
TEST_F(ShellCommitTest, AnUnknownOutcomeIsReportedAsUnknown) {
  process_.wire().FailAt(kCommitsTogether, {.kind = FaultKind::kLoseReply});
  process_.wire().After(kCommitsTogether, [&] { process_.wire().FailFrom(1, {.kind = FaultKind::kLoseRequest}); });
  const absl::StatusOr<Timestamp> committed = SetBob();
  EXPECT_THAT(committed, StatusIs(absl::StatusCode::kUnknown));
  EXPECT_TRUE(GetUnknownCommit(committed.status()).has_value());
  EXPECT_EQ(ExitOf(committed.status()), Exit::kFailed);
  EXPECT_EQ(Now("Bob"), "3");
}

}  // namespace
}  // namespace percolator::cli
