// SPDX-License-Identifier: Apache-2.0

#include "apps/webindex/server.h"

#include <httplib.h>
#include <sys/socket.h>

#include <charconv>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>
#include <utility>

#include "apps/webindex/assets.h"
#include "apps/webindex/http_server.h"
#include "apps/webindex/originals.h"
#include "apps/webindex/url.h"
#include "percolator/status_macros.h"

namespace webindex {

using httplib::Request;
using httplib::Response;
using nlohmann::json;

namespace {

constexpr int kPortsTried = 100;
constexpr size_t kBodyBytes = 64 << 10;  // a limit; no request needs a body
constexpr int kThreads = 24;             // a browser keeps several connections open, and each has a thread
constexpr char kJson[] = "application/json";

constexpr char kPagePolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'";
// A file keeps its origin, so that its styles and images load. Without scripts it cannot use the origin for anything else.
constexpr char kFilePolicy[] =
    "sandbox allow-same-origin; default-src 'none'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; font-src "
    "'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

int HttpStatusOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
      return 400;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kOutOfRange:
      return 410;
    case absl::StatusCode::kResourceExhausted:
      return 413;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kFailedPrecondition:
      return 503;
    default:
      return 500;
  }
}

void SetCommonHeaders(Response& response, const char* policy) {
  response.set_header("Content-Security-Policy", policy);
  response.set_header("X-Content-Type-Options", "nosniff");
  response.set_header("Referrer-Policy", "no-referrer");
  response.set_header("Cross-Origin-Resource-Policy", "same-origin");
  response.set_header("Cache-Control", "no-store");
}

// Replaces invalid UTF-8, because the text of pages may be anything.
void SetJson(Response& response, const json& value) {
  response.set_content(value.dump(-1, ' ', false, json::error_handler_t::replace), kJson);
}

void SetError(Response& response, int status, std::string_view message) {
  response.status = status;
  SetJson(response, {{"error", message}});
}

void SetError(Response& response, const absl::Status& status) {
  SetError(response, HttpStatusOf(status.code()), std::string(status.message()));
}

void SetAnswer(Response& response, const absl::StatusOr<json>& answer) {
  if (answer.ok()) {
    SetJson(response, *answer);
  } else {
    SetError(response, answer.status());
  }
}

// The host of "host:port". The port may be missing.
bool IsThisMachine(std::string_view host) {
  const size_t colon = host.rfind(':');
  if (colon != std::string_view::npos && host.find(']', colon) == std::string_view::npos) host = host.substr(0, colon);
  return host == "localhost" || host == kHost || host == "[::1]";
}

// Returns the number in a parameter, `otherwise` if the parameter is missing, or InvalidArgument if it is not a number.
absl::StatusOr<uint64_t> Number(const Request& request, const char* name, uint64_t otherwise) {
  if (!request.has_param(name)) return otherwise;
  const std::string text = request.get_param_value(name);
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    return absl::InvalidArgumentError("the parameter " + std::string(name) + " is not a number");
  }
  return number;
}

absl::StatusOr<json> AnswerSearch(const Api& api, const Request& request) {
  PERCOLATOR_ASSIGN_OR_RETURN(const uint64_t offset, Number(request, "offset", 0));
  PERCOLATOR_ASSIGN_OR_RETURN(const uint64_t limit, Number(request, "limit", 10));
  return api.Search(request.get_param_value("q"), offset, limit);
}

absl::StatusOr<json> AnswerPage(const Api& api, const Request& request) {
  const std::string url = request.get_param_value("url");
  if (url.empty() || url.size() > kLongestUrl || url.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError("the parameter url is missing, too long, or not the url of a page");
  }
  if (!request.has_param("at")) return api.Page(url);
  PERCOLATOR_ASSIGN_OR_RETURN(const uint64_t at, Number(request, "at", 0));
  return api.Page(url, at);
}

absl::StatusOr<json> AnswerApi(const Api& api, const Request& request) {
  const std::string_view what = std::string_view(request.path).substr(std::string_view("/api/").size());
  if (what == "search") return AnswerSearch(api, request);
  if (what == "page") return AnswerPage(api, request);
  if (what == "pipeline") return api.Pipeline();
  if (what == "stats") return api.Stats();
  if (what == "status") return api.Status();
  return absl::NotFoundError("there is no such function: use search, page, pipeline, stats or status");
}

void AnswerFile(const std::string& folder, const std::string& path, Response& response) {
  const absl::StatusOr<std::string> contents = ReadOriginal(folder, path);
  if (!contents.ok()) {
    SetError(response, contents.status());
    return;
  }
  response.set_content(*contents, ContentTypeOf(path));
}

void AnswerAsset(const std::string& path, Response& response) {
  const bool is_view = path == "/" || path == "/page" || path == "/pipeline";
  const std::string name = is_view ? "index.html" : path.substr(1);
  const std::string_view bytes = Asset(name);
  if (bytes.empty()) {
    SetError(response, 404, "there is no such address");
    return;
  }
  response.set_content(bytes.data(), bytes.size(), ContentTypeOf(name) + "; charset=utf-8");
}

void Answer(const Api& api, const std::string& folder, const Request& request, Response& response) {
  constexpr std::string_view kFiles = "/files/";
  const bool is_file = request.path.starts_with(kFiles);
  SetCommonHeaders(response, is_file ? kFilePolicy : kPagePolicy);
  if (!IsThisMachine(request.get_header_value("Host"))) {
    SetError(response, 403, "this server answers only to 127.0.0.1 and localhost");
  } else if (request.method != "GET" && request.method != "HEAD") {
    response.set_header("Connection", "close");  // because the body of the request is not read
    SetError(response, 405, "this server answers only GET and HEAD");
  } else if (is_file) {
    AnswerFile(folder, request.path.substr(kFiles.size()), response);
  } else if (request.path.starts_with("/api/")) {
    SetAnswer(response, AnswerApi(api, request));
  } else {
    AnswerAsset(request.path, response);
  }
}

// Sets only SO_REUSEADDR. With SO_REUSEPORT, the default of the library, a second server would share the port.
void SetSocketOptions(socket_t socket) {
  const int yes = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
}

}  // namespace

// One function receives all requests and compares strings, because the routes of the library are regular expressions.
void AnswerRequests(const Api* api, const std::string* folder, httplib::Server* http) {
  http->set_pre_routing_handler([api, folder](const Request& request, Response& response) {
    Answer(*api, *folder, request, response);
    return httplib::Server::HandlerResponse::Handled;
  });
  http->set_error_handler([](const Request&, Response& response) {
    if (!response.body.empty()) return;
    SetCommonHeaders(response, kPagePolicy);
    SetError(response, response.status, "the request is malformed");
  });
  http->set_exception_handler([](const Request&, Response& response, const std::exception_ptr&) {
    SetError(response, 500, "internal error of the server");
  });
}

class Server::Impl {
 public:
  Impl(Api* api, ServerOptions options) : api_(api), options_(std::move(options)), http_(options_.request_time) {}
  ~Impl() { Stop(); }

  absl::StatusOr<int> Start();
  void Stop();

 private:
  void SetHandlers();
  absl::StatusOr<int> Bind();
  void Tick();

  Api* const api_;
  const ServerOptions options_;
  HttpServer http_;
  std::thread listener_;
  std::thread ticker_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;  // protected by mutex_
};

void Server::Impl::SetHandlers() {
  http_.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  http_.set_socket_options(SetSocketOptions);
  http_.set_keep_alive_timeout(2);
  http_.set_payload_max_length(kBodyBytes);
  http_.set_keep_alive_max_count(1000);
  AnswerRequests(api_, &options_.folder, &http_);
}

absl::StatusOr<int> Server::Impl::Bind() {
  if (options_.port == 0) {
    const int port = http_.bind_to_any_port(kHost);
    if (port > 0) return port;
    return absl::UnavailableError("cannot listen on 127.0.0.1: no port is free");
  }
  const int first = options_.port.value_or(kDefaultPort);
  const int last = options_.port.has_value() ? first : first + kPortsTried;
  for (int port = first; port <= last; ++port) {
    if (http_.bind_to_port(kHost, port)) return port;
  }
  if (options_.port.has_value()) {
    return absl::UnavailableError("port " + std::to_string(first) + " is taken: --port 0 uses any free port");
  }
  return absl::UnavailableError("ports " + std::to_string(first) + " to " + std::to_string(last) +
                                " are taken: --port 0 uses any free port");
}

absl::StatusOr<int> Server::Impl::Start() {
  SetHandlers();
  PERCOLATOR_ASSIGN_OR_RETURN(const int port, Bind());
  listener_ = std::thread([this] { http_.listen_after_bind(); });
  while (!http_.is_running())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // before, stop() has no effect
  ticker_ = std::thread([this] { Tick(); });
  return port;
}

void Server::Impl::Tick() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    lock.unlock();
    api_->Sample();
    lock.lock();
    stopped_.wait_for(lock, std::chrono::seconds(1), [this] { return stop_; });
  }
}

void Server::Impl::Stop() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  stopped_.notify_all();
  if (ticker_.joinable()) ticker_.join();
  if (listener_.joinable()) {
    http_.stop();
    listener_.join();
  }
}

Server::Server(Api* api, ServerOptions options) : impl_(std::make_unique<Impl>(api, std::move(options))) {}
Server::~Server() = default;
absl::StatusOr<int> Server::Start() { return impl_->Start(); }
void Server::Stop() { impl_->Stop(); }

}  // namespace webindex
