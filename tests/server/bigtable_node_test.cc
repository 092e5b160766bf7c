// SPDX-License-Identifier: Apache-2.0

// A program that uses Bigtable by Google's client for Node (node/smoke.js), against our server. The client is installed
// from npm at its first use (half a minute) and kept in the build folder.

#include <filesystem>
#include <iostream>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "percolator/server.h"
#include "src/base/strings.h"
#include "tests/processes/child_process.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace percolator {
namespace {

namespace fs = std::filesystem;

// PERCOLATOR_NODE_FOLDER: the folder of the installed client (CMakeLists.txt).
const fs::path kInstalled = PERCOLATOR_NODE_FOLDER;
const fs::path kSources = PERCOLATOR_SOURCE_FOLDER "/tests/server/node";

bool IsInstalled() {
  const fs::path last = kInstalled / "node_modules" / ".package-lock.json";  // written last
  return fs::exists(last) && fs::last_write_time(last) > fs::last_write_time(kSources / "package-lock.json");
}

// Installs the packages of package-lock.json. Returns an error, or an empty string.
std::string Install() {
  fs::create_directories(kInstalled);
  for (const char* file : {"package.json", "package-lock.json"}) {
    fs::copy_file(kSources / file, kInstalled / file, fs::copy_options::overwrite_existing);
  }
  ChildProcess npm({"npm", "ci", "--prefix", kInstalled, "--ignore-scripts", "--no-audit", "--no-fund"}, {},
                   /*merge=*/true);
  const std::string said = npm.ReadAll();
  const int code = npm.Wait();
  if (code == 127) return "no program npm: install nodejs and npm";
  return code == 0 ? "" : "npm cannot install Google's client: " + said;
}

TEST(BigtableNodeTest, AProgramWithGooglesClientGetsTheExpectedAnswers) {
  if (!IsInstalled()) {
    if (const std::string why = Install(); !why.empty()) GTEST_SKIP() << why;
  }
  const TempDir dir;
  ServerOptions options;
  options.listen = "127.0.0.1:0";
  options.data = dir.path() + "/data";
  options.store.durability = Durability::kNoSync;
  const absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(options);
  ASSERT_THAT(server, IsOk());
  // Node looks for packages in the folder of the program.
  fs::copy_file(kSources / "smoke.js", kInstalled / "smoke.js", fs::copy_options::overwrite_existing);
  ChildProcess node({"node", kInstalled / "smoke.js"}, {StrCat("BIGTABLE_EMULATOR_HOST=127.0.0.1:", (*server)->port())},
                    /*merge=*/true);
  const std::string said = node.ReadAll();
  EXPECT_EQ(node.Wait(), 0) << said;
  std::cout << said;
}

}  // namespace
}  // namespace percolator
