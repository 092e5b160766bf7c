// SPDX-License-Identifier: Apache-2.0

#include "src/observe/cluster_observers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace percolator {
namespace {

using ::testing::ElementsAre;

ObserverSpec OwnSpec(const std::string& name, const std::string& column) {
  return {.name = name, .table = "t", .column = column, .run = [](ReadWrite&, const Notification&) {
            return absl::OkStatus();
          }};
}

ObserverInfo StrongInfo(const std::string& name, const std::string& column) {
  return {name, "t", column, NotificationKind::kStrong};
}

TEST(ClusterObserversTest, OwnObserversAreThoseThatTheClusterHasAlike) {
  ClusterObservers observers({OwnSpec("a", "c"), OwnSpec("moved", "c"), OwnSpec("lost", "c")}, {});
  ASSERT_TRUE(observers.Set({StrongInfo("moved", "d"), StrongInfo("foreign", "c"), StrongInfo("a", "c")}));
  const ColumnObservers of_c = observers.Find("t", "c");
  ASSERT_NE(of_c, nullptr);
  ASSERT_EQ(of_c->size(), 2U);
  EXPECT_EQ((*of_c)[0].own, observers.own()[0].get());
  EXPECT_EQ((*of_c)[0].lane, observers.lanes()[0]);
  EXPECT_EQ((*of_c)[1].info.name, "foreign");
  EXPECT_EQ((*of_c)[1].own, nullptr);
  EXPECT_EQ((*of_c)[1].lane, observers.lanes().back());
  const ColumnObservers of_d = observers.Find("t", "d");
  ASSERT_NE(of_d, nullptr);
  EXPECT_EQ((*of_d)[0].own, nullptr);
  EXPECT_EQ(observers.Find("t", "e"), nullptr);
  EXPECT_THAT(observers.Tables(), ElementsAre("t"));
}

TEST(ClusterObserversTest, TheSameObserversInAnotherOrderAreNotAChange) {
  ClusterObservers observers({}, {});
  EXPECT_FALSE(observers.Set({}));
  EXPECT_TRUE(observers.Set({StrongInfo("a", "c"), StrongInfo("b", "c")}));
  const ColumnObservers before = observers.Find("t", "c");
  EXPECT_FALSE(observers.Set({StrongInfo("b", "c"), StrongInfo("a", "c")}));
  EXPECT_EQ(observers.Find("t", "c"), before);
  EXPECT_TRUE(observers.Set({StrongInfo("a", "c")}));
  EXPECT_NE(observers.Find("t", "c"), before);
  EXPECT_EQ(before->size(), 2U);  // still valid for its users
}

}  // namespace
}  // namespace percolator
