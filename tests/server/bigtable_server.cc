// SPDX-License-Identifier: Apache-2.0

#include "tests/server/bigtable_server.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <cstdlib>

#include "src/base/strings.h"
#include "src/server/bigtable/service.h"

namespace percolator {

BigtableServer::BigtableServer(Store* store)
    : executor_(/*threads=*/8, /*max_waiting=*/10'000), services_(NewBigtableServices(store, &executor_)) {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.SetMaxReceiveMessageSize(256 << 20);
  for (const std::unique_ptr<grpc::Service>& service : services_) builder.RegisterService(service.get());
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) std::abort();
  target_ = StrCat("127.0.0.1:", port);
}

BigtableServer::~BigtableServer() {
  server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
  server_->Wait();
}

}  // namespace percolator
