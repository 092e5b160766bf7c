// SPDX-License-Identifier: Apache-2.0

// Cluster::Open in a library that was built with PERCOLATOR_SERVER=OFF.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "percolator/cluster.h"
#include "tests/testing/status_matchers.h"

namespace percolator {
namespace {

using ::testing::HasSubstr;

TEST(OpenTest, WithoutServersRemoteAddressesAreUnavailable) {
  for (const auto& [address, scheme] : std::vector<std::pair<std::string, std::string>>{
           {"percolator://127.0.0.1:1", "percolator://"},
           {"bigtable:projects/p/instances/i?oracle=a:1&coord=b:2", "bigtable:"}}) {
    EXPECT_THAT(Cluster::Open(address),
                StatusIs(absl::StatusCode::kUnimplemented, HasSubstr(scheme + " is not available in this build")));
  }
  EXPECT_THAT(Cluster::Open("percolator://host"), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace percolator
