// SPDX-License-Identifier: Apache-2.0

#include "src/observe/registry.h"

#include <string>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"

namespace percolator {
namespace {

TEST(ObserverInfoTest, GoldenBytes) {
  const ObserverInfo info{.name = "parse", .table = "docs", .column = "c", .kind = NotificationKind::kWeak};
  EXPECT_EQ(absl::BytesToHexString(EncodeObserver(info)), "0102646f63730001630001");
}

TEST(ObserverInfoTest, DecodeReturnsTheEncodedObserver) {
  for (const NotificationKind kind : {NotificationKind::kStrong, NotificationKind::kWeak}) {
    const ObserverInfo info{.name = "parse", .table = "docs", .column = std::string("a\0b", 3), .kind = kind};
    const absl::StatusOr<ObserverInfo> decoded = DecodeObserver("parse", EncodeObserver(info));
    ASSERT_TRUE(decoded.ok());
    EXPECT_EQ(*decoded, info);
  }
}

TEST(ObserverInfoTest, InvalidBytesAreRefused) {
  const std::string good = EncodeObserver({.name = "parse", .table = "docs", .column = "c"});
  for (size_t n = 0; n < good.size(); ++n) {
    EXPECT_EQ(DecodeObserver("parse", good.substr(0, n)).status().code(), absl::StatusCode::kDataLoss) << n;
  }
  EXPECT_EQ(DecodeObserver("parse", good + "x").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(DecodeObserver("parse", "\2").status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace percolator
