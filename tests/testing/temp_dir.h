// SPDX-License-Identifier: Apache-2.0

// TempDir: a new folder for one test, removed with all its content at the end.

#ifndef PERCOLATOR_TESTS_TESTING_TEMP_DIR_H_
#define PERCOLATOR_TESTS_TESTING_TEMP_DIR_H_

#include <string>

namespace percolator {

class TempDir {
 public:
  // Below TMPDIR, or /tmp. Ends the program if no folder can be made.
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_TESTING_TEMP_DIR_H_
