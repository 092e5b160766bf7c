// SPDX-License-Identifier: Apache-2.0

#include "src/server/acceptor.h"

#include <fcntl.h>
#include <grpc/support/log.h>
#include <linux/tcp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "percolator/spi/runtime.h"
#include "percolator/status_macros.h"
#include "src/base/strings.h"

namespace percolator {
namespace {

constexpr std::chrono::milliseconds kBetweenIdleWork(1000);
constexpr std::chrono::milliseconds kBetweenLooks(50);
constexpr std::chrono::milliseconds kBetweenLogs(1000);
constexpr std::chrono::milliseconds kPauseWithoutFiles(20);
// A client that received fewer bytes than this got a few answers at most.
constexpr uint64_t kAnswerBytes = 1 << 10;
// The kernel's buffers of a connection in each direction. Otherwise they grow to several MiB, which the server fills and
// empties in bursts while other clients wait.
constexpr int kSocketBytes = 128 << 10;

void SetOption(int fd, int level, int option, int value) { setsockopt(fd, level, option, &value, sizeof(value)); }

ino_t InodeOf(int fd) {
  struct stat info {};
  return fstat(fd, &info) == 0 ? info.st_ino : 0;
}

bool OutOfFiles(int error) { return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM; }

absl::StatusOr<int> ParsePort(std::string_view text) {
  int port = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error == std::errc() && end == text.data() + text.size() && port >= 0 && port <= UINT16_MAX) return port;
  return absl::InvalidArgumentError(StrCat("invalid port \"", text, "\": expected a number from 0 to ", UINT16_MAX));
}

void SetPort(int port, sockaddr* address) {
  const auto number = htons(static_cast<uint16_t>(port));
  if (address->sa_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(address)->sin6_port = number;
  } else {
    reinterpret_cast<sockaddr_in*>(address)->sin_port = number;
  }
}

int PortOf(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

// Returns the address without the port. Of IPv6, returns the network, because a host has any number of addresses there.
std::string AddressOf(const sockaddr_storage& from) {
  constexpr size_t kNetworkBytes = 8;
  if (from.ss_family == AF_INET6) {
    const in6_addr& address = reinterpret_cast<const sockaddr_in6&>(from).sin6_addr;
    const auto* const bytes = reinterpret_cast<const char*>(&address);
    return IN6_IS_ADDR_V4MAPPED(&address) ? std::string(bytes, sizeof(address)) : std::string(bytes, kNetworkBytes);
  }
  const in_addr& address = reinterpret_cast<const sockaddr_in&>(from).sin_addr;
  return std::string(reinterpret_cast<const char*>(&address), sizeof(address));
}

// What the kernel knows about a connection.
struct Traffic {
  int64_t silent_ms = 0;  // since the client sent something
  uint64_t received = 0;  // by the client, in bytes
};
bool FindTraffic(int fd, Traffic* traffic) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
  *traffic = {info.tcpi_last_data_recv, info.tcpi_bytes_acked};
  return true;
}

// Shuts down a connection of gRPC if the descriptor still belongs to it; gRPC then closes it. Uses a duplicate of the descriptor,
// because gRPC may close the original at any moment, and its number may be reused.
void EndConnection(int fd, ino_t inode) {
  const int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return;
  if (InodeOf(own) == inode) shutdown(own, SHUT_RDWR);
  close(own);
}

}  // namespace

size_t RaiseFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  if (limit.rlim_cur < limit.rlim_max) {
    const rlimit raised{limit.rlim_max, limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  return limit.rlim_cur;
}

absl::StatusOr<std::unique_ptr<Acceptor>> Acceptor::Bind(const std::string& host, std::string_view port,
                                                         size_t max_connections) {
  PERCOLATOR_ASSIGN_OR_RETURN(const int number, ParsePort(port));
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found); error != 0) {
    return absl::InvalidArgumentError(StrCat("invalid host \"", host, "\": ", gai_strerror(error)));
  }
  std::unique_ptr<Acceptor> acceptor(new Acceptor(max_connections));
  acceptor->port_ = number;
  absl::Status status;
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    SetPort(acceptor->port_, address->ai_addr);
    const absl::Status bound = acceptor->BindOne(address->ai_family, address->ai_addr, address->ai_addrlen);
    if (!bound.ok()) status = bound;
  }
  freeaddrinfo(found);
  if (acceptor->listening_.empty()) return status;
  acceptor->wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  acceptor->reserve_ = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (acceptor->wake_ < 0 || acceptor->reserve_ < 0) {
    return absl::ResourceExhaustedError(StrCat("cannot open a file descriptor: ", std::strerror(errno)));
  }
  return acceptor;
}

absl::Status Acceptor::BindOne(int family, const void* address, size_t size) {
  const int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return absl::UnavailableError(StrCat("cannot open a socket: ", std::strerror(errno)));
  SetOption(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  SetOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);  // inherited by the connections, as the next two
  SetOption(fd, SOL_SOCKET, SO_SNDBUF, kSocketBytes);
  SetOption(fd, SOL_SOCKET, SO_RCVBUF, kSocketBytes);
  if (family == AF_INET6) SetOption(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (bind(fd, static_cast<const sockaddr*>(address), static_cast<socklen_t>(size)) != 0 ||
      listen(fd, SOMAXCONN) != 0) {
    absl::Status status =
        absl::UnavailableError(StrCat("the address is in use or not of this machine (", std::strerror(errno), ")"));
    close(fd);
    return status;
  }
  if (port_ == 0) port_ = PortOf(fd);
  listening_.push_back(fd);
  return absl::OkStatus();
}

Acceptor::~Acceptor() {
  Stop();
  for (const int fd : listening_) close(fd);
  if (wake_ >= 0) close(wake_);
  if (reserve_ >= 0) close(reserve_);
}

void Acceptor::Start(std::unique_ptr<Grpc> grpc, std::function<void()> idle_work) {
  grpc_ = std::move(grpc);
  idle_work_ = std::move(idle_work);
  thread_ = std::thread([this] { Run(); });
}

void Acceptor::Stop() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  while (write(wake_, &one, sizeof(one)) < 0 && errno == EINTR) {
  }
  thread_.join();
  for (const int fd : std::exchange(listening_, {})) close(fd);  // so that new connections are refused at once
}

void Acceptor::Run() {
  std::vector<pollfd> polled;
  polled.reserve(listening_.size() + 1);
  for (const int fd : listening_) polled.push_back({fd, POLLIN, 0});
  polled.push_back({wake_, POLLIN, 0});
  auto idle_worked = Runtime::Real()->Elapsed();
  for (;;) {
    if (poll(polled.data(), polled.size(), static_cast<int>(kBetweenIdleWork.count())) < 0 && errno != EINTR) {
      Runtime::Real()->Sleep(kPauseWithoutFiles);
      continue;
    }
    if (polled.back().revents != 0) return;
    for (const pollfd& one : polled) {
      if (one.fd != wake_ && one.revents != 0) AcceptFrom(one.fd);
    }
    if (Runtime::Real()->Elapsed() - idle_worked < kBetweenIdleWork) continue;
    idle_work_();
    idle_worked = Runtime::Real()->Elapsed();
  }
}

void Acceptor::AcceptFrom(int listening) {
  constexpr int kAtOnce = 64;  // so that Stop need not wait for a flood of connections
  for (int i = 0; i < kAtOnce; ++i) {
    sockaddr_storage from{};
    socklen_t size = sizeof(from);
    const int fd = accept4(listening, reinterpret_cast<sockaddr*>(&from), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      Take(fd, AddressOf(from));
    } else if (OutOfFiles(errno)) {
      return DropOne(listening);
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

void Acceptor::Take(int fd, std::string address) {
  if (connections_.size() >= max_connections_) MakeRoom(address);
  if (connections_.size() >= max_connections_) {
    close(fd);
    return LogError(StrCat("connection refused: limit of ", max_connections_, " connections reached"));
  }
  connections_.push_back({fd, InodeOf(fd), std::move(address), Runtime::Real()->Elapsed()});
  Grpc::NewConnectionParameters parameters;
  parameters.fd = fd;
  grpc_->HandleNewConnection(&parameters);
}

std::string Acceptor::Crowd() const {
  std::map<std::string_view, size_t> counts;
  for (const Connection& one : connections_) {
    if (++counts[one.address] > connections_.size() / 2) return one.address;
  }
  return std::string();
}

void Acceptor::MakeRoom(const std::string& newcomer) {
  const auto now = Runtime::Real()->Elapsed();
  if (now < next_look_) return;
  next_look_ = now + kBetweenLooks;
  std::erase_if(connections_, [](const Connection& one) { return InodeOf(one.fd) != one.inode; });
  if (connections_.size() < max_connections_) return;
  const std::string crowd = Crowd();
  struct Victim {
    int order;
    int64_t rank;  // the smallest is closed first
    size_t index;
    bool operator<(const Victim& other) const { return std::tie(order, rank) < std::tie(other.order, other.rank); }
  };
  std::vector<Victim> victims;
  for (size_t i = 0; i < connections_.size(); ++i) {
    Traffic traffic;
    if (now - connections_[i].since < kIdle || !FindTraffic(connections_[i].fd, &traffic)) continue;
    if (traffic.received < kAnswerBytes) {
      victims.push_back({0, -traffic.silent_ms, i});
    } else if (traffic.silent_ms >= kIdle.count()) {
      victims.push_back({1, -traffic.silent_ms, i});
    } else if (!crowd.empty() && connections_[i].address == crowd && newcomer != crowd) {
      victims.push_back({2, static_cast<int64_t>(traffic.received), i});
    }
  }
  // Closes several at once, because checking all connections is expensive.
  const size_t ended = std::min(victims.size(), std::max<size_t>(1, max_connections_ / 16));
  std::partial_sort(victims.begin(), victims.begin() + static_cast<ptrdiff_t>(ended), victims.end());
  for (size_t i = 0; i < ended; ++i) {
    Connection& one = connections_[victims[i].index];
    EndConnection(one.fd, one.inode);
    one.inode = 0;
  }
  std::erase_if(connections_, [](const Connection& one) { return one.inode == 0; });
  if (ended > 0) {
    LogError(StrCat("limit of ", max_connections_, " connections reached: closed ", ended, " of them"));
  }
}

void Acceptor::DropOne(int listening) {
  LogError("connection dropped: no file descriptor is free; raise the limit of open files (ulimit -n)");
  if (reserve_ >= 0) {
    close(reserve_);
    const int fd = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd >= 0) close(fd);
  }
  reserve_ = open("/dev/null", O_RDONLY | O_CLOEXEC);
  Runtime::Real()->Sleep(kPauseWithoutFiles);
}

void Acceptor::LogError(std::string_view text) {
  const auto now = Runtime::Real()->Elapsed();
  if (now < next_log_) return;
  next_log_ = now + kBetweenLogs;
  gpr_log(GPR_ERROR, "port %d: %.*s", port_, static_cast<int>(text.size()), text.data());
}

}  // namespace percolator
