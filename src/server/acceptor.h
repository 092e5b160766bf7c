// Acceptor: accepts the connections of a server and hands them to gRPC.
//
// gRPC 1.51 stops to accept for good when the process is once out of files. This one goes on: it closes connections above
// a limit, and when files run out all the same it drops the newcomer and tries again a moment later.
//
// LIMIT   When `max_connections` are open, those from which nothing was heard for the longest time (at least kIdle) make
//         room: strangers that keep silent can't lock others out. If there are none, the newcomer is closed.
// THREADS One thread of its own accepts. Stop may be called from any thread.

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

// Raises the limit of open files of this process as far as it is allowed. Returns the limit.
size_t RaiseFileLimit();

class Acceptor {
 public:
  using Grpc = grpc::experimental::ExternalConnectionAcceptor;

  // A connection that was silent for so long may be closed for another one.
  static constexpr std::chrono::milliseconds kIdle{1000};

  // Binds every address of the host. Port 0: one that is free. kInvalidArgument: there is no such host or port.
  // kUnavailable: the address is taken or not this machine's.
  static absl::StatusOr<std::unique_ptr<Acceptor>> Bind(const std::string& host, std::string_view port,
                                                        size_t max_connections);
  // Stops.
  ~Acceptor();

  int port() const { return port_; }

  // Accepts from now on. `idle_work` is called about once a second.
  void Start(std::unique_ptr<Grpc> grpc, std::function<void()> idle_work);
  // Accepts no more. Connections that are open stay so.
  void Stop();

 private:
  // One that was handed to gRPC, which closes it. The inode tells whether the descriptor is still that connection.
  struct Connection {
    int fd;
    ino_t inode;
  };

  explicit Acceptor(size_t max_connections) : max_connections_(max_connections) {}

  absl::Status BindOne(int family, const void* address, size_t size);
  void Run();
  // Accepts all that wait at one listening socket.
  void AcceptFrom(int listening);
  void Take(int fd);
  // Forgets connections that are closed, and closes some that are idle if there are still too many.
  void MakeRoom();
  // When files have run out: drops one that waits, with a descriptor that is kept for this.
  void DropOne(int listening);
  void Complain(std::string_view what);

  const size_t max_connections_;
  int port_ = 0;
  std::vector<int> listening_;
  int wake_ = -1;     // an eventfd, written by Stop
  int reserve_ = -1;  // given up to accept, and close, a connection when files have run out
  std::unique_ptr<Grpc> grpc_;
  std::function<void()> idle_work_;
  std::thread thread_;

  // Of the thread.
  std::vector<Connection> connections_;
  Duration next_look_{};       // when MakeRoom looks at all connections again
  Duration next_complaint_{};  // when a line is logged again
};

}  // namespace percolator

#endif  // PERCOLATOR_SERVER_ACCEPTOR_H_
