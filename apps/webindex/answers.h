// Answers for the command line: from the server that runs on a data folder, or else from the folder itself.
//
// A server writes where it listens into a file of its data folder. A file that is left over from one that has died is
// recognised: nobody answers there, or somebody else.

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

// A server that runs.
struct Presence {
  int port = 0;
  std::string instance;  // ApiOptions::instance
};

// A new name for an instance.
std::string NewInstance();

// Keeps the file in the data folder while it lives.
class Announcement {
 public:
  static absl::StatusOr<std::unique_ptr<Announcement>> Make(const std::string& data, const Presence& presence);
  ~Announcement();

 private:
  explicit Announcement(std::string file) : file_(std::move(file)) {}
  const std::string file_;
};

// The server that runs on the data folder, if one does.
std::optional<Presence> FindServer(const std::string& data);

// The address of the cluster in a data folder.
std::string ClusterIn(const std::string& data);

class Answers {
 public:
  // From the server on the data folder, or from the cluster at the address; empty: the one in the data folder. kNotFound: there
  // is no index. kFailedPrecondition: it is in use, but by no server that answers.
  static absl::StatusOr<std::unique_ptr<Answers>> Open(const std::string& data, const std::string& address);
  virtual ~Answers() = default;

  // What /api/`function` answers to these parameters: search, page or stats.
  virtual absl::StatusOr<nlohmann::json> Ask(const std::string& function,
                                             const std::map<std::string, std::string>& parameters) = 0;
};

}  // namespace webindex

#endif  // PERCOLATOR_APPS_WEBINDEX_ANSWERS_H_
