// SPDX-License-Identifier: Apache-2.0

// The web server: the web page and its API, on loopback only.
//
//     GET /  /page?url=URL  /pipeline          the web page; its address chooses the view
//     GET /api/search?q=WORDS&offset=&limit=   JSON, see api.h; an error is {"error": "..."} with an HTTP status
//         /api/page?url=URL&at=TIMESTAMP
//         /api/pipeline  /api/stats  /api/status
//     GET /files/URL                           the original file
//
// It listens on 127.0.0.1, and answers only requests to this name, localhost or [::1], so an attacker cannot point another name
// here. The web page loads scripts, styles and data only from this server. Original files are not trusted, so they may run no
// scripts, submit no forms and load nothing from other servers. A request may have 64 KiB in total, and must be complete within
// `request_time`; otherwise the server closes its connection.

#ifndef PERCOLATOR_APPS_WEBINDEX_SERVER_H_
#define PERCOLATOR_APPS_WEBINDEX_SERVER_H_

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "apps/webindex/api.h"

namespace httplib {
class Server;
}  // namespace httplib

namespace webindex {

inline constexpr char kHost[] = "127.0.0.1";
inline constexpr int kDefaultPort = 8080;

struct ServerOptions {
  // Zero means any free port. Absent means kDefaultPort, or the next free port if that is taken.
  std::optional<int> port;
  std::string folder;  // of original files
  std::chrono::milliseconds request_time = std::chrono::seconds(10);
};

// Makes a server of the library answer requests like a Server; for tests that bring requests in another way than sockets. `api`
// and `folder` must outlive it.
void AnswerRequests(const Api* api, const std::string* folder, httplib::Server* http);

class Server {
 public:
  // `api` must outlive it.
  Server(Api* api, ServerOptions options);
  ~Server();  // stops

  // Starts to answer. Returns the port, or Unavailable if it is taken.
  absl::StatusOr<int> Start();
  // Waits for the running requests, and stops.
  void Stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace webindex

#endif  // PERCOLATOR_APPS_WEBINDEX_SERVER_H_
