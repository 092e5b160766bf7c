// SPDX-License-Identifier: Apache-2.0

// Answers for the command line, from the server that runs on a data folder. If none runs, from the folder itself.
//
// A server writes its port and instance to a file in its data folder. The file of a server that has died is recognised: no
// server answers at the port, or one with another instance.

#ifndef PERCOLATOR_APPS_WEBINDEX_ANSWERS_H_
#define PERCOLATOR_APPS_WEBINDEX_ANSWERS_H_

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace webindex {

// A running server.
struct Presence {
  int port = 0;
  std::string instance;  // ApiOptions::instance
};

// A new name for an instance.
std::string NewInstance();

// Writes the file of the server to the data folder. Its destructor removes the file.
class Announcement {
 public:
  static absl::StatusOr<std::unique_ptr<Announcement>> Make(const std::string& data, const Presence& presence);
  ~Announcement();

 private:
  explicit Announcement(std::string file) : file_(std::move(file)) {}
  const std::string file_;
};

// Returns the running server of the data folder, or nullopt if there is none.
std::optional<Presence> FindServer(const std::string& data);

// The address of the cluster in a data folder.
std::string ClusterIn(const std::string& data);

class Answers {
 public:
  // Uses the server on the data folder, otherwise the cluster at the address, or that in the data folder if the address is
  // empty. Returns NotFound if there is no index, and FailedPrecondition if it is in use but no server answers.
  static absl::StatusOr<std::unique_ptr<Answers>> Open(const std::string& data, const std::string& address);
  virtual ~Answers() = default;

  // Returns the answer of /api/`function` to these parameters. `function` is search, page or stats.
  virtual absl::StatusOr<nlohmann::json> Ask(const std::string& function,
                                             const std::map<std::string, std::string>& parameters) = 0;
};

}  // namespace webindex

#endif  // PERCOLATOR_APPS_WEBINDEX_ANSWERS_H_
