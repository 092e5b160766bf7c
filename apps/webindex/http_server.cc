// SPDX-License-Identifier: Apache-2.0

#include "apps/webindex/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

namespace webindex {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr size_t kRequestBytes = 64 << 10;
constexpr milliseconds kSendTime = std::chrono::seconds(60);  // for a whole answer
constexpr milliseconds kStopLook = milliseconds(100);  // how often an idle connection checks whether the server stops

class Connection : public httplib::Stream {
 public:
  explicit Connection(socket_t socket) : socket_(socket) {}

  // Returns true if a request begins within the time.
  bool WaitForRequest(milliseconds time) const { return begin_ < end_ || Poll(POLLIN, steady_clock::now() + time); }

  void BeginRequest(milliseconds time) {
    bytes_left_ = kRequestBytes;
    receive_until_ = steady_clock::now() + time;
    sending_ = false;
  }

  // True if a request was cut off. The bytes after it are not a request.
  bool cut_off() const { return cut_off_; }

  bool is_readable() const override { return begin_ < end_ || Poll(POLLIN, receive_until_); }
  bool is_writable() const override { return Poll(POLLOUT, sending_ ? send_until_ : steady_clock::now() + kSendTime); }

  ssize_t read(char* bytes, size_t size) override {
    if (begin_ == end_ && !Receive()) return cut_off_ ? -1 : 0;
    const size_t count = std::min({size, end_ - begin_, bytes_left_});
    if (count == 0) {
      cut_off_ = true;
      return -1;
    }
    std::memcpy(bytes, buffer_.data() + begin_, count);
    begin_ += count;
    bytes_left_ -= count;
    return static_cast<ssize_t>(count);
  }

  ssize_t write(const char* bytes, size_t size) override {
    if (!sending_) send_until_ = steady_clock::now() + kSendTime;
    sending_ = true;
    if (!Poll(POLLOUT, send_until_)) return -1;
    return send(socket_, bytes, size, MSG_NOSIGNAL);
  }

  void get_remote_ip_and_port(std::string& ip, int& port) const override { Name(getpeername, ip, port); }
  void get_local_ip_and_port(std::string& ip, int& port) const override { Name(getsockname, ip, port); }
  socket_t socket() const override { return socket_; }

 private:
  // Returns true if bytes came, and false if the other side has closed or the time is over.
  bool Receive() {
    if (!Poll(POLLIN, receive_until_)) {
      cut_off_ = true;
      return false;
    }
    const ssize_t got = recv(socket_, buffer_.data(), buffer_.size(), 0);
    if (got < 0) cut_off_ = true;
    begin_ = 0;
    end_ = static_cast<size_t>(std::max<ssize_t>(got, 0));
    return got > 0;
  }

  bool Poll(short events, steady_clock::time_point until) const {
    for (;;) {
      const auto left = std::chrono::ceil<milliseconds>(until - steady_clock::now());
      pollfd one{.fd = socket_, .events = events, .revents = 0};
      const int ready = poll(&one, 1, static_cast<int>(std::max(left, milliseconds(0)).count()));
      if (ready > 0) return true;
      if (ready == 0 || errno != EINTR) return false;
    }
  }

  void Name(int (*get)(int, sockaddr*, socklen_t*), std::string& ip, int& port) const {
    sockaddr_in address{};
    socklen_t size = sizeof(address);
    char text[INET_ADDRSTRLEN] = "";
    if (get(socket_, reinterpret_cast<sockaddr*>(&address), &size) != 0 || address.sin_family != AF_INET) return;
    ip = inet_ntop(AF_INET, &address.sin_addr, text, sizeof(text));
    port = ntohs(address.sin_port);
  }

  const socket_t socket_;
  std::array<char, 4096> buffer_;
  size_t begin_ = 0;  // of the bytes that were received and not read
  size_t end_ = 0;
  size_t bytes_left_ = 0;  // until the limit of the request
  steady_clock::time_point receive_until_;
  steady_clock::time_point send_until_;
  bool sending_ = false;
  bool cut_off_ = false;
};

}  // namespace

bool HttpServer::process_and_close_socket(socket_t socket) {
  Connection connection(socket);
  bool good = false;
  for (size_t left = keep_alive_max_count_; left > 0; --left) {
    milliseconds idle = std::chrono::seconds(keep_alive_timeout_sec_);
    while (idle > milliseconds(0) && svr_sock_ != INVALID_SOCKET && !connection.WaitForRequest(kStopLook)) {
      idle -= kStopLook;
    }
    if (idle <= milliseconds(0) || svr_sock_ == INVALID_SOCKET) break;
    connection.BeginRequest(request_time_);
    bool closed = false;
    good = process_request(connection, /*close_connection=*/left == 1, closed, DropRanges);
    if (!good || closed || connection.cut_off()) break;
  }
  shutdown(socket, SHUT_RDWR);
  close(socket);
  return good;
}

}  // namespace webindex
