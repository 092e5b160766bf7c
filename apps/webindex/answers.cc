// SPDX-License-Identifier: Apache-2.0

#include "apps/webindex/answers.h"

#include <httplib.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <system_error>
#include <utility>

#include "apps/webindex/api.h"
#include "apps/webindex/server.h"
#include "apps/webindex/serving.h"
#include "apps/webindex/tables.h"
#include "percolator/cluster.h"
#include "percolator/status_macros.h"

namespace webindex {

using nlohmann::json;
using percolator::Cluster;
using percolator::Snapshot;

namespace {

std::string FileIn(const std::string& data) { return data + "/server.json"; }

json ParsedOrNull(const std::string& text) { return json::parse(text, nullptr, false); }

absl::StatusCode CodeOf(int status) {
  switch (status) {
    case 400:
      return absl::StatusCode::kInvalidArgument;
    case 404:
      return absl::StatusCode::kNotFound;
    case 410:
      return absl::StatusCode::kOutOfRange;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

class FromServer : public Answers {
 public:
  explicit FromServer(int port) : port_(port), client_(kHost, port) { client_.set_read_timeout(60); }

  absl::StatusOr<json> Ask(const std::string& function, const std::map<std::string, std::string>& parameters) override {
    const httplib::Params encoded(parameters.begin(), parameters.end());
    const httplib::Result result = client_.Get("/api/" + function, encoded, httplib::Headers());
    if (!result) {
      return absl::UnavailableError("the server on port " + std::to_string(port_) +
                                    " does not answer: " + httplib::to_string(result.error()));
    }
    json answer = ParsedOrNull(result->body);
    if (!answer.is_object()) return absl::UnavailableError("the answer of the server is not JSON");
    if (result->status != 200) return absl::Status(CodeOf(result->status), answer.value("error", "unknown error"));
    return answer;
  }

 private:
  const int port_;
  httplib::Client client_;
};

class FromCluster : public Answers {
 public:
  FromCluster(const Cluster& cluster, const std::string& data) : api_(cluster, nullptr, &serving_, {.data = data}) {}

  absl::Status Load(const Snapshot& snapshot) { return serving_.Load(snapshot); }

  absl::StatusOr<json> Ask(const std::string& function, const std::map<std::string, std::string>& parameters) override {
    const auto of = [&parameters](const char* name) {
      const auto found = parameters.find(name);
      return found == parameters.end() ? std::string() : found->second;
    };
    if (function == "search") return api_.Search(of("q"), 0, std::stoul("0" + of("limit")));
    if (function == "page") return api_.Page(of("url"));
    return api_.Stats();
  }

 private:
  Serving serving_;
  Api api_;
};

}  // namespace

std::string NewInstance() {
  std::random_device random;
  char text[17];
  std::snprintf(text, sizeof(text), "%08x%08x", random(), random());
  return text;
}

absl::StatusOr<std::unique_ptr<Announcement>> Announcement::Make(const std::string& data, const Presence& presence) {
  std::error_code error;
  std::filesystem::create_directories(data, error);
  const std::string file = FileIn(data);
  const std::string made = file + ".new";
  std::ofstream out(made);
  out << json{{"port", presence.port}, {"instance", presence.instance}}.dump() << "\n";
  out.close();
  std::filesystem::rename(made, file, error);
  if (!out || error) return absl::UnavailableError("cannot write " + file);
  return std::unique_ptr<Announcement>(new Announcement(file));
}

Announcement::~Announcement() {
  std::error_code ignored;
  std::filesystem::remove(file_, ignored);
}

std::optional<Presence> FindServer(const std::string& data) {
  std::ifstream in(FileIn(data));
  const json file = ParsedOrNull({std::istreambuf_iterator<char>(in), {}});
  if (!file.is_object()) return std::nullopt;
  const Presence presence{file.value("port", 0), file.value("instance", "")};
  if (presence.port < 1 || presence.port > 65535) return std::nullopt;
  FromServer server(presence.port);
  const absl::StatusOr<json> status = server.Ask("status", {});
  if (!status.ok() || status->value("instance", "") != presence.instance) return std::nullopt;
  return presence;
}

std::string ClusterIn(const std::string& data) { return "rocksdb:" + data + "/cluster"; }

absl::StatusOr<std::unique_ptr<Answers>> Answers::Open(const std::string& data, const std::string& address) {
  if (const std::optional<Presence> server = FindServer(data); server.has_value()) {
    return std::make_unique<FromServer>(server->port);
  }
  std::error_code error;
  if (address.empty() && !std::filesystem::exists(data + "/cluster", error)) {
    return absl::NotFoundError("there is no index in " + data + ": create it with webindex run --docs FOLDER --data " +
                               data);
  }
  PERCOLATOR_ASSIGN_OR_RETURN(const Cluster cluster, Cluster::Open(address.empty() ? ClusterIn(data) : address));
  PERCOLATOR_RETURN_IF_ERROR(CreateTables(cluster));
  PERCOLATOR_ASSIGN_OR_RETURN(const Snapshot now, cluster.GetSnapshot());
  auto answers = std::make_unique<FromCluster>(cluster, data);
  PERCOLATOR_RETURN_IF_ERROR(answers->Load(now));
  return answers;
}

}  // namespace webindex
