// SPDX-License-Identifier: Apache-2.0

#include "src/oracle/bound_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "absl/strings/escaping.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace percolator {
namespace {

using ::testing::AnyOf;
using ::testing::Eq;

class BoundFileTest : public ::testing::Test {
 protected:
  std::string Path() const { return dir_.path() + "/oracle"; }

  std::string Content() const {
    std::ifstream file(Path(), std::ios::binary);
    std::ostringstream content;
    content << file.rdbuf();
    return content.str();
  }
  void SetContent(const std::string& content) const {
    std::ofstream(Path(), std::ios::binary | std::ios::trunc) << content;
  }

  // The content of a file with this bound.
  std::string ContentFor(uint64_t bound) {
    std::filesystem::remove(Path());
    EXPECT_THAT(BoundFile::Create(Path(), bound), IsOk());
    return Content();
  }

  absl::StatusOr<uint64_t> OpenBound() const {
    absl::StatusOr<std::unique_ptr<BoundFile>> file = BoundFile::Open(Path());
    if (!file.ok()) return file.status();
    return (*file)->bound();
  }

  TempDir dir_;
};

TEST_F(BoundFileTest, KeepsTheBound) {
  {
    const auto file = BoundFile::Create(Path(), 5);
    ASSERT_THAT(file, IsOk());
    EXPECT_EQ((*file)->bound(), 5u);
    ASSERT_THAT((*file)->Raise(7), IsOk());
  }
  EXPECT_EQ(OpenBound().value(), 7u);
}

// Any user that may read the file can lock it. Older versions let all users read it.
TEST_F(BoundFileTest, IsAccessibleToTheOwnerOnly) {
  using std::filesystem::perms;
  { ASSERT_THAT(BoundFile::Create(Path(), 5), IsOk()); }
  EXPECT_EQ(std::filesystem::status(Path()).permissions(), perms(0600));
  std::filesystem::permissions(Path(), perms(0644));
  EXPECT_EQ(OpenBound().value(), 5u);
  EXPECT_EQ(std::filesystem::status(Path()).permissions(), perms(0600));
}

// These bytes are on users' disks: see docs/format.md.
TEST_F(BoundFileTest, GoldenBytes) {
  const std::string content = ContentFor(0x0102030405060708);
  ASSERT_EQ(content.size(), BoundFile::kBlockBytes + 20);
  const std::string copy = content.substr(0, 20);
  EXPECT_EQ(copy.substr(0, 8), "PercTSO1");
  EXPECT_EQ(absl::BytesToHexString(copy.substr(8)), "01020304050607083f51bc67");
  EXPECT_EQ(content.substr(BoundFile::kBlockBytes), copy);
}

// O3c: power fails at any byte of a Raise. The written part may be incomplete, and may be garbage.
TEST_F(BoundFileTest, O3c_NoTornWriteMakesTheBoundSmaller) {
  const std::string before = ContentFor(1000);
  const std::string after = ContentFor(2000);
  for (size_t copy : {size_t{0}, BoundFile::kBlockBytes}) {
    for (size_t n = 0; n <= 20; ++n) {
      for (const bool garbage : {false, true}) {
        // Everything before the copy is new, the first n bytes of the copy are new, and the rest is old.
        std::string content = after.substr(0, copy + n) + before.substr(copy + n);
        if (garbage && n < 20) content[copy + n] = static_cast<char>(~content[copy + n]);
        SetContent(content);
        const absl::StatusOr<uint64_t> bound = OpenBound();
        ASSERT_THAT(bound, IsOk()) << copy << "+" << n;
        if (copy == 0) {
          EXPECT_THAT(*bound, AnyOf(Eq(1000u), Eq(2000u)));
        } else {
          EXPECT_EQ(*bound, 2000u);
        }
      }
    }
  }
}

TEST_F(BoundFileTest, O3c_OneCopyIsEnoughWhicheverBitRots) {
  const std::string content = ContentFor(123456);
  for (size_t copy : {size_t{0}, BoundFile::kBlockBytes}) {
    for (size_t bit = 0; bit < 20 * 8; ++bit) {
      std::string rotten = content;
      rotten[copy + bit / 8] = static_cast<char>(rotten[copy + bit / 8] ^ (1 << (bit % 8)));
      SetContent(rotten);
      ASSERT_EQ(OpenBound().value(), 123456u) << copy << ":" << bit;
    }
  }
}

TEST_F(BoundFileTest, O3c_RefusesWhenUnsure) {
  const std::string content = ContentFor(5);
  SetContent("");
  EXPECT_THAT(OpenBound(), StatusIs(absl::StatusCode::kDataLoss));
  SetContent(std::string(content.size(), '\0'));
  EXPECT_THAT(OpenBound(), StatusIs(absl::StatusCode::kDataLoss));
  SetContent("not a file of the oracle, but long enough to be one");
  EXPECT_THAT(OpenBound(), StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(BoundFileTest, MissingFileIsNotFound) { EXPECT_THAT(OpenBound(), StatusIs(absl::StatusCode::kNotFound)); }

TEST_F(BoundFileTest, CreateDoesNotReplace) {
  ContentFor(5);
  EXPECT_THAT(BoundFile::Create(Path(), 1), StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_EQ(OpenBound().value(), 5u);
}

TEST_F(BoundFileTest, CreateFinishesAfterAnInterruptedOne) {
  std::ofstream(Path() + ".tmp") << std::string(10'000, 'x');
  EXPECT_THAT(BoundFile::Create(Path(), 5), IsOk());
  EXPECT_EQ(OpenBound().value(), 5u);
}

TEST_F(BoundFileTest, OnlyOneProcessMayOpenIt) {
  const auto file = BoundFile::Create(Path(), 5);
  ASSERT_THAT(file, IsOk());
  EXPECT_THAT(OpenBound(), StatusIs(absl::StatusCode::kFailedPrecondition));
}

// A limit on the size of files makes writes fail.
TEST_F(BoundFileTest, AfterAFailedWriteTheBoundIsNotRaised) {
  const auto file = BoundFile::Create(Path(), 5);
  ASSERT_THAT(file, IsOk());
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old_limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  rlimit limit = old_limit;
  limit.rlim_cur = 10;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const absl::Status failed = (*file)->Raise(9);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_THAT(failed, StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_EQ((*file)->bound(), 5u);
  EXPECT_THAT((*file)->Raise(9), StatusIs(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace percolator
