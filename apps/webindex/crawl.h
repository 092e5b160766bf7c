// SPDX-License-Identifier: Apache-2.0

// Crawl: loads a folder of pages.
//
// A Crawl makes the tables pages and files equal to the folder. Every regular file below the folder is a page or another file,
// and is loaded in its own transaction. The size and the times of modification and change identify the version of a file, so
// an unchanged file is not read again. Names that begin with a dot, links and special files are skipped, so a crawl never
// reads anything outside the folder, and never walks in a circle.
//
// A load transaction reads the file after its start, and writes or verifies its stat. So of two that overlap, one is retried,
// and the later content stays. For this reason a file that is being loaded is checked again whenever it may have changed, even
// if it is neither in the tables nor in the folder any more.
//
// A file that no longer exists is deleted from the tables. A file that exists but cannot be read stays in them unchanged.

#ifndef PERCOLATOR_APPS_WEBINDEX_CRAWL_H_
#define PERCOLATOR_APPS_WEBINDEX_CRAWL_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/webindex/document.pb.h"
#include "percolator/cluster.h"
#include "percolator/loader.h"

namespace webindex {

inline constexpr size_t kMaxContents = 8 << 20;  // bytes of a page that are stored; the parser reads fewer
inline constexpr size_t kMaxExcerptBytes = 200;

struct CrawlOptions {
  std::string folder;
  // If `only_listed`, the crawl loads only the files of `list`, which are paths or urls under `base`. Otherwise it loads every
  // file below the folder.
  bool only_listed = false;
  std::vector<std::string> list;
  std::string base;
  int threads = 4;
  // See LoaderOptions. Must be zero (no limit) if there is no worker; otherwise the crawl would wait for one.
  size_t max_backlog = 10'000;
  percolator::Duration max_backlog_age = std::chrono::seconds(10);
  std::function<void(const percolator::LoadProgress&)> on_progress;
  // Called for a file that is skipped or truncated: unreadable, too large, or with an invalid name. May be called by any thread.
  std::function<void(const std::string& path, const std::string& why)> on_problem;
};

struct CrawlResult {
  uint64_t unchanged = 0;
  uint64_t loaded = 0;   // new or changed
  uint64_t deleted = 0;  // no longer in the folder
  uint64_t problems = 0;
};

// The state of a file that is not a page, as the table `files` stores it.
FileState FileStateOf(std::string_view path, std::string_view contents);

struct FileRead;

// Thread-safe.
class Crawl {
 public:
  Crawl(const percolator::Cluster& cluster, CrawlOptions options);

  // Makes the tables equal to the folder. Returns NotFound if there is no such folder, or if it has none of the listed files.
  absl::StatusOr<CrawlResult> Run();

  // The same for one path below the folder, of a file or a folder that may not exist. "" means the whole folder. Called by
  // Watch.
  absl::Status Refresh(const std::string& relative_path);

 private:
  enum class Outcome : uint8_t { kUnchanged, kLoaded, kDeleted };
  struct Task {
    std::string url;
    Outcome outcome = Outcome::kUnchanged;
    std::string problem;
  };
  class Plan;
  class Loading;

  absl::Status CheckList() const;
  absl::StatusOr<CrawlResult> Update(const std::string& path);
  absl::Status LoadAll(std::vector<Task>& tasks);
  absl::Status Load(percolator::ReadWrite& t, Task& task);
  static absl::Status Write(percolator::ReadWrite& t, Task& task, const std::optional<FileStat>& stat,
                            const std::optional<FileRead>& file);
  bool IsWanted(std::string_view url) const;
  void Report(const std::string& path, const std::string& why) const;

  const percolator::Cluster cluster_;
  const CrawlOptions options_;
  std::set<std::string, std::less<>> listed_;
  std::mutex mutex_;
  std::multiset<std::string, std::less<>> loading_;  // urls; guarded by mutex_
};

}  // namespace webindex

#endif  // PERCOLATOR_APPS_WEBINDEX_CRAWL_H_
