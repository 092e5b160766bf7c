// Tests of what plays the histories: a test that can't fail proves nothing.

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "src/txn/columns.h"
#include "src/txn/lock.h"
#include "src/txn/write_record.h"
#include "tests/histories/player.h"
#include "tests/histories/raw_cells.h"
#include "tests/histories/script.h"
#include "tests/histories/variant.h"
#include "tests/testing/status_matchers.h"

namespace percolator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

TEST(ScriptTest, IsReadInBlocks) {
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

TEST(ScriptTest, RewritingChangesOnlyWhatIsSaid) {
  const absl::StatusOr<Script> script = ParseScript(kText);
  ASSERT_THAT(script, IsOk());
  EXPECT_EQ(WithOutputs(*script, {"t1: a = 1\n", ""}), kText);
  const std::string changed = WithOutputs(*script, {"", "t2: hello\n"});
  EXPECT_THAT(changed, HasSubstr("get t1 a\n\nbegin t2\n----\nt2: hello\n\n# The end.\n"));
}

TEST(ScriptTest, MistakesAreNoticed) {
  EXPECT_THAT(ParseScript("----\nx\n"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ParseScript("# cells: b a\n"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ParseScript("# cells: a |\n"), StatusIs(absl::StatusCode::kInvalidArgument));
}

size_t CountVariants(const std::string& text) {
  const absl::StatusOr<Script> script = ParseScript(text);
  const absl::StatusOr<std::vector<Variant>> variants = VariantsOf(*script);
  return variants.ok() ? variants->size() : 0;
}

TEST(VariantTest, TheHeadChooses) {
  EXPECT_EQ(CountVariants("begin t1\n"), 12);
  EXPECT_EQ(CountVariants("# layout: two-rows\n# store: memory\nbegin t1\n"), 2);
  EXPECT_EQ(CountVariants("# layout: two-rows\n# commit: one-step\ndump\n"), 2);
  EXPECT_EQ(CountVariants("# layout: three-rows\nbegin t1\n"), 0);
  EXPECT_EQ(CountVariants("# layout: two-rows two-tables\n# commit: one-step\ndump\n"), 0) << "a dump in two layouts";
}

// What a script says, in memory and in two phases.
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

TEST(PlayerTest, MistakesAreNoticed) {
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
TEST(PlayerTest, EndsInTheMiddle) {
  const absl::StatusOr<std::string> said =
      Play("begin t1; set t1 x 1; stop t1 before 2; start commit t1; begin t2; start get t2 x; disconnect");
  ASSERT_THAT(said, IsOk());
  EXPECT_EQ(*said, "t1: stopped\nt2: waits\n");
}

// --- The rules of raw cells

RawCell At(const std::string& column, Family family, uint64_t ts) {
  return {.name = {"t", "r", column}, .family = family, .timestamp = Timestamp(ts)};
}

RawCell LockAt(const std::string& column, uint64_t ts) {
  RawCell cell = At(column, Family::kLock, ts);
  cell.lock = Lock{.value = "v"};
  return cell;
}

RawCell PutAt(const std::string& column, uint64_t commit_ts, uint64_t start_ts) {
  RawCell cell = At(column, Family::kWrite, commit_ts);
  cell.record = WriteRecord{.start_ts = Timestamp(start_ts), .value = "v"};
  return cell;
}

RawCell LongPutAt(const std::string& column, uint64_t commit_ts, uint64_t start_ts) {
  RawCell cell = PutAt(column, commit_ts, start_ts);
  cell.record->value.reset();
  return cell;
}

RawCell MarkerAt(uint64_t ts) {
  RawCell cell = At(RollbackColumn(), Family::kWrite, ts);
  cell.record = WriteRecord{.kind = WriteKind::kRollback, .start_ts = Timestamp(ts)};
  return cell;
}

TEST(BrokenRulesTest, NothingIsWrongWithAHistoryThatCanBe) {
  EXPECT_THAT(BrokenRules({MarkerAt(5), At("c", Family::kData, 3), LockAt("c", 9), LongPutAt("c", 4, 3),
                           PutAt("c", 2, 1), PutAt("d", 8, 6)}),
              IsEmpty());
}

TEST(BrokenRulesTest, EachIsNoticed) {
  EXPECT_THAT(BrokenRules({MarkerAt(1), PutAt("c", 2, 1)}), ElementsAre(HasSubstr("T1")));
  EXPECT_THAT(BrokenRules({PutAt("c", 2, 1), PutAt("d", 3, 1)}), ElementsAre(HasSubstr("T2")));
  EXPECT_THAT(BrokenRules({LockAt("c", 2), LockAt("c", 1)}), ElementsAre(HasSubstr("T4")));
  EXPECT_THAT(BrokenRules({LockAt("c", 1), PutAt("c", 2, 1)}), ElementsAre(HasSubstr("T4")));
  EXPECT_THAT(BrokenRules({PutAt("c", 4, 2), PutAt("c", 3, 1)}), ElementsAre(HasSubstr("T5")));
  EXPECT_THAT(BrokenRules({PutAt("c", 1, 1)}), ElementsAre(HasSubstr("T6")));
  EXPECT_THAT(BrokenRules({LongPutAt("c", 2, 1)}), ElementsAre(HasSubstr("G5")));
  EXPECT_THAT(BrokenRules({At("c", Family::kData, 1)}), ElementsAre(HasSubstr("G5")));
}

}  // namespace
}  // namespace percolator
