// SPDX-License-Identifier: Apache-2.0

// Plays the histories of this folder, each script in every variant that its head allows: one test for each, named after
// both, as in h01_g0.two_rows_rocksdb_one_step.
//
//     histories_test                                 all of them
//     histories_test --gtest_filter='h07_*'          one script
//     histories_test --rewrite --gtest_filter=...    writes the outputs into the scripts: read the diff
//     histories_test FOLDER                          the scripts of another folder
//
// A script is rewritten by its first variant; the others must have the same output.
//
// A program that registers stores (tests/store/store_kinds.h) plays them on those, and does not rewrite them.

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/histories/player.h"
#include "tests/histories/script.h"
#include "tests/testing/amount.h"

namespace percolator {
namespace {

bool g_rewrite = false;

std::string ReadText(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

class HistoryTest : public ::testing::Test {
 public:
  HistoryTest(std::filesystem::path path, const Variant& variant, bool may_rewrite)
      : path_(std::move(path)), variant_(variant), rewrites_(g_rewrite && may_rewrite) {}

  void TestBody() override {
    if (variant_.elsewhere != nullptr) {
      if (const absl::Status ready = variant_.elsewhere->ready(); !ready.ok()) GTEST_SKIP() << ready;
    }
    const absl::StatusOr<Script> script = ParseScript(ReadText(path_));
    ASSERT_TRUE(script.ok()) << path_ << ": " << script.status();
    const absl::StatusOr<std::unique_ptr<Player>> player = Player::Make(*script, variant_);
    ASSERT_TRUE(player.ok()) << path_ << ": " << player.status();
    std::vector<std::string> outputs;
    for (const Block& block : script->blocks) {
      const absl::StatusOr<std::string> said = (*player)->Play(block.commands);
      ASSERT_TRUE(said.ok()) << Place(block) << said.status();
      if (!rewrites_) {
        EXPECT_EQ(*said, block.expected) << Place(block) << "says:\n" << *said;
      }
      outputs.push_back(*said);
    }
    if (rewrites_) std::ofstream(path_, std::ios::binary) << WithOutputs(*script, outputs);
  }

 private:
  std::string Place(const Block& block) const { return path_.string() + ":" + std::to_string(block.line) + ": "; }

  const std::filesystem::path path_;
  const Variant variant_;
  const bool rewrites_;
};

// A script that cannot be parsed.
class BrokenScriptTest : public ::testing::Test {
 public:
  explicit BrokenScriptTest(std::string why) : why_(std::move(why)) {}
  void TestBody() override { FAIL() << why_; }

 private:
  const std::string why_;
};

void RegisterScript(const std::filesystem::path& path) {
  const std::string name = path.stem().string();
  const absl::StatusOr<Script> script = ParseScript(ReadText(path));
  absl::StatusOr<std::vector<Variant>> variants =
      script.ok() ? VariantsOf(*script) : absl::StatusOr<std::vector<Variant>>(script.status());
  if (!variants.ok()) {
    const std::string why = path.string() + ": " + variants.status().ToString();
    ::testing::RegisterTest(name.c_str(), "can_be_read", nullptr, nullptr, __FILE__, __LINE__,
                            [why]() -> ::testing::Test* { return new BrokenScriptTest(why); });
    return;
  }
  const bool elsewhere = !StoresToTest().empty();
  if (elsewhere) variants = Elsewhere(*variants);
  for (size_t i = 0; i < variants->size(); ++i) {
    const Variant variant = (*variants)[i];
    // RocksDB is not compiled with the sanitizers, so for each way to commit one layout on it is enough.
    if (kSanitized && variant.on_disk && variant.layout != variants->front().layout) continue;
    const bool may_rewrite = i == 0 && !elsewhere;
    ::testing::RegisterTest(
        name.c_str(), variant.name().c_str(), nullptr, nullptr, path.c_str(), 1,
        [path, variant, may_rewrite]() -> ::testing::Test* { return new HistoryTest(path, variant, may_rewrite); });
  }
}

// Returns false if there are none.
bool RegisterScripts(const std::filesystem::path& folder) {
  std::set<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".txt" && entry.path().filename() != "CMakeLists.txt") paths.insert(entry.path());
  }
  for (const std::filesystem::path& path : paths) RegisterScript(path);
  return !paths.empty();
}

}  // namespace
}  // namespace percolator

int main(int argc, char** argv) {
  // Other tests cover loss of power. Here files may be in memory, where opening a store is fast.
  if (std::filesystem::is_directory("/dev/shm")) setenv("TMPDIR", "/dev/shm", /*overwrite=*/0);
  ::testing::InitGoogleTest(&argc, argv);
  std::filesystem::path folder = PERCOLATOR_HISTORIES;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--rewrite") {
      percolator::g_rewrite = true;
    } else {
      folder = argv[i];
    }
  }
  if (!percolator::RegisterScripts(folder)) {
    std::cerr << folder << ": no scripts there\n";
    return 1;
  }
  return RUN_ALL_TESTS();
}
