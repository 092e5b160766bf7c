// SPDX-License-Identifier: Apache-2.0

// Requests to the web index's server, as bytes of a connection: the library parses them, and the server answers, with
// an index of one document. Whatever the request, each answer has the headers that protect the page, no file outside of
// the folder is returned, and no part of a file is repeated.
#include <httplib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "apps/webindex/api.h"
#include "apps/webindex/assets.h"
#include "apps/webindex/document.pb.h"
#include "apps/webindex/http_server.h"
#include "apps/webindex/server.h"
#include "apps/webindex/serving.h"
#include "tests/fuzz/check.h"

namespace webindex {

using nlohmann::json;

// The answers have no cluster.
Api::Api(const percolator::Cluster& cluster, percolator::Worker* worker, const Serving* serving, ApiOptions options)
    : cluster_(cluster), worker_(worker), serving_(serving), options_(std::move(options)) {}

absl::StatusOr<json> Api::Search(std::string_view query, size_t offset, size_t limit) const {
  if (query.size() > kMaxQueryBytes || limit > kMaxHits || offset > kMaxOffset) {
    return absl::InvalidArgumentError("too much");
  }
  const SearchResults results = serving_->Search(
      query, offset, limit, [](const std::vector<std::string>& urls) { return std::vector<double>(urls.size(), 1); });
  json hits = json::array();
  for (const Hit& hit : results.hits) {
    for (const Hit::Piece& piece : hit.snippet) hits.push_back(piece.text);
  }
  return json{{"query", query}, {"terms", results.terms}, {"hits", std::move(hits)}};
}

absl::StatusOr<json> Api::Page(const std::string& url, std::optional<uint64_t> at) const {
  return json{{"url", url}, {"at", at.value_or(0)}};
}

absl::StatusOr<json> Api::Pipeline() const { return absl::FailedPreconditionError("no worker"); }
absl::StatusOr<json> Api::Stats() const { return json::object(); }
json Api::Status() const { return json::object(); }
void Api::Sample() {}

std::string_view Asset(std::string_view name) { return name == "index.html" ? "<!doctype html>" : ""; }

namespace {

constexpr std::string_view kSecret = "must not be shown";

void WriteFile(const std::string& path, std::string_view text) {
  std::FILE* const out = std::fopen(path.c_str(), "w");
  FUZZ_CHECK(out != nullptr);
  std::fwrite(text.data(), 1, text.size(), out);
  std::fclose(out);
}

// A folder "in" with a file, a hidden file and a link to a secret beside it.
std::string MakeFolder() {
  char name[] = "/tmp/fuzz_http.XXXXXX";
  FUZZ_CHECK(mkdtemp(name) != nullptr);
  static std::string root;
  root = name;
  mkdir((root + "/in").c_str(), 0700);
  WriteFile(root + "/secret", kSecret);
  WriteFile(root + "/in/.h", kSecret);
  WriteFile(root + "/in/a.html", "<p>shown");
  FUZZ_CHECK(symlink("../secret", (root + "/in/l").c_str()) == 0);
  std::atexit([] {
    for (const char* file : {"/secret", "/in/.h", "/in/a.html", "/in/l"}) unlink((root + file).c_str());
    for (const char* folder : {"/in", ""}) rmdir((root + folder).c_str());
  });
  return root + "/in";
}

// A connection that delivers these bytes, and keeps the answer.
class Bytes : public httplib::Stream {
 public:
  explicit Bytes(std::string_view asked) : asked_(asked) {}

  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  ssize_t read(char* out, size_t size) override {
    const size_t n = std::min(size, asked_.size());
    std::memcpy(out, asked_.data(), n);
    asked_.remove_prefix(n);
    return static_cast<ssize_t>(n);
  }
  ssize_t write(const char* bytes, size_t size) override {
    answered_.append(bytes, size);
    return static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip = kHost;
    port = 1;
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override { get_remote_ip_and_port(ip, port); }
  socket_t socket() const override { return -1; }

  bool is_over() const { return asked_.empty(); }
  std::string TakeAnswer() { return std::exchange(answered_, {}); }

 private:
  std::string_view asked_;
  std::string answered_;
};

class FuzzedServer : public httplib::Server {
 public:
  // A cluster without an engine: it is never called, so no module of it is linked.
  FuzzedServer() : folder_(MakeFolder()), api_(percolator::Cluster(nullptr), nullptr, &serving_, {}) {
    Change change;
    change.set_url("a.html");
    change.set_version(1);
    Indexed* const document = change.mutable_document();
    document->set_url("a.html");
    document->set_title("Apples");
    document->set_body("an apple a day keeps pears away");
    document->set_length(8);
    for (const char* term : {"apple", "day", "pears"}) {
      IndexedTerm* const indexed = document->add_terms();
      indexed->set_term(term);
      indexed->mutable_posting()->set_body(1);
    }
    FUZZ_CHECK(
        serving_.Apply({.shard = 0, .sequence = 1, .key = "a.html", .payload = change.SerializeAsString()}).ok());
    set_payload_max_length(64 << 10);
    AnswerRequests(&api_, &folder_, this);
  }

  void Take(std::string_view bytes) {
    Bytes stream(bytes);
    for (bool closed = false; !closed && !stream.is_over();) {
      if (!process_request(stream, false, closed, HttpServer::DropRanges)) closed = true;
      const std::string answer = stream.TakeAnswer();
      FUZZ_CHECK(answer.empty() || answer.starts_with("HTTP/1.1 "));
      FUZZ_CHECK(answer.find(kSecret) == std::string::npos);
      FUZZ_CHECK(!answer.starts_with("HTTP/1.1 206") || answer.find("multipart/byteranges") == std::string::npos);
      FUZZ_CHECK(!answer.starts_with("HTTP/1.1 200") || answer.find("Content-Security-Policy: ") != std::string::npos);
    }
  }

 private:
  const std::string folder_;
  Serving serving_;
  const Api api_;
};

}  // namespace
}  // namespace webindex

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static webindex::FuzzedServer* const kServer = new webindex::FuzzedServer;
  kServer->Take(percolator::ToText(data, size));
  return 0;
}
