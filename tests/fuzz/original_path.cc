// SPDX-License-Identifier: Apache-2.0

// Paths of requests for original files: no path reaches a file outside of the folder.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "apps/webindex/originals.h"
#include "tests/fuzz/check.h"

namespace {

// A folder "in" with a file, beside a file that must not be reached, and a link to that file.
std::string MakeFolder() {
  char name[] = "/tmp/fuzz_original_path.XXXXXX";
  FUZZ_CHECK(mkdtemp(name) != nullptr);
  const std::string root = name;
  for (const char* file : {"/secret", "/in/a.html"}) {
    mkdir((root + "/in").c_str(), 0700);
    std::FILE* const out = std::fopen((root + file).c_str(), "w");
    FUZZ_CHECK(out != nullptr);
    std::fputs(file, out);
    std::fclose(out);
  }
  FUZZ_CHECK(symlink("../secret", (root + "/in/l").c_str()) == 0);
  static std::string removed;
  removed = root;
  std::atexit([] {
    for (const char* file : {"/secret", "/in/a.html", "/in/l"}) unlink((removed + file).c_str());
    for (const char* folder : {"/in", ""}) rmdir((removed + folder).c_str());
  });
  return root + "/in";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string* const kFolder = new std::string(MakeFolder());
  const std::string_view path = percolator::ToText(data, size);
  const auto contents = webindex::ReadOriginal(*kFolder, path);
  if (contents.ok()) FUZZ_CHECK(*contents == "/in/a.html");
  (void)webindex::ContentTypeOf(path);
  return 0;
}
