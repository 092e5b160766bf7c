// SPDX-License-Identifier: Apache-2.0

#include "percolator/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <thread>

#include "tests/testing/status_matchers.h"

namespace percolator {
namespace {

using ::testing::HasSubstr;

// Returns a path for this process only, because several processes may run this test at once.
std::string PathOf(const std::string& name) {
  return ::testing::TempDir() + "/percolator_file_test." + std::to_string(getpid()) + "." + name;
}

TEST(FileTest, AFolderADeviceAndAMissingFileAreErrorsThatNameThePath) {
  EXPECT_THAT(ReadWholeFile("/", 10), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("folder")));
  EXPECT_THAT(ReadWholeFile("/dev/zero", 10), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("/dev/zero")));
  EXPECT_THAT(ReadWholeFile("/nowhere/x", 10), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("/nowhere/x")));
}

TEST(FileTest, AFileIsReadUpToTheLimitAndRefusedBeyond) {
  const std::string path = PathOf("file");
  std::ofstream(path) << "0123456789";
  const absl::StatusOr<std::string> whole = ReadWholeFile(path, 10);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(*whole, "0123456789");
  EXPECT_THAT(ReadWholeFile(path, 9), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("limit of 9")));
  std::remove(path.c_str());
}

TEST(FileTest, APipeWithoutAWriterIsRefusedAndDoesNotHang) {
  const std::string path = PathOf("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(ReadWholeFile(path, 10), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("nothing writes to it")));
  std::remove(path.c_str());
}

// The writer can open the pipe only after the reader has. The reader must not miss its bytes.
TEST(FileTest, APipeIsReadToItsEnd) {
  const std::string path = PathOf("pipe_read");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(path) << std::string(100'000, 'x'); });
  const absl::StatusOr<std::string> bytes = ReadWholeFile(path, 100'000);
  writer.join();
  std::remove(path.c_str());
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, std::string(100'000, 'x'));
}

TEST(FileTest, ADashIsAnOrdinaryFileName) {
  EXPECT_THAT(ReadWholeFile("-", 10), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("file -")));
}

}  // namespace
}  // namespace percolator
