// SPDX-License-Identifier: Apache-2.0

// HttpServer: the server of the HTTP library, with limits that the library lacks.
//
// The library stores any number of header lines of any length, and its timeout starts again with each byte. HttpServer limits
// the bytes and the time of a request, and the time to send its answer. It does not serve ranges, because one request could
// ask for a file thousands of times.

#ifndef PERCOLATOR_APPS_WEBINDEX_HTTP_SERVER_H_
#define PERCOLATOR_APPS_WEBINDEX_HTTP_SERVER_H_

#include <httplib.h>

#include <chrono>

namespace webindex {

class HttpServer : public httplib::Server {
 public:
  explicit HttpServer(std::chrono::milliseconds request_time) : request_time_(request_time) {}

  // Called for every request after its head is parsed.
  static void DropRanges(httplib::Request& request) { request.ranges.clear(); }

 private:
  bool process_and_close_socket(socket_t socket) override;

  const std::chrono::milliseconds request_time_;
};

}  // namespace webindex

#endif  // PERCOLATOR_APPS_WEBINDEX_HTTP_SERVER_H_
