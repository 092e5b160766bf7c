// Follows the changes of a folder (inotify), and of folders in it, as they come and go.
//
// Names that begin with a dot are passed over, and links are not followed: as by Crawl.

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
  // or deleted; several changes of a path may come as one, and those below a folder as one of the folder. With "" when it
  // can't be known what has changed: then everything has to be looked at (too many events at once; the folder itself is gone
  // or has come back; every few seconds while there are more folders than the system's limits allow to be watched).
  // False: it could not be followed now, and is told again a second later.
  Watch(std::string folder, std::function<bool(const std::string& relative_path)> changed);
  ~Watch();  // stops

  // Returns when everything that changes from now on will be told. kNotFound: there is no such folder.
  absl::Status Start();
  // Returns when nothing is told any more. REQUIRES: not called by `changed`.
  void Stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace webindex

#endif  // PERCOLATOR_APPS_WEBINDEX_WATCH_H_
