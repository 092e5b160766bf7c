// SPDX-License-Identifier: Apache-2.0

// kill_child ADDRESS one-step|two-phases: runs transactions over two rows of the table "accounts" until it is killed.
// Writes the number of each committed one to standard output, as eight bytes. For embedded_test.cc.

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include "percolator/cluster.h"

int main(int argc, char** argv) {
  if (argc != 3) return 1;
  percolator::ClusterOptions options;
  options.store.durability = percolator::Durability::kNoSync;
  options.one_step_commit = std::string(argv[2]) == "one-step";
  const auto cluster = percolator::Cluster::Open(argv[1], options);
  if (!cluster.ok()) {
    std::fprintf(stderr, "%s\n", cluster.status().ToString().c_str());
    return 2;
  }
  for (uint64_t i = 1;; ++i) {
    const absl::Status committed = cluster->Transact([&](percolator::ReadWrite& t) {
      for (const char* row : {"Bob", "Joe"}) t.Set({"accounts", row, "bal"}, std::to_string(i));
    });
    if (!committed.ok()) return 3;
    if (write(STDOUT_FILENO, &i, sizeof(i)) != sizeof(i)) return 4;
  }
}
