// The web server: the page and what it asks for, on this machine only.
//
//     GET /  /page?url=URL  /pipeline          the page; which view it shows, it finds in its address
//     GET /api/search?q=WORDS&offset=&limit=   JSON, see api.h; an error is {"error": "..."} with a fitting status
//         /api/page?url=URL&at=TIMESTAMP
//         /api/pipeline  /api/stats  /api/status
//     GET /files/URL                           the original file
//
// It listens on 127.0.0.1, and answers only requests to this name, localhost or [::1]: another site, whose name an attacker
// makes lead here, is refused. The page takes scripts, styles and data from nowhere but this server. Original files are
// somebody else's, so they are shown without rights: no scripts, no forms, nothing from elsewhere. A request may have 64 KiB
// in all, and has to be complete in `request_time`; otherwise its connection is closed.

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
  // Zero: any. Absent: kDefaultPort or, if that is taken, the next free one.
  std::optional<int> port;
  std::string folder;  // of original files
  std::chrono::milliseconds request_time = std::chrono::seconds(10);
};

// Makes a server of the library answer requests as a Server does, which takes them from sockets; for tests that bring requests
// another way. Both must outlive it.
void AnswerRequests(const Api* api, const std::string* folder, httplib::Server* http);

class Server {
 public:
  // `api` must outlive it.
  Server(Api* api, ServerOptions options);
  ~Server();  // stops

  // Begins to answer; returns the port. kUnavailable: it is taken.
  absl::StatusOr<int> Start();
  // Ends the requests under way, and returns.
  void Stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace webindex

#endif  // PERCOLATOR_APPS_WEBINDEX_SERVER_H_
