// SPDX-License-Identifier: Apache-2.0

// Cluster::Open: addresses of clusters on other machines.

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

TEST(OpenTest, InvalidRemoteAddressesAreRefused) {
  const std::string instance = "bigtable:projects/p/instances/i";
  for (const auto& [address, why] : std::vector<std::pair<std::string, std::string>>{
           {"percolator://", "does not name a server"},
           {"percolator://host", "HOST:PORT"},
           {"percolator://host:port", "HOST:PORT"},
           {"percolator://:7820", "HOST:PORT"},
           {"percolator://host:1?ca", "NAME=VALUE"},
           {"percolator://host:1?oracle=x:1", "\"oracle\""},
           {"percolator://host:1?ca=a&ca=b", "duplicate setting \"ca\""},
           {"percolator://127.0.0.1:1?ca=/nowhere/ca.pem", "/nowhere/ca.pem"},
           {"bigtable:", "does not name a server or an instance"},
           {"bigtable:p/i?oracle=a:1&coord=b:2", "projects/P/instances/I"},
           {"bigtable:projects/p/instances/?oracle=a:1&coord=b:2", "projects/P/instances/I"},
           {instance, "?oracle=HOST:PORT"},
           {instance + "?oracle=a:1", "coord=HOST:PORT"},
           {instance + "?oracle=,&coord=b:2", "oracle=HOST:PORT"},
           {instance + "?orcale=a:1", "\"orcale\""}}) {
    EXPECT_THAT(Cluster::Open(address), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why))) << address;
  }
}

}  // namespace
}  // namespace percolator
