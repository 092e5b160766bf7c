// SPDX-License-Identifier: Apache-2.0

// Watch: reports changes of a folder and of all folders in it (inotify).
//
// Like Crawl, it skips names that begin with a dot, and does not follow links.

#ifndef PERCOLATOR_APPS_WEBINDEX_WATCH_H_
#define PERCOLATOR_APPS_WEBINDEX_WATCH_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"

namespace webindex {

class Watch {
 public:
  // Calls `changed`, from one thread, with the relative path of a file or folder that was created, closed after writing, moved
  // or deleted. Several changes of a path may come as one, and changes below a folder as one of the folder. The path is "" if
  // the changes are unknown, and the whole folder has to be checked: after too many events, when the folder itself disappears
  // or comes back, and every few seconds while there are more folders than the system allows to watch. If `changed` returns
  // false, the change is reported again a second later.
  Watch(std::string folder, std::function<bool(const std::string& relative_path)> changed);
  ~Watch();  // stops

  // Returns when all later changes will be reported, or NotFound if there is no such folder.
  absl::Status Start();
  // Returns when no more changes are reported. REQUIRES: not called by `changed`.
  void Stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace webindex

#endif  // PERCOLATOR_APPS_WEBINDEX_WATCH_H_
