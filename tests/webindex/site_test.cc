// SPDX-License-Identifier: Apache-2.0

#include "tests/webindex/site.h"

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/temp_dir.h"
#include "tests/webindex/batch.h"

namespace webindex {
namespace {

using percolator::TempDir;

// All files with their contents and times.
std::map<std::string, std::string> FilesOf(const std::string& folder) {
  std::map<std::string, std::string> files;
  const BatchInput input = ReadFolder(folder, kSiteBase);
  for (const auto& [path, page] : input.pages) files[path] = page.contents + std::to_string(page.modified_nanos);
  for (const auto& [path, file] : input.files) {
    files[path] = file.state.ShortDebugString() + std::to_string(file.modified_nanos);
  }
  return files;
}

TEST(SiteTest, TheSameSeedMakesTheSameSite) {
  std::map<std::string, std::string> first;
  for (int i = 0; i < 2; ++i) {
    const TempDir dir;
    Site site(dir.path() + "/site", 7);
    site.AddPages(10);
    for (int change = 0; change < 50; ++change) site.Change();
    EXPECT_GT(FilesOf(site.folder()).size(), 5U);
    if (i == 0) first = FilesOf(site.folder());
    EXPECT_EQ(FilesOf(site.folder()), first);
  }
}

// Otherwise an index that is notified of the paths could not follow.
TEST(SiteTest, AChangeReturnsTheChangedPaths) {
  const TempDir dir;
  Site site(dir.path() + "/site", 3);
  site.AddPages(10);
  std::map<std::string, std::string> before = FilesOf(site.folder());
  for (int change = 0; change < 300; ++change) {
    const std::vector<std::string> reported = site.Change();
    const std::map<std::string, std::string> after = FilesOf(site.folder());
    for (const auto& files : {before, after}) {
      for (const auto& [path, contents] : files) {
        if (before.count(path) > 0 && after.count(path) > 0 && before[path] == after.at(path)) continue;
        const bool covered = std::any_of(reported.begin(), reported.end(), [&path = path](const std::string& t) {
          return path == t || path.starts_with(t + "/");
        });
        EXPECT_TRUE(covered) << path << " after: " << site.log().back();
      }
    }
    before = after;
  }
}

// The comparison is only worth as much as the events in the sites.
TEST(SiteTest, SitesHaveEverySituation) {
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const TempDir dir;
    Site site(dir.path() + "/site", seed);
    site.AddPages(15);
    for (int change = 0; change < 30; ++change) site.Change();
    const BatchIndex batch = ComputeBatch(site.folder(), kSiteBase);
    for (const auto& [key, members] : batch.clusters) {
      if (members.size() > 1) seen.insert(key.substr(0, key.find(':')) + " shared");
      if (key.starts_with("url:"))
        seen.insert(batch.pages.count(key.substr(4)) > 0 ? "cycle" : "moved to a missing page");
    }
    for (const auto& [url, page] : batch.pages) {
      if (page.summary.missing() > 0) seen.insert("missing resource");
      if (page.summary.included_size() > 0) seen.insert("included text");
      if (page.summary.bytes() > 0) seen.insert("resource");
      if (page.rank > 1) seen.insert("hot page");
      if (page.targets.empty()) seen.insert("page without links");
      if (page.walk.size() > 4) seen.insert("long way");
    }
    for (const auto& [url, words] : batch.anchor_words) {
      if (batch.pages.count(url) == 0) seen.insert("words for a missing page");
    }
    for (const std::string& line : site.log()) seen.insert(line.substr(0, line.find(' ', 0)));
    for (const std::string& line : site.log()) {
      if (line.starts_with("rename folder")) seen.insert("rename folder");
    }
  }
  EXPECT_THAT(seen, ::testing::IsSupersetOf({"content shared",
                                             "url shared",
                                             "cycle",
                                             "moved to a missing page",
                                             "missing resource",
                                             "included text",
                                             "resource",
                                             "hot page",
                                             "page without links",
                                             "long way",
                                             "words for a missing page",
                                             "add",
                                             "edit",
                                             "delete",
                                             "rename",
                                             "copy",
                                             "touch",
                                             "write",
                                             "chain",
                                             "undo",
                                             "rename folder"}));
}

}  // namespace
}  // namespace webindex
