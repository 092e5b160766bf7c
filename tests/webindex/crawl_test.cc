// SPDX-License-Identifier: Apache-2.0

// The crawl on a cluster without observers: compares the tables pages and files with the folder.

#include "apps/webindex/crawl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "apps/webindex/tables.h"
#include "apps/webindex/terms.h"
#include "percolator/spi/assemble.h"
#include "percolator/spi/coordinator.h"
#include "percolator/spi/store.h"
#include "tests/harness/hooked_store.h"
#include "tests/harness/test_oracle.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/webindex/folder.h"

namespace webindex {
namespace {

namespace fs = std::filesystem;
using percolator::IsOk;
using percolator::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

class CrawlTest : public FolderTest {
 protected:
  CrawlResult Run() {
    const absl::StatusOr<CrawlResult> result = crawl_->Run();
    EXPECT_THAT(result, IsOk());
    return result.value_or(CrawlResult());
  }

  std::optional<std::string> Cell(percolator::CellView cell) { return *cluster_.GetSnapshot()->Get(cell); }
  FileStat Stat(const std::string& url) {
    FileStat stat;
    EXPECT_TRUE(stat.ParseFromString(Cell(kStat.At(url)).value_or("\xff")));
    return stat;
  }
};

// Waits longer than the crawl's tolerance for the clock of files.
void WaitUntilFilesAreOld() { std::this_thread::sleep_for(std::chrono::milliseconds(250)); }

TEST_F(CrawlTest, LoadsEveryFileBelowTheFolder) {
  Write("a.html", "A");
  Write("x/y/b.htm", "B");
  Write("x/s.css", "p {}");
  const CrawlResult result = Run();
  EXPECT_EQ(result.loaded, 3u);
  EXPECT_EQ(result.problems, 0u);
  EXPECT_THAT(InTables(),
              ElementsAre(Pair("a.html", "A"), Pair("x/s.css", StateOf("x/s.css", "p {}")), Pair("x/y/b.htm", "B")));
}

TEST_F(CrawlTest, AFileThatHasNotChangedIsNotReadAgain) {
  Write("a.html", "A");
  WaitUntilFilesAreOld();
  EXPECT_EQ(Run().loaded, 1u);
  const int64_t loaded = Stat("a.html").loaded_micros();
  EXPECT_EQ(Run().unchanged, 1u);
  EXPECT_EQ(Stat("a.html").loaded_micros(), loaded);
}

// Within one step of the clock of files a change is not visible in the time.
TEST_F(CrawlTest, AFileThatHasJustChangedIsReadAgain) {
  const auto is_young = [&] {
    return Stat("a.html").loaded_micros() < Stat("a.html").changed_nanos() / 1000 + 100'000;
  };
  int tries = 0;
  do {  // until the machine is fast enough
    Write("a.html", std::to_string(++tries));
    EXPECT_EQ(Run().loaded, 1u);
  } while (!is_young() && tries < 1000);
  const int64_t loaded = Stat("a.html").loaded_micros();
  EXPECT_EQ(Run().unchanged, 1u);
  EXPECT_GT(Stat("a.html").loaded_micros(), loaded);
}

TEST_F(CrawlTest, ATouchedFileIsNotWrittenAgain) {
  Write("a.html", "A");
  Run();
  Touch("a.html", 1'500'000'000);
  EXPECT_EQ(Run().unchanged, 1u);
  EXPECT_EQ(Stat("a.html").modified_nanos(), 1'500'000'000'000'000'000);
}

TEST_F(CrawlTest, EditsAndDeletions) {
  Write("a.html", "A");
  Write("b.html", "B");
  Write("c.txt", "C");
  Run();
  Write("a.html", "AA");
  fs::remove(path("b.html"));
  fs::remove(path("c.txt"));
  const CrawlResult result = Run();
  EXPECT_EQ(result.loaded, 1u);
  EXPECT_EQ(result.deleted, 2u);
  EXPECT_THAT(InTables(), ElementsAre(Pair("a.html", "AA")));
  EXPECT_EQ(Cell(kStat.At("b.html")), std::nullopt);
  EXPECT_EQ(Cell(kFileStat.At("c.txt")), std::nullopt);
}

// Same size, same time of modification.
TEST_F(CrawlTest, AReplacementOfAFileIsNoticed) {
  Write("a.html", "A");
  Write("b.html", "B");
  Touch("a.html", 1'500'000'000);
  Touch("b.html", 1'500'000'000);
  WaitUntilFilesAreOld();
  Run();
  fs::rename(path("b.html"), path("a.html"));
  Run();
  EXPECT_THAT(InTables(), ElementsAre(Pair("a.html", "B")));
}

TEST_F(CrawlTest, AFileBecomesAFolderAndBack) {
  Write("a.html", "A");
  Run();
  fs::remove(path("a.html"));
  Write("a.html/b.html", "B");
  ASSERT_THAT(crawl_->Refresh("a.html"), IsOk());
  EXPECT_THAT(InTables(), ElementsAre(Pair("a.html/b.html", "B")));
  fs::remove_all(path("a.html"));
  Write("a.html", "A");
  ASSERT_THAT(crawl_->Refresh("a.html"), IsOk());
  EXPECT_THAT(InTables(), ElementsAre(Pair("a.html", "A")));
}

TEST_F(CrawlTest, SpecialFilesAreSkipped) {
  Write("a.html", "A");
  Write(".hidden.html", "no");
  Write(".git/b.html", "no");
  Write("../outside.html", "no");
  Write("../outside/c.html", "no");
  fs::create_symlink("../outside.html", path("link.html"));
  fs::create_symlink("/etc/passwd", path("passwd.txt"));
  fs::create_directory_symlink("../outside", path("linked"));
  fs::create_directory_symlink(".", path("circle"));
  ASSERT_EQ(mkfifo(path("pipe.html").c_str(), 0600), 0);
  const CrawlResult result = Run();
  EXPECT_EQ(result.problems, 5u);
  EXPECT_THAT(InTables(), ElementsAre(Pair("a.html", "A")));
  for (const char* name : {"link.html", "linked", "linked/c.html", "circle/a.html", "pipe.html", ".git/b.html",
                           "../outside.html", "x/../../outside.html", "/etc/passwd"}) {
    EXPECT_THAT(crawl_->Refresh(name), IsOk()) << name;
  }
  EXPECT_THAT(InTables(), ElementsAre(Pair("a.html", "A")));
}

TEST_F(CrawlTest, InvalidNamesAreReported) {
  Write("a\nb.html", "A");
  Write("\xff.html", "B");
  Write("\u00e4.html", "C");
  EXPECT_EQ(Run().problems, 2u);
  EXPECT_THAT(InTables(), ElementsAre(Pair("\u00e4.html", "C")));
  EXPECT_THAT(problems_, testing::Each(HasSubstr("the name is not valid")));
}

// Root can read everything, so the test becomes another user for a while.
class NotRoot {
 public:
  explicit NotRoot(const std::string& folder) {
    if (user_ != 0) return;
    constexpr uid_t kNobody = 65534;
    EXPECT_EQ(chown(folder.c_str(), kNobody, kNobody), 0);
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      EXPECT_EQ(chown(entry.path().c_str(), kNobody, kNobody), 0);
    }
    EXPECT_EQ(seteuid(kNobody), 0);
  }
  ~NotRoot() { EXPECT_EQ(seteuid(user_), 0); }

 private:
  const uid_t user_ = geteuid();
};

TEST_F(CrawlTest, AnUnreadableFileStaysAsItWas) {
  Write("a.html", "A");
  Write("x/b.html", "B");
  Write("c.html", "C");
  Run();
  Write("a.html", "AA");
  Write("x/b.html", "BB");
  Write("c.html", "CC");
  fs::permissions(path("a.html"), fs::perms::none);
  CrawlResult result;
  {
    const NotRoot not_root(dir_.path());
    fs::permissions(path("x"), fs::perms::none);
    result = Run();
    fs::permissions(path("x"), fs::perms::owner_all);
  }
  EXPECT_EQ(result.loaded, 1u);
  EXPECT_EQ(result.problems, 3u);
  EXPECT_THAT(problems_, testing::UnorderedElementsAre(HasSubstr("a.html"), HasSubstr("x: cannot be listed"),
                                                       HasSubstr("x/b.html")));
  EXPECT_THAT(InTables(), ElementsAre(Pair("a.html", "A"), Pair("c.html", "CC"), Pair("x/b.html", "B")));
}

TEST_F(CrawlTest, ALargePageIsCutAndReported) {
  Write("a.html", std::string(kMaxContents + 1, 'x'));
  Write("b.bin", std::string(kMaxContents + 1, 'x'));
  EXPECT_EQ(Run().problems, 1u);
  EXPECT_EQ(Cell(kContents.At("a.html"))->size(), kMaxContents);
  EXPECT_EQ(Stat("a.html").bytes(), kMaxContents + 1);
  EXPECT_EQ(Cell(kState.At("b.bin")), FileStateOf("b.bin", std::string(kMaxContents + 1, 'x')).SerializeAsString());
  EXPECT_THAT(problems_, ElementsAre(HasSubstr("a.html: too large")));
}

TEST_F(CrawlTest, ExcerptsAreTheFirstWordsOfTexts) {
  EXPECT_EQ(FileStateOf("a.txt", " some\n\n words \xff").excerpt(), "some words \xef\xbf\xbd");
  EXPECT_EQ(FileStateOf("a.inc", "<b>some</b> <!-- no --> words").excerpt(), "some words");
  EXPECT_EQ(FileStateOf("a.png", "some words").excerpt(), "");
  const std::string cut = FileStateOf("a.txt", "x" + std::string(300, 'y') + "\u00e4").excerpt();
  EXPECT_EQ(cut.size(), kMaxExcerptBytes);
  std::string umlauts = "x";
  for (int i = 0; i < 3000; ++i) umlauts += "\u00e4";
  EXPECT_EQ(FileStateOf("a.txt", umlauts).excerpt(), umlauts.substr(0, kMaxExcerptBytes - 1));
}

TEST_F(CrawlTest, OnlyListedFilesAreLoaded) {
  Write("a.html", "A");
  Write("x/b.html", "B");
  Write("c.html", "C");
  Write("../d.html", "D");
  Run();
  options_.only_listed = true;
  options_.base = "https://docs.example.org/";
  options_.list = {"a.html", "https://docs.example.org/x/b.html", "https://elsewhere.org/c.html", "../d.html",
                   "gone.html"};
  Open();
  EXPECT_EQ(Run().deleted, 1u);
  EXPECT_THAT(InTables(), ElementsAre(Pair("a.html", "A"), Pair("x/b.html", "B")));
  Write("x/b.html", "BB");
  EXPECT_THAT(crawl_->Refresh("x"), IsOk());
  EXPECT_THAT(crawl_->Refresh("c.html"), IsOk());
  EXPECT_THAT(InTables(), ElementsAre(Pair("a.html", "A"), Pair("x/b.html", "BB")));
}

TEST_F(CrawlTest, AMissingFolderDeletesNothing) {
  Write("a.html", "A");
  Run();
  fs::rename(folder(), folder() + ".away");
  EXPECT_THAT(crawl_->Run(), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(crawl_->Refresh("a.html"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(InTables(), ElementsAre(Pair("a.html", "A")));
}

TEST_F(CrawlTest, ManyFilesAreLoadedByThreads) {
  for (int i = 0; i < 500; ++i)
    Write("d" + std::to_string(i % 7) + "/" + std::to_string(i) + ".html", std::to_string(i));
  EXPECT_EQ(Run().loaded, 500u);
  EXPECT_EQ(InTables(), InFolder());
  fs::remove_all(path("d3"));
  EXPECT_THAT(crawl_->Refresh("d3"), IsOk());
  EXPECT_EQ(InTables(), InFolder());
}

// Of overlapping runs the last reading counts, even if a file returns to an earlier state. The run that notices that a
// file is gone finds it neither in the tables nor in the folder, while another run, which has read it before, is about
// to commit.
TEST_F(CrawlTest, AFileThatIsDeletedBetweenReadingAndCommitIsNotLoaded) {
  for (const auto& [deleted, noticed] : {std::pair("x/a.html", "x/a.html"), std::pair("x", "x"), std::pair("x", "")}) {
    SCOPED_TRACE(noticed);
    const auto memory = percolator::NewMemoryStore();
    percolator::HookedStore store(percolator::Borrow(memory.get()));
    percolator::TestOracle oracle;
    cluster_ = percolator::Assemble(
                   {percolator::Borrow(&store), percolator::Borrow(&oracle), percolator::NewLocalCoordinator(&oracle)})
                   .value();
    ASSERT_THAT(CreateTables(cluster_), IsOk());
    Open();
    Write("x/a.html", "A");
    bool interfered = false;
    store.together = [&](const percolator::JointMutation& mutation, percolator::Oracle* from) {
      if (!std::exchange(interfered, true)) {
        fs::remove_all(path(deleted));
        EXPECT_THAT(crawl_->Refresh(noticed), IsOk());
      }
      return memory->MutateTogether(mutation, from);
    };
    EXPECT_THAT(crawl_->Refresh("x/a.html"), IsOk());
    EXPECT_TRUE(interfered);
    EXPECT_THAT(InTables(), IsEmpty());
    EXPECT_THAT(cluster_.Close(), IsOk());
  }
}

TEST_F(CrawlTest, ConcurrentRefreshesEndWithTheStateOfTheFolder) {
  for (int round = 0; round < 30; ++round) {
    std::atomic<bool> enough = false;
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        while (!enough) EXPECT_THAT(crawl_->Refresh("a.html"), IsOk());
      });
    }
    for (int i = 0; i < 20; ++i) {
      Replace("a.html", std::string(1, static_cast<char>('A' + i % 3)));
      if (i % 7 == 6) fs::remove(path("a.html"));
    }
    enough = true;
    threads.emplace_back([&] { EXPECT_THAT(crawl_->Refresh("a.html"), IsOk()); });
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(InTables(), InFolder()) << "round " << round;
  }
}

// Files come and go while they are listed and read: no error, no crash, and a correct result in the end.
TEST_F(CrawlTest, FilesThatChangeWhileTheyAreRead) {
  constexpr int kChanges = 3000;
  std::atomic<int> changes = 0;
  std::thread writer([&] {
    for (int i = 0; i < kChanges; ++i, ++changes) {
      const std::string name = "x" + std::to_string(i % 5) + "/" + std::to_string(i % 13) + ".html";
      if (i % 3 == 0) {
        std::error_code error;
        fs::remove_all(path("x" + std::to_string(i % 5)), error);
      } else {
        Write(name, std::string(static_cast<size_t>(i) % 9000, 'x'));
      }
    }
  });
  while (changes < kChanges) Run();
  writer.join();
  Run();
  EXPECT_EQ(InTables(), InFolder());
}

}  // namespace
}  // namespace webindex
