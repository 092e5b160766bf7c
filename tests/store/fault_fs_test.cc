// SPDX-License-Identifier: Apache-2.0

#include "tests/store/fault_fs.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/temp_dir.h"

namespace percolator {
namespace {

using rocksdb::FileOptions;
using rocksdb::FSDirectory;
using rocksdb::FSRandomAccessFile;
using rocksdb::FSWritableFile;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using Loss = FaultFs::Loss;
using Fault = FaultFs::Fault;

class FaultFsTest : public ::testing::Test {
 protected:
  FaultFsTest() {
    EXPECT_TRUE(fs_.CreateDir(folder_.path() + "/d", IOOptions(), nullptr).ok());
    EXPECT_TRUE(fs_.NewDirectory(folder_.path() + "/d", IOOptions(), &directory_, nullptr).ok());
  }

  std::string Path(const std::string& name) const { return folder_.path() + "/d/" + name; }

  std::unique_ptr<FSWritableFile> Create(const std::string& name) {
    std::unique_ptr<FSWritableFile> file;
    EXPECT_TRUE(fs_.NewWritableFile(Path(name), FileOptions(), &file, nullptr).ok());
    return file;
  }
  std::unique_ptr<FSWritableFile> CreateDurably(const std::string& name, const std::string& bytes) {
    std::unique_ptr<FSWritableFile> file = Create(name);
    EXPECT_TRUE(Append(file, bytes).ok());
    EXPECT_TRUE(Sync(file).ok());
    EXPECT_TRUE(SyncDirectory().ok());
    return file;
  }
  static IOStatus Append(const std::unique_ptr<FSWritableFile>& file, const std::string& bytes) {
    return file->Append(bytes, IOOptions(), nullptr);
  }
  static IOStatus Sync(const std::unique_ptr<FSWritableFile>& file) { return file->Sync(IOOptions(), nullptr); }
  IOStatus SyncDirectory() { return directory_->FsyncWithDirOptions(IOOptions(), nullptr, rocksdb::DirFsyncOptions()); }
  IOStatus Rename(const std::string& from, const std::string& to) {
    return fs_.RenameFile(Path(from), Path(to), IOOptions(), nullptr);
  }
  IOStatus Delete(const std::string& name) { return fs_.DeleteFile(Path(name), IOOptions(), nullptr); }

  bool Exists(const std::string& name) const { return std::filesystem::exists(Path(name)); }
  std::string Contents(const std::string& name) const {
    std::ifstream in(Path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }

  TempDir folder_;
  FaultFs fs_;
  std::unique_ptr<FSDirectory> directory_;
};

TEST_F(FaultFsTest, SyncedBytesSurviveAndUnsyncedDoNot) {
  auto file = CreateDurably("f", "synced");
  ASSERT_TRUE(Append(file, "lost").ok());
  EXPECT_EQ(Contents("f"), "syncedlost");
  fs_.PowerLoss(Loss::kAll, 1);
  EXPECT_EQ(Contents("f"), "synced");
}

TEST_F(FaultFsTest, FlushRangeSyncAndCloseMakeNothingDurable) {
  auto file = CreateDurably("f", "synced");
  ASSERT_TRUE(Append(file, "lost").ok());
  ASSERT_TRUE(file->Flush(IOOptions(), nullptr).ok());
  ASSERT_TRUE(file->RangeSync(0, 10, IOOptions(), nullptr).ok());
  ASSERT_TRUE(file->Close(IOOptions(), nullptr).ok());
  fs_.PowerLoss(Loss::kAll, 1);
  EXPECT_EQ(Contents("f"), "synced");
}

TEST_F(FaultFsTest, CutKeepsEveryLengthOfTheUnsyncedTail) {
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    auto file = CreateDurably("f", "synced");
    ASSERT_TRUE(Append(file, "abc").ok());
    fs_.PowerLoss(Loss::kCut, seed);
    fs_.PowerOn();
    ASSERT_TRUE(fs_.NewDirectory(folder_.path() + "/d", IOOptions(), &directory_, nullptr).ok());
    seen.insert(Contents("f"));
  }
  EXPECT_THAT(seen, ::testing::ElementsAre("synced", "synceda", "syncedab", "syncedabc"));
}

TEST_F(FaultFsTest, GarbageTouchesOnlyTheUnsyncedTail) {
  const std::string synced(5000, 's');
  const std::string tail(20000, 't');
  bool garbled = false;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    auto file = CreateDurably("f", synced);
    ASSERT_TRUE(Append(file, tail).ok());
    fs_.PowerLoss(Loss::kGarbage, seed);
    fs_.PowerOn();
    ASSERT_TRUE(fs_.NewDirectory(folder_.path() + "/d", IOOptions(), &directory_, nullptr).ok());
    const std::string found = Contents("f");
    ASSERT_GE(found.size(), synced.size());
    ASSERT_LE(found.size(), synced.size() + tail.size());
    EXPECT_EQ(found.substr(0, synced.size()), synced);
    garbled = garbled || found.find_first_not_of('t', synced.size()) != std::string::npos;
  }
  EXPECT_TRUE(garbled);
}

TEST_F(FaultFsTest, FileWithoutDirectorySyncVanishesThoughItsBytesAreSynced) {
  auto file = Create("f");
  ASSERT_TRUE(Append(file, "synced").ok());
  ASSERT_TRUE(Sync(file).ok());
  fs_.PowerLoss(Loss::kAll, 1);
  EXPECT_FALSE(Exists("f"));
}

TEST_F(FaultFsTest, SyncOfAnotherDirectoryDoesNotKeepTheName) {
  ASSERT_TRUE(fs_.CreateDir(folder_.path() + "/other", IOOptions(), nullptr).ok());
  std::unique_ptr<FSDirectory> other;
  ASSERT_TRUE(fs_.NewDirectory(folder_.path() + "/other", IOOptions(), &other, nullptr).ok());
  auto file = Create("f");
  ASSERT_TRUE(Sync(file).ok());
  ASSERT_TRUE(other->Fsync(IOOptions(), nullptr).ok());
  fs_.PowerLoss(Loss::kAll, 1);
  EXPECT_FALSE(Exists("f"));
}

TEST_F(FaultFsTest, UnsyncedRenameIsUndoneWithTheFileItOverwrote) {
  CreateDurably("CURRENT", "old");
  CreateDurably("tmp", "new");
  ASSERT_TRUE(Rename("tmp", "CURRENT").ok());
  EXPECT_EQ(Contents("CURRENT"), "new");
  fs_.PowerLoss(Loss::kAll, 1);
  EXPECT_EQ(Contents("CURRENT"), "old");
  EXPECT_EQ(Contents("tmp"), "new");
}

TEST_F(FaultFsTest, SyncedRenameStays) {
  CreateDurably("CURRENT", "old");
  CreateDurably("tmp", "new");
  ASSERT_TRUE(Rename("tmp", "CURRENT").ok());
  ASSERT_TRUE(SyncDirectory().ok());
  fs_.PowerLoss(Loss::kAll, 1);
  EXPECT_EQ(Contents("CURRENT"), "new");
  EXPECT_FALSE(Exists("tmp"));
}

TEST_F(FaultFsTest, RenamedFileKeepsItsOwnDurableSize) {
  auto file = CreateDurably("tmp", "synced");
  ASSERT_TRUE(Append(file, "lost").ok());
  ASSERT_TRUE(Rename("tmp", "f").ok());
  ASSERT_TRUE(SyncDirectory().ok());
  fs_.PowerLoss(Loss::kAll, 1);
  EXPECT_EQ(Contents("f"), "synced");
}

TEST_F(FaultFsTest, UnsyncedDeletionIsUndone) {
  auto file = CreateDurably("f", "synced");
  ASSERT_TRUE(Append(file, "lost").ok());
  ASSERT_TRUE(Delete("f").ok());
  fs_.PowerLoss(Loss::kAll, 1);
  EXPECT_EQ(Contents("f"), "synced");
}

TEST_F(FaultFsTest, SyncedDeletionStays) {
  CreateDurably("f", "synced");
  ASSERT_TRUE(Delete("f").ok());
  ASSERT_TRUE(SyncDirectory().ok());
  fs_.PowerLoss(Loss::kAll, 1);
  EXPECT_FALSE(Exists("f"));
}

TEST_F(FaultFsTest, PartlyLostNamesAreAPrefixOfTheirHistory) {
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    for (const char* name : {"1", "2", "3"}) ASSERT_TRUE(Sync(Create(name)).ok());
    fs_.PowerLoss(Loss::kCut, seed);
    fs_.PowerOn();
    ASSERT_TRUE(fs_.NewDirectory(folder_.path() + "/d", IOOptions(), &directory_, nullptr).ok());
    std::string found;
    for (const char* name : {"1", "2", "3"}) {
      if (Exists(name)) found += name;
      std::filesystem::remove(Path(name));
    }
    seen.insert(found);
  }
  EXPECT_THAT(seen, ::testing::ElementsAre("", "1", "12", "123"));
}

TEST_F(FaultFsTest, AnExistingFileIsDurable) {
  std::ofstream(Path("f")) << "before";
  std::unique_ptr<FSWritableFile> file;
  ASSERT_TRUE(fs_.ReopenWritableFile(Path("f"), FileOptions(), &file, nullptr).ok());
  ASSERT_TRUE(Append(file, "lost").ok());
  fs_.PowerLoss(Loss::kAll, 1);
  EXPECT_EQ(Contents("f"), "before");
}

TEST_F(FaultFsTest, WithoutPowerEverythingFailsAndOldHandlesStayDead) {
  auto file = CreateDurably("f", "synced");
  std::unique_ptr<FSRandomAccessFile> reader;
  ASSERT_TRUE(fs_.NewRandomAccessFile(Path("f"), FileOptions(), &reader, nullptr).ok());
  fs_.PowerLoss(Loss::kAll, 1);
  std::unique_ptr<FSWritableFile> other;
  EXPECT_FALSE(fs_.NewWritableFile(Path("g"), FileOptions(), &other, nullptr).ok());
  EXPECT_FALSE(Delete("f").ok());
  EXPECT_FALSE(Rename("f", "g").ok());
  fs_.PowerOn();
  EXPECT_FALSE(Append(file, "x").ok());
  EXPECT_FALSE(Sync(file).ok());
  EXPECT_FALSE(SyncDirectory().ok());
  char scratch[6];
  rocksdb::Slice result;
  EXPECT_FALSE(reader->Read(0, 6, IOOptions(), &result, scratch, nullptr).ok());
  file->Close(IOOptions(), nullptr).PermitUncheckedError();
  file.reset();
  EXPECT_EQ(Contents("f"), "synced");
  EXPECT_TRUE(Append(Create("g"), "x").ok());
}

TEST_F(FaultFsTest, TransientFaultHitsExactlyTheNth) {
  auto file = CreateDurably("f", "");
  fs_.Inject({.kind = Fault::Kind::kWriteError, .nth = 3});
  EXPECT_TRUE(Append(file, "1").ok());
  EXPECT_TRUE(Append(file, "2").ok());
  EXPECT_TRUE(Sync(file).ok());  // not counted
  EXPECT_TRUE(Append(file, "3").IsIOError());
  EXPECT_TRUE(Append(file, "4").ok());
  EXPECT_EQ(Contents("f"), "124");
  EXPECT_EQ(fs_.Selected(), 4u);
  EXPECT_EQ(fs_.Failed(), 1u);
}

TEST_F(FaultFsTest, PersistentFaultLastsUntilHealed) {
  auto file = CreateDurably("f", "");
  fs_.Inject({.kind = Fault::Kind::kWriteError, .nth = 2, .persistent = true});
  EXPECT_TRUE(Append(file, "1").ok());
  EXPECT_FALSE(Append(file, "2").ok());
  EXPECT_FALSE(Append(file, "3").ok());
  EXPECT_FALSE(Rename("f", "g").ok());
  std::unique_ptr<FSWritableFile> other;
  EXPECT_FALSE(fs_.NewWritableFile(Path("h"), FileOptions(), &other, nullptr).ok());
  EXPECT_FALSE(Exists("h"));
  EXPECT_EQ(fs_.Failed(), 4u);
  fs_.Heal();
  EXPECT_TRUE(Append(file, "4").ok());
  EXPECT_EQ(Contents("f"), "14");
}

TEST_F(FaultFsTest, FullDiskWritesShortAndHasNoFreeSpace) {
  auto file = CreateDurably("f", "");
  fs_.Inject({.kind = Fault::Kind::kNoSpace, .persistent = true});
  const IOStatus status = Append(file, "abcdef");
  EXPECT_TRUE(status.IsNoSpace()) << status.ToString();
  EXPECT_EQ(Contents("f"), "abc");
  uint64_t free = 1;
  EXPECT_TRUE(fs_.GetFreeSpace(Path("f"), IOOptions(), &free, nullptr).ok());
  EXPECT_EQ(free, 0u);
  fs_.Heal();
  EXPECT_TRUE(fs_.GetFreeSpace(Path("f"), IOOptions(), &free, nullptr).ok());
  EXPECT_GT(free, 0u);
}

TEST_F(FaultFsTest, BytesOfAFailedSyncAreNotDurableEvenByALaterSync) {
  auto file = CreateDurably("f", "synced");
  ASSERT_TRUE(Append(file, "lost").ok());
  fs_.Inject({.kind = Fault::Kind::kSyncError});
  EXPECT_TRUE(Sync(file).IsIOError());
  EXPECT_TRUE(Sync(file).ok());
  fs_.PowerLoss(Loss::kAll, 1);
  EXPECT_EQ(Contents("f"), "synced");
}

TEST_F(FaultFsTest, FailedDirectorySyncLeavesNamesUnsynced) {
  auto file = Create("f");
  fs_.Inject({.kind = Fault::Kind::kSyncError});
  EXPECT_FALSE(SyncDirectory().ok());
  fs_.PowerLoss(Loss::kAll, 1);
  EXPECT_FALSE(Exists("f"));
}

TEST_F(FaultFsTest, ReadErrorHitsReadsOnly) {
  auto file = CreateDurably("f", "synced");
  std::unique_ptr<FSRandomAccessFile> reader;
  ASSERT_TRUE(fs_.NewRandomAccessFile(Path("f"), FileOptions(), &reader, nullptr).ok());
  fs_.Inject({.kind = Fault::Kind::kReadError});
  EXPECT_TRUE(Append(file, "x").ok());
  char scratch[6];
  rocksdb::Slice result;
  EXPECT_TRUE(reader->Read(0, 6, IOOptions(), &result, scratch, nullptr).IsIOError());
  EXPECT_TRUE(reader->Read(0, 6, IOOptions(), &result, scratch, nullptr).ok());
  EXPECT_EQ(result.ToString(), "synced");
}

TEST_F(FaultFsTest, FaultCanBeRestrictedToAKindOfFile) {
  auto wal = CreateDurably("000004.log", "");
  auto table = CreateDurably("000005.sst", "");
  auto manifest = CreateDurably("MANIFEST-000001", "");
  fs_.Inject({.kind = Fault::Kind::kWriteError, .persistent = true, .files = FaultFs::FileKind::kTable});
  EXPECT_TRUE(Append(wal, "x").ok());
  EXPECT_FALSE(Append(table, "x").ok());
  EXPECT_TRUE(Append(manifest, "x").ok());
  fs_.Inject({.kind = Fault::Kind::kWriteError, .persistent = true, .files = FaultFs::FileKind::kManifest});
  EXPECT_TRUE(Append(wal, "x").ok());
  EXPECT_FALSE(Append(manifest, "x").ok());
}

TEST_F(FaultFsTest, PowerCutComesJustBeforeTheNthOperation) {
  auto file = CreateDurably("f", "");
  fs_.Inject({.kind = Fault::Kind::kPowerCut, .nth = 4});
  EXPECT_TRUE(Append(file, "a").ok());
  EXPECT_TRUE(Sync(file).ok());
  EXPECT_TRUE(Append(file, "b").ok());
  EXPECT_FALSE(Sync(file).ok());
  EXPECT_FALSE(Append(file, "c").ok());
  fs_.PowerLoss(Loss::kAll, 1);
  EXPECT_EQ(Contents("f"), "a");
}

}  // namespace
}  // namespace percolator
