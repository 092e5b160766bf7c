// SPDX-License-Identifier: Apache-2.0

// A server of Bigtable's API in the test's own process, on loopback, at a free port.

#ifndef PERCOLATOR_TESTS_SERVER_BIGTABLE_SERVER_H_
#define PERCOLATOR_TESTS_SERVER_BIGTABLE_SERVER_H_

#include <grpcpp/server.h>

#include <memory>
#include <string>
#include <vector>

#include "percolator/spi/store.h"
#include "src/server/executor.h"

namespace percolator {

class BigtableServer {
 public:
  // The store must outlive this.
  explicit BigtableServer(Store* store);
  // Ends the calls in progress.
  ~BigtableServer();

  // host:port
  const std::string& target() const { return target_; }

 private:
  Executor executor_;
  std::vector<std::unique_ptr<grpc::Service>> services_;
  std::unique_ptr<grpc::Server> server_;
  std::string target_;
};

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_SERVER_BIGTABLE_SERVER_H_
