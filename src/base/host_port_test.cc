// SPDX-License-Identifier: Apache-2.0

#include "src/base/host_port.h"

#include "gtest/gtest.h"

namespace percolator {
namespace {

TEST(HostPortTest, SplitsHostAndPort) {
  const auto parsed = ParseHostPort("example.org:7820");
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->host, "example.org");
  EXPECT_EQ(parsed->port, 7820);
  EXPECT_EQ(ParseHostPort("[::1]:0")->host, "::1");
  EXPECT_EQ(ParseHostPort("a:65535")->port, 65535);
}

TEST(HostPortTest, RefusesInvalidHostsAndPorts) {
  for (const char* text : {"", ":", "a", "a:", ":1", "a:65536", "a:99999", "a:100000", "a:-1", "a:+1", "a: 1", "a:1x",
                           "[::1", "::1]:5", "[]:5"}) {
    EXPECT_FALSE(ParseHostPort(text).has_value()) << text;
    EXPECT_FALSE(IsEndpoint(text)) << text;
  }
  EXPECT_FALSE(IsEndpoint("a:0"));
  EXPECT_TRUE(IsEndpoint("a:1"));
  EXPECT_TRUE(IsEndpoint("unix:/run/percolator"));
}

}  // namespace
}  // namespace percolator
