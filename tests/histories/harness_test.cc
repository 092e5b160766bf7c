// SPDX-License-Identifier: Apache-2.0

// Tests of the player of histories: a test that cannot fail proves nothing.

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/histories/player.h"
#include "tests/histories/script.h"
#include "tests/histories/variant.h"
#include "tests/testing/status_matchers.h"

namespace percolator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kText[] = R"(# What it shows.
# layout: two-rows two-tables
# cells: a | b c

init a=1; begin t1  # a remark
# in between
get t1 a
----
t1: a = 1

begin t2

# The end.
)";

TEST(ScriptTest, AScriptIsReadInBlocks) {
  const absl::StatusOr<Script> script = ParseScript(kText);
  ASSERT_THAT(script, IsOk());
  EXPECT_THAT(script->layouts, ElementsAre("two-rows", "two-tables"));
  EXPECT_THAT(script->cells, ElementsAre(ElementsAre("a"), ElementsAre("b", "c")));
  ASSERT_EQ(script->blocks.size(), 2);
  EXPECT_EQ(script->blocks[0].line, 5);
  ASSERT_EQ(script->blocks[0].commands.size(), 3);
  EXPECT_THAT(script->blocks[0].commands[1].words, ElementsAre("begin", "t1"));
  EXPECT_EQ(script->blocks[0].expected, "t1: a = 1\n");
  EXPECT_EQ(script->blocks[1].expected, "");
}

TEST(ScriptTest, RewritingChangesOnlyTheOutputs) {
  const absl::StatusOr<Script> script = ParseScript(kText);
  ASSERT_THAT(script, IsOk());
  EXPECT_EQ(WithOutputs(*script, {"t1: a = 1\n", ""}), kText);
  const std::string changed = WithOutputs(*script, {"", "t2: hello\n"});
  EXPECT_THAT(changed, HasSubstr("get t1 a\n\nbegin t2\n----\nt2: hello\n\n# The end.\n"));
}

TEST(ScriptTest, MistakesAreReported) {
  EXPECT_THAT(ParseScript("----\nx\n"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ParseScript("# cells: b a\n"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ParseScript("# cells: a |\n"), StatusIs(absl::StatusCode::kInvalidArgument));
}

size_t CountVariants(const std::string& text) {
  const absl::StatusOr<Script> script = ParseScript(text);
  const absl::StatusOr<std::vector<Variant>> variants = VariantsOf(*script);
  return variants.ok() ? variants->size() : 0;
}

TEST(VariantTest, TheHeadChoosesTheVariants) {
  EXPECT_EQ(CountVariants("begin t1\n"), 12);
  EXPECT_EQ(CountVariants("# layout: two-rows\n# store: memory\nbegin t1\n"), 2);
  EXPECT_EQ(CountVariants("# layout: two-rows\n# commit: one-step\ndump\n"), 2);
  EXPECT_EQ(CountVariants("# layout: three-rows\nbegin t1\n"), 0);
  EXPECT_EQ(CountVariants("# layout: two-rows two-tables\n# commit: one-step\ndump\n"), 0) << "a dump in two layouts";
}

// The output of a script, in memory and in two phases.
absl::StatusOr<std::string> Play(const std::string& text) {
  const absl::StatusOr<Script> script = ParseScript(text);
  if (!script.ok()) return script.status();
  const absl::StatusOr<std::unique_ptr<Player>> player = Player::Make(*script, {.layout = Layout::kTwoRows});
  if (!player.ok()) return player.status();
  std::string said;
  for (const Block& block : script->blocks) {
    const absl::StatusOr<std::string> output = (*player)->Play(block.commands);
    if (!output.ok()) return output.status();
    said += *output;
  }
  return said;
}

TEST(PlayerTest, MistakesAreReported) {
  for (const char* text : {"dance t1", "begin", "begin t1; begin t1", "get t1 x", "begin t1; get t1 q",
                           "begin t1; crash t1; get t1 x", "begin t1; commit t1; set t1 x 1", "begin t1; prewrite t1",
                           "begin t1; commit-primary t1", "snapshot s; set s x 1", "begin t1 ts=2; begin t2 ts=2",
                           "begin t1; set t1 x 1; prewrite t1; commit-secondaries t1", "begin t1; scan t1 v<3",
                           "sleep soon", "begin t1; stop t1 before 0", "begin t1; finish t1",
                           "init x=1; begin t1; set t1 x 2; prewrite t1; begin t2; start get t2 x; get t2 x"}) {
    EXPECT_THAT(Play(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  }
}

TEST(PlayerTest, NumbersDoNotDependOnTime) {
  const absl::StatusOr<std::string> said =
      Play("begin t1; set t1 x 1; commit t1; sleep 5s; begin t2 ts=7; set t2 x 2; sleep 1s; commit t2");
  ASSERT_THAT(said, IsOk());
  EXPECT_EQ(*said, "t1: committed @2\nt2: committed @8\n");
}

// A script may end while commands wait and clients are stopped.
TEST(PlayerTest, AScriptMayEndInTheMiddle) {
  const absl::StatusOr<std::string> said =
      Play("begin t1; set t1 x 1; stop t1 before 2; start commit t1; begin t2; start get t2 x; disconnect");
  ASSERT_THAT(said, IsOk());
  EXPECT_EQ(*said, "t1: stopped\nt2: waits\n");
}

}  // namespace
}  // namespace percolator
