// The HTTP library's server, with the bounds that the library lacks.
//
// The library stores the lines of a request's head as they come, however many and however long they are, and waits for each
// next byte anew. Here a request has a limit of bytes and of time, and so has the sending of its answer. Ranges are not
// served: one request could ask for a file thousands of times.

#ifndef PERCOLATOR_APPS_WEBINDEX_HTTP_SERVER_H_
#define PERCOLATOR_APPS_WEBINDEX_HTTP_SERVER_H_

#include <httplib.h>

#include <chrono>

namespace webindex {

class HttpServer : public httplib::Server {
 public:
  explicit HttpServer(std::chrono::milliseconds request_time) : request_time_(request_time) {}

  // Done to every request after its head is parsed.
  static void DropRanges(httplib::Request& request) { request.ranges.clear(); }

 private:
  bool process_and_close_socket(socket_t socket) override;

  const std::chrono::milliseconds request_time_;
};

}  // namespace webindex

#endif  // PERCOLATOR_APPS_WEBINDEX_HTTP_SERVER_H_
