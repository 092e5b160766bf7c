// SPDX-License-Identifier: Apache-2.0

// Acceptor: accepts the connections of a server and hands them to gRPC.
//
// gRPC 1.51 stops accepting permanently once the process runs out of file descriptors. The acceptor continues: it closes
// connections above a limit, and if descriptors run out anyway, it drops the new connection and tries again shortly after.
//
// LIMIT   When `max_connections` are open, a new connection replaces one that is older than kIdle, so that no client can lock
//         out others. First come the connections whose client received almost nothing, then those that were silent for kIdle,
//         and then, if an address has more than half of all connections and the new one has another address, those of that
//         address that received the least. If there are none, the new connection is closed.
// THREADS Its own thread accepts connections. Stop may be called from any thread.

#ifndef PERCOLATOR_SERVER_ACCEPTOR_H_
#define PERCOLATOR_SERVER_ACCEPTOR_H_

#include <grpcpp/server_builder.h>
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/spi/runtime.h"

namespace percolator {

// Raises the limit of open files of this process to the allowed maximum, and returns it.
size_t RaiseFileLimit();

class Acceptor {
 public:
  using Grpc = grpc::experimental::ExternalConnectionAcceptor;

  // A connection that was silent for this time may be closed to admit another one.
  static constexpr std::chrono::milliseconds kIdle{1000};

  // Binds every address of the host. Port 0 selects a free port. Returns InvalidArgument if the host or the port is invalid, and
  // Unavailable if the address is in use or does not belong to this machine.
  static absl::StatusOr<std::unique_ptr<Acceptor>> Bind(const std::string& host, std::string_view port,
                                                        size_t max_connections);
  // Calls Stop.
  ~Acceptor();

  int port() const { return port_; }

  // Starts to accept connections. The thread also calls `idle_work` about once a second.
  void Start(std::unique_ptr<Grpc> grpc, std::function<void()> idle_work);
  // Stops accepting. Open connections stay open.
  void Stop();

 private:
  // A connection of gRPC, which closes it. The inode shows whether the descriptor still belongs to that connection.
  struct Connection {
    int fd;
    ino_t inode;
    std::string address;  // of the other end, without the port
    Duration since;
  };

  explicit Acceptor(size_t max_connections) : max_connections_(max_connections) {}

  absl::Status BindOne(int family, const void* address, size_t size);
  void Run();
  // Accepts the waiting connections of one listening socket.
  void AcceptFrom(int listening);
  void Take(int fd, std::string address);
  // Removes closed connections, and closes some if there are still too many for one from the address `newcomer`.
  void MakeRoom(const std::string& newcomer);
  // Returns the address that has more than half of all connections. Empty: there is none.
  std::string Crowd() const;
  // Drops a waiting connection with the reserved descriptor, after descriptors have run out.
  void DropOne(int listening);
  // Logs an error, at most once a second.
  void LogError(std::string_view text);

  const size_t max_connections_;
  int port_ = 0;
  std::vector<int> listening_;
  int wake_ = -1;     // an eventfd that Stop writes
  int reserve_ = -1;  // a descriptor that DropOne frees to accept and close a connection
  std::unique_ptr<Grpc> grpc_;
  std::function<void()> idle_work_;
  std::thread thread_;

  // Used by the thread only.
  std::vector<Connection> connections_;
  Duration next_look_{};  // the next time at which MakeRoom checks all connections
  Duration next_log_{};   // the next time at which LogError logs
};

}  // namespace percolator

#endif  // PERCOLATOR_SERVER_ACCEPTOR_H_
