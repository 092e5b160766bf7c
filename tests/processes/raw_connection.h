// SPDX-License-Identifier: Apache-2.0

// A TCP connection to a server of this machine, and the frames of HTTP/2, for tests that send what no client of gRPC
// would.

#ifndef PERCOLATOR_TESTS_PROCESSES_RAW_CONNECTION_H_
#define PERCOLATOR_TESTS_PROCESSES_RAW_CONNECTION_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace percolator {

inline constexpr std::string_view kHttp2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
inline constexpr uint8_t kHttp2Data = 0;
inline constexpr uint8_t kHttp2Headers = 1;
inline constexpr uint8_t kHttp2Settings = 4;
inline constexpr uint8_t kHttp2Ping = 6;

std::string Http2Frame(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload);
// The first bytes of a client.
std::string Http2Begin();
// The headers of a call of a method, /package.Service/Method. Its message would follow.
std::string Http2Call(uint32_t stream, std::string_view method);

class RawConnection {
 public:
  explicit RawConnection(int port);
  RawConnection(RawConnection&& other) noexcept;
  RawConnection& operator=(RawConnection&&) = delete;
  ~RawConnection();

  bool connected() const { return connected_; }
  // Sends the bytes, as far as the other end accepts them.
  void Send(std::string_view bytes);
  // Reads until the other end closes. Returns false if it is silent for that time without closing.
  bool WaitForClose(std::chrono::milliseconds patience);
  // After Http2Begin: sends a ping and reads until it is answered, so that the server has processed everything sent
  // before.
  bool WaitUntilHeard(std::chrono::milliseconds patience);

 private:
  // Reads available bytes. Empty if the other end has closed, or is silent for that time.
  std::string Receive(std::chrono::milliseconds patience, bool* closed);

  int fd_ = -1;
  bool connected_ = false;
};

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_PROCESSES_RAW_CONNECTION_H_
