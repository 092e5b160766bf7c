// A folder and its pages: the way in.
//
// A Crawl keeps the tables pages and files as the folder is: every regular file below it is a page or another file, whose
// contents are loaded in a transaction of their own. A file is known by its size and its times of modification and change, so
// one that has not changed since it was loaded is not read again. Names that begin with a dot, and all below them, are not
// there; nor are links and other special files, so nothing outside the folder is ever read, and no circle is walked.
//
// A load transaction reads the file after it has begun, and writes or verifies its stat: so of two that overlap one is run
// again, and what was read later stays. Hence a file that is being loaded is looked at again whenever something may have
// happened to it, though it may be neither in the tables nor in the folder any more.
//
// A file that is gone is deleted from the tables. One that is there but can't be read stays in them as it was.

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

inline constexpr size_t kMaxContents = 8 << 20;  // bytes of a page that are stored: the parser reads fewer
inline constexpr size_t kLongestExcerpt = 200;   // bytes

struct CrawlOptions {
  std::string folder;
  // Only these, paths or urls under `base`, if `only_listed`; else every file below the folder.
  bool only_listed = false;
  std::vector<std::string> list;
  std::string base;
  int threads = 4;
  // See LoaderOptions. Zero, no bound, if there is no worker: else the crawl would wait for one.
  size_t max_backlog = 10'000;
  percolator::Duration max_backlog_age = std::chrono::seconds(10);
  std::function<void(const percolator::LoadProgress&)> on_progress;
  // A file that is left out or cut, and why: unreadable, a name that can't be, too large. By any thread.
  std::function<void(const std::string& path, const std::string& why)> on_problem;
};

struct CrawlResult {
  uint64_t unchanged = 0;
  uint64_t loaded = 0;   // new or changed
  uint64_t deleted = 0;  // in the tables, and not in the folder any more
  uint64_t problems = 0;
};

// What the table files has of a file that is not a page.
FileState FileStateOf(std::string_view path, std::string_view contents);

struct FileRead;

// Thread-safe.
class Crawl {
 public:
  Crawl(const percolator::Cluster& cluster, CrawlOptions options);

  // Makes the tables as the folder is now. Returns NotFound if there is no such folder, or if none of the listed files is in
  // it.
  absl::StatusOr<CrawlResult> Run();

  // The same for one path below the folder, a file or a folder, there or not: what Watch calls. "": everything.
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
