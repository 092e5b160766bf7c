// SPDX-License-Identifier: Apache-2.0

#include "tests/processes/raw_connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

namespace percolator {
namespace {

constexpr uint8_t kEndHeaders = 4;
constexpr std::string_view kPing = "percolat";  // eight bytes

// Strings of HPACK (RFC 7541) without compression; all strings here are short.
std::string HpackString(std::string_view text) {
  return std::string(1, static_cast<char>(text.size())) + std::string(text);
}

}  // namespace

std::string Http2Frame(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload) {
  std::string frame;
  for (const int shift : {16, 8, 0}) frame += static_cast<char>(payload.size() >> shift);
  frame += static_cast<char>(type);
  frame += static_cast<char>(flags);
  for (const int shift : {24, 16, 8, 0}) frame += static_cast<char>(stream >> shift);
  return frame += payload;
}

std::string Http2Begin() { return std::string(kHttp2Preface) + Http2Frame(kHttp2Settings, 0, 0, ""); }

std::string Http2Call(uint32_t stream, std::string_view method) {
  std::string headers = "\x83\x86";                                      // :method POST, :scheme http
  headers += '\x04' + HpackString(method);                               // :path
  headers += '\x01' + HpackString("localhost");                          // :authority
  headers += std::string("\x0f\x10") + HpackString("application/grpc");  // content-type
  headers += '\0' + HpackString("te") + HpackString("trailers");
  return Http2Frame(kHttp2Headers, kEndHeaders, stream, headers);
}

RawConnection::RawConnection(int port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  connected_ = fd_ >= 0 && connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
}

RawConnection::RawConnection(RawConnection&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), connected_(std::exchange(other.connected_, false)) {}

RawConnection::~RawConnection() {
  if (fd_ >= 0) close(fd_);
}

void RawConnection::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

std::string RawConnection::Receive(std::chrono::milliseconds patience, bool* closed) {
  char chunk[4096];
  pollfd wanted{fd_, POLLIN, 0};
  if (poll(&wanted, 1, static_cast<int>(patience.count())) <= 0) return {};
  const ssize_t received = recv(fd_, chunk, sizeof(chunk), 0);
  *closed = received <= 0;
  return *closed ? std::string() : std::string(chunk, static_cast<size_t>(received));
}

bool RawConnection::WaitForClose(std::chrono::milliseconds patience) {
  bool closed = false;
  while (!Receive(patience, &closed).empty()) {
  }
  return closed;
}

bool RawConnection::WaitUntilHeard(std::chrono::milliseconds patience) {
  Send(Http2Frame(kHttp2Ping, 0, 0, kPing));
  std::string received;
  bool closed = false;
  while (received.find(kPing) == std::string::npos) {
    const std::string more = Receive(patience, &closed);
    if (more.empty()) return false;
    received += more;
  }
  return true;
}

}  // namespace percolator
