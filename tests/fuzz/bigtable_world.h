// SPDX-License-Identifier: Apache-2.0

// A store in memory with two tables as Bigtable's clients see them, and the server's API without gRPC.

#ifndef PERCOLATOR_TESTS_FUZZ_BIGTABLE_WORLD_H_
#define PERCOLATOR_TESTS_FUZZ_BIGTABLE_WORLD_H_

#include <memory>
#include <string>

#include "percolator/spi/store.h"
#include "src/base/strings.h"
#include "src/server/bigtable/mutate.h"
#include "src/server/bigtable/read.h"
#include "src/server/bigtable/tables.h"
#include "tests/fuzz/check.h"

namespace percolator {

class BigtableWorld {
 public:
  BigtableWorld() : store_(NewMemoryStore()), tables_(store_.get()), mutator_(store_.get(), &tables_) {
    v1::BigtableSchema schema;
    for (const char* family : {"f", "g"}) (*schema.mutable_families())[family];
    FUZZ_CHECK(tables_.Create("foreign", schema).ok());
    FUZZ_CHECK(store_->CreateTable({"native", ""}).ok());
  }

  static std::string TableName(bool native) {
    return StrCat("projects/p/instances/i/tables/", native ? "native" : "foreign");
  }

  Store* store() { return store_.get(); }
  BigtableTables* tables() { return &tables_; }
  BigtableMutator* mutator() { return &mutator_; }

 private:
  const std::unique_ptr<Store> store_;
  BigtableTables tables_;
  BigtableMutator mutator_;
};

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_FUZZ_BIGTABLE_WORLD_H_
