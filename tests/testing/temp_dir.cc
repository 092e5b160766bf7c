// SPDX-License-Identifier: Apache-2.0

#include "tests/testing/temp_dir.h"

#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <system_error>

namespace percolator {

TempDir::TempDir() : path_((std::filesystem::temp_directory_path() / "percolator_XXXXXX").string()) {
  if (mkdtemp(path_.data()) == nullptr) {
    std::perror(path_.c_str());
    std::abort();
  }
}

TempDir::~TempDir() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
  if (error) std::fprintf(stderr, "cannot remove %s: %s\n", path_.c_str(), error.message().c_str());
}

}  // namespace percolator
