// SPDX-License-Identifier: Apache-2.0

// The emulators start, listen and end.

#include "tests/processes/emulator.h"

#include "gtest/gtest.h"
#include "src/wire/channel.h"
#include "src/wire/proto/bigtable_admin.grpc.pb.h"
#include "tests/testing/status_matchers.h"

namespace percolator {
namespace {

namespace admin = google::bigtable::admin::v2;

void ExpectNoTables(const Emulator& emulator) {
  const auto channel = OpenChannel(emulator.target(), {});
  ASSERT_THAT(channel, IsOk());
  const auto stub = admin::BigtableTableAdmin::NewStub(*channel);
  admin::ListTablesRequest request;
  request.set_parent("projects/p/instances/i");
  admin::ListTablesResponse response;
  ASSERT_THAT(Call(*stub, &admin::BigtableTableAdmin::Stub::ListTables, std::chrono::seconds(60), request, &response),
              IsOk());
  EXPECT_EQ(response.tables_size(), 0);
}

TEST(EmulatorTest, TheBuiltEmulatorAnswers) {
  const auto emulator = Emulator::Start();
  if (absl::IsUnavailable(emulator.status())) GTEST_SKIP() << emulator.status();
  ASSERT_THAT(emulator, IsOk());
  ExpectNoTables(**emulator);
}

TEST(EmulatorTest, ThePackagedEmulatorAnswers) {
  const auto emulator = Emulator::StartPackaged();
  if (absl::IsUnavailable(emulator.status())) GTEST_SKIP() << emulator.status();
  ASSERT_THAT(emulator, IsOk());
  ExpectNoTables(**emulator);
}

}  // namespace
}  // namespace percolator
