// SPDX-License-Identifier: Apache-2.0

// A store at rest: damage between a clean close and the next open is an error, never silently missing rows.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "percolator/spi/store.h"
#include "src/base/strings.h"
#include "src/store/rocks/clean_record.h"
#include "tests/testing/amount.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace percolator {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr size_t kRows = 5;

std::string ReadBytes(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void WriteBytes(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

class CleanCloseTest : public ::testing::Test {
 protected:
  // A store of five rows, closed.
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<Store>> store = OpenRocksStore(Dir());
    ASSERT_THAT(store, IsOk());
    ASSERT_THAT((*store)->CreateTable({"t", ""}), IsOk());
    for (size_t i = 0; i < kRows; ++i) {
      const std::vector<Mutation> cells = {Mutation::Set(Family::kData, "c", Timestamp(1), "value"),
                                           Mutation::Set(Family::kWrite, "c", Timestamp(2), "record")};
      ASSERT_THAT((*store)->Mutate({{"t", StrCat("row", i), {}, cells}})[0], IsOk());
    }
    ASSERT_THAT((*store)->Close(), IsOk());
  }

  std::string Dir() const { return dir_.path() + "/store"; }
  std::string Clean() const { return Dir() + "/CLEAN"; }

  std::vector<fs::path> FilesOf(const std::function<bool(const std::string&)>& wanted) const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(Dir() + "/rocksdb")) {
      if (wanted(entry.path().filename())) files.push_back(entry.path());
    }
    return files;
  }
  std::vector<fs::path> Tables() const {
    return FilesOf([](const std::string& name) { return fs::path(name).extension() == ".sst"; });
  }
  std::vector<fs::path> Logs() const {
    return FilesOf([](const std::string& name) { return fs::path(name).extension() == ".log"; });
  }
  fs::path Manifest() const {
    return FilesOf([](const std::string& name) { return name.rfind("MANIFEST-", 0) == 0; }).at(0);
  }

  // Opens and reads everything. OK only if all of it is there.
  absl::Status OpenAndReadAll() const {
    const absl::StatusOr<std::unique_ptr<Store>> store = OpenRocksStore(Dir());
    if (!store.ok()) return store.status();
    const absl::StatusOr<ScanPage> page =
        (*store)->Scan({.table = "t", .selectors = {{.family = Family::kData}, {.family = Family::kWrite}}});
    if (!page.ok()) return page.status();
    EXPECT_EQ(page->rows.size(), kRows);
    for (const Row& row : page->rows) EXPECT_EQ(row.cells.size(), 2u);
    return (*store)->Close();
  }
  void ExpectRefused(const std::string& reason) const {
    for (int i = 0; i < 2; ++i) {  // the second open fails too
      const absl::Status status = OpenAndReadAll();
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss));
      EXPECT_THAT(std::string(status.message()), HasSubstr(reason));
      EXPECT_THAT(std::string(status.message()), HasSubstr("restore the folder from a backup"));
    }
  }

  TempDir dir_;
};

TEST_F(CleanCloseTest, EverythingIsInTableFiles) {
  EXPECT_GE(Tables().size(), 3u);  // catalog, data, write
  for (const fs::path& log : Logs()) fs::remove(log);
  EXPECT_THAT(OpenAndReadAll(), IsOk());
}

TEST_F(CleanCloseTest, ACutLogLosesNothing) {
  for (const fs::path& log : Logs()) fs::resize_file(log, fs::file_size(log) / 2);
  EXPECT_THAT(OpenAndReadAll(), IsOk());
}

TEST_F(CleanCloseTest, AMissingFileIsRefused) {
  std::vector<fs::path> files = Tables();
  files.push_back(Manifest());
  files.push_back(Dir() + "/rocksdb/CURRENT");
  for (const fs::path& file : files) {
    SCOPED_TRACE(file);
    const std::string bytes = ReadBytes(file);
    fs::remove(file);
    ExpectRefused(StrCat(file.string(), " is missing"));
    WriteBytes(file, bytes);
  }
  EXPECT_THAT(OpenAndReadAll(), IsOk());
}

TEST_F(CleanCloseTest, AnEmptiedDatabaseIsRefused) {
  fs::remove_all(Dir() + "/rocksdb");
  fs::create_directory(Dir() + "/rocksdb");
  ExpectRefused("is missing");
}

TEST_F(CleanCloseTest, ACutFileIsRefused) {
  std::vector<fs::path> files = Tables();
  files.push_back(Manifest());
  for (const fs::path& file : files) {
    SCOPED_TRACE(file);
    const std::string bytes = ReadBytes(file);
    WriteBytes(file, bytes.substr(0, bytes.size() / 2));
    ExpectRefused(StrCat(bytes.size() / 2, " bytes instead of ", bytes.size()));
    WriteBytes(file, bytes);
  }
  EXPECT_THAT(OpenAndReadAll(), IsOk());
}

// Includes the length of the last entry: if it is wrong, RocksDB takes the entry for an unfinished one.
TEST_F(CleanCloseTest, AChangedByteOfTheManifestIsRefused) {
  const fs::path manifest = Manifest();
  const std::string bytes = ReadBytes(manifest);
  for (size_t i = 0; i < bytes.size(); i += Amount(41, 97)) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    WriteBytes(manifest, changed);
    ExpectRefused("have changed");
  }
  WriteBytes(manifest, bytes);
  EXPECT_THAT(OpenAndReadAll(), IsOk());
}

TEST_F(CleanCloseTest, AChangedByteOfATableFileNeverHidesARow) {
  const std::string spare = dir_.path() + "/spare";
  fs::copy(Dir(), spare, fs::copy_options::recursive);
  int reported = 0;
  for (const fs::path& table : Tables()) {
    const std::string bytes = ReadBytes(table);
    for (size_t i = 0; i < bytes.size(); i += Amount(211, 499)) {
      SCOPED_TRACE(StrCat(table.string(), " at ", i));
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ 0x10);
      WriteBytes(table, changed);
      const absl::Status status = OpenAndReadAll();
      if (!status.ok()) {
        EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss));
        ++reported;
      }
      fs::remove_all(Dir());
      fs::copy(spare, Dir(), fs::copy_options::recursive);
    }
  }
  EXPECT_GT(reported, 5);
}

TEST_F(CleanCloseTest, ADamagedRecordIsRefused) {
  const std::string bytes = ReadBytes(Clean());
  for (size_t i = 0; i < bytes.size(); i += 13) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 0x01);
    WriteBytes(Clean(), changed);
    ExpectRefused(Clean());
    WriteBytes(Clean(), bytes.substr(0, i));
    ExpectRefused(Clean());
  }
}

TEST_F(CleanCloseTest, AnOlderStateWithTheSameFilesIsRefused) {
  CleanRecord record = CleanRecord::Decode(ReadBytes(Clean())).value();
  record.sequence += 1000;
  WriteBytes(Clean(), record.Encode());
  ExpectRefused("was closed after write");
}

TEST_F(CleanCloseTest, WithoutTheRecordTheStoreIsOpened) {
  fs::remove(Clean());
  EXPECT_THAT(OpenAndReadAll(), IsOk());
  EXPECT_TRUE(fs::exists(Clean()));
}

TEST_F(CleanCloseTest, AnOpenStoreHasNoRecord) {
  const absl::StatusOr<std::unique_ptr<Store>> store = OpenRocksStore(Dir());
  ASSERT_THAT(store, IsOk());
  EXPECT_FALSE(fs::exists(Clean()));
  ASSERT_THAT((*store)->Close(), IsOk());
  EXPECT_TRUE(fs::exists(Clean()));
}

TEST_F(CleanCloseTest, RepeatedOpensAndClosesSucceed) {
  for (int i = 0; i < 5; ++i) ASSERT_THAT(OpenAndReadAll(), IsOk());
}

// ---- Without a clean close

class CrashImageTest : public CleanCloseTest {
 protected:
  // The folder as a crash leaves it: all rows are in table files, and again, newer, in the log.
  void SetUp() override {
    CleanCloseTest::SetUp();
    const absl::StatusOr<std::unique_ptr<Store>> store = OpenRocksStore(Dir());
    ASSERT_THAT(store, IsOk());
    for (size_t i = 0; i < kRows; ++i) {
      const std::vector<Mutation> cells = {Mutation::Set(Family::kData, "c", Timestamp(1), "newer value")};
      ASSERT_THAT((*store)->Mutate({{"t", StrCat("row", i), {}, cells}})[0], IsOk());
    }
    fs::copy(Dir(), dir_.path() + "/image", fs::copy_options::recursive);
    ASSERT_THAT((*store)->Close(), IsOk());
    fs::remove_all(Dir());
    fs::rename(dir_.path() + "/image", Dir());
    ASSERT_FALSE(fs::exists(Clean()));
  }
};

TEST_F(CrashImageTest, ACrashImageIsRecovered) { EXPECT_THAT(OpenAndReadAll(), IsOk()); }

TEST_F(CrashImageTest, ALostDatabaseIsRefused) {
  fs::remove(Dir() + "/rocksdb/CURRENT");
  ExpectRefused("has lost its database");
}

TEST_F(CrashImageTest, AnEmptiedDatabaseBesideAnOracleIsRefused) {
  std::ofstream(Dir() + "/oracle") << "an oracle's file";
  fs::remove_all(Dir() + "/rocksdb");
  fs::create_directory(Dir() + "/rocksdb");
  ExpectRefused("has lost its database");
}

TEST_F(CrashImageTest, AMissingTableFileIsReported) {
  for (const fs::path& table : Tables()) {
    const std::string bytes = ReadBytes(table);
    fs::remove(table);
    EXPECT_THAT(OpenAndReadAll(), StatusIs(absl::StatusCode::kDataLoss));
    WriteBytes(table, bytes);
  }
}

// ---- Rights on files, and locks

class RightsTest : public CleanCloseTest {
 protected:
  static bool OwnerOnly(const fs::path& path) {
    const fs::perms others = fs::perms::group_all | fs::perms::others_all;
    return (fs::status(path).permissions() & others) == fs::perms::none;
  }
  // A lock as any user can take it that may read the folder.
  int LockFolder() const {
    const int fd = open(Dir().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    EXPECT_EQ(flock(fd, LOCK_EX | LOCK_NB), 0);
    return fd;
  }
};

TEST_F(RightsTest, FoldersAndFilesAreAccessibleToTheOwnerOnly) {
  const absl::StatusOr<std::unique_ptr<Store>> store = OpenRocksStore(Dir());
  ASSERT_THAT(store, IsOk());
  const auto expect_all_private = [&] {
    EXPECT_TRUE(OwnerOnly(Dir()));
    for (const auto& entry : fs::recursive_directory_iterator(Dir())) EXPECT_TRUE(OwnerOnly(entry)) << entry;
  };
  expect_all_private();
  ASSERT_THAT((*store)->Close(), IsOk());
  expect_all_private();
}

TEST_F(RightsTest, AFolderOpenToOthersKeepsItsRightsButItsLockFileDoesNot) {
  fs::permissions(Dir(), fs::perms(0755));
  fs::permissions(Dir() + "/LOCK", fs::perms(0644));
  EXPECT_THAT(OpenAndReadAll(), IsOk());
  EXPECT_EQ(fs::status(Dir()).permissions(), fs::perms(0755));
  EXPECT_TRUE(OwnerOnly(Dir() + "/LOCK"));
}

TEST_F(RightsTest, ALockOfAReaderOfTheFolderDoesNotCount) {
  const int stranger = LockFolder();
  EXPECT_THAT(OpenAndReadAll(), IsOk());
  close(stranger);
}

TEST_F(RightsTest, AnOlderVersionThatHasTheFolderOpenKeepsItUntilItCloses) {
  fs::remove(Dir() + "/LOCK");  // older versions leave no such file
  const int older = LockFolder();
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(OpenAndReadAll(), StatusIs(absl::StatusCode::kFailedPrecondition));
  }
  close(older);
  EXPECT_THAT(OpenAndReadAll(), IsOk());
}

TEST_F(RightsTest, AnOlderVersionIsKeptOut) {
  const absl::StatusOr<std::unique_ptr<Store>> store = OpenRocksStore(Dir());
  ASSERT_THAT(store, IsOk());
  const int fd = open(Dir().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  EXPECT_NE(flock(fd, LOCK_EX | LOCK_NB), 0);
  close(fd);
}

// ---- The record

// These bytes are on users' disks: see docs/format.md.
TEST(CleanRecordTest, Golden) {
  const CleanRecord record{42, {{"000012.sst", 1027, {}}, {"CURRENT", 16, 0xfc296185}, {"MANIFEST-000009", 345, 0x1a}}};
  const std::string text =
      "percolator clean close 1\n"
      "sequence 42\n"
      "000012.sst 1027 -\n"
      "CURRENT 16 fc296185\n"
      "MANIFEST-000009 345 0000001a\n"
      "crc 7543b03f\n";
  EXPECT_EQ(record.Encode(), text);
  const std::optional<CleanRecord> decoded = CleanRecord::Decode(text);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->Encode(), text);
}

TEST(CleanRecordTest, AMalformedRecordIsNotRead) {
  for (const char* text :
       {"", "\n\n\n\n", "percolator clean close 1\n", "percolator clean close 2\nsequence 1\ncrc 0\n",
        "percolator clean close 1\nsequence 42\ncrc 00000000\n"}) {
    EXPECT_FALSE(CleanRecord::Decode(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace percolator
