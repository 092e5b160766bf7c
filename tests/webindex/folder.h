// SPDX-License-Identifier: Apache-2.0

// FolderTest: a folder, a cluster in memory with the tables and without a worker, and a crawl of the folder into the
// tables.

#ifndef PERCOLATOR_TESTS_WEBINDEX_FOLDER_H_
#define PERCOLATOR_TESTS_WEBINDEX_FOLDER_H_

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "apps/webindex/crawl.h"
#include "apps/webindex/tables.h"
#include "apps/webindex/url.h"
#include "percolator/cluster.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace webindex {

class FolderTest : public testing::Test {
 protected:
  using Contents = std::map<std::string, std::string>;  // by path: the contents of a page, the state of another file

  FolderTest() {
    std::filesystem::create_directory(folder());
    options_.folder = folder();
    options_.max_backlog = 0;
    options_.max_backlog_age = percolator::Duration(0);
    options_.on_problem = [this](const std::string& path, const std::string& why) {
      const std::lock_guard<std::mutex> lock(mutex_);
      problems_.push_back(path + ": " + why);
    };
    EXPECT_THAT(CreateTables(cluster_), percolator::IsOk());
    Open();
  }

  // A new crawl, with the current options.
  void Open() { crawl_ = std::make_unique<Crawl>(cluster_, options_); }

  std::string folder() const { return dir_.path() + "/site"; }
  std::string path(const std::string& relative) const { return folder() + "/" + relative; }

  void Write(const std::string& relative, const std::string& contents) const {
    std::error_code error;
    std::filesystem::create_directories(std::filesystem::path(path(relative)).parent_path(), error);
    std::ofstream(path(relative), std::ios::binary) << contents;
  }
  // Writes atomically: readers see the old or the new contents.
  void Replace(const std::string& relative, const std::string& contents) const {
    const std::string elsewhere = dir_.path() + "/new";
    std::ofstream(elsewhere, std::ios::binary) << contents;
    std::filesystem::rename(elsewhere, path(relative));
  }
  void Touch(const std::string& relative, int64_t seconds) const {
    const timespec time{.tv_sec = seconds, .tv_nsec = 0};
    const timespec times[] = {time, time};
    ASSERT_EQ(utimensat(AT_FDCWD, path(relative).c_str(), times, 0), 0);
  }

  static std::string StateOf(const std::string& path, const std::string& contents) {
    return FileStateOf(path, contents).SerializeAsString();
  }

  Contents InTables() const {
    Contents contents;
    const auto now = cluster_.GetSnapshot();
    for (const Column<std::string>* column : {&kContents, &kEncoded<kState>}) {
      for (const auto& entry : now->Scan(*column)) {
        EXPECT_THAT(entry, percolator::IsOk());
        if (entry.ok()) contents[entry->row] = entry->value;
      }
    }
    return contents;
  }

  Contents InFolder() const {
    Contents contents;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder())) {
      if (!std::filesystem::is_regular_file(entry.symlink_status())) continue;
      const std::string relative = entry.path().lexically_relative(folder()).string();
      if (relative.starts_with('.') || relative.find("/.") != relative.npos) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
      contents[relative] = IsPage(relative) ? bytes : StateOf(relative, bytes);
    }
    return contents;
  }

  percolator::TempDir dir_;
  CrawlOptions options_;
  std::mutex mutex_;
  std::vector<std::string> problems_;
  percolator::Cluster cluster_ = percolator::Cluster::Open("memory:").value();
  std::unique_ptr<Crawl> crawl_;
};

}  // namespace webindex

#endif  // PERCOLATOR_TESTS_WEBINDEX_FOLDER_H_
