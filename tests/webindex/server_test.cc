// SPDX-License-Identifier: Apache-2.0

// The server, with a client that sends exactly the bytes of the test: its answers, and what it must not reveal.

#include "apps/webindex/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "apps/webindex/answers.h"
#include "apps/webindex/api.h"
#include "apps/webindex/document.pb.h"
#include "apps/webindex/index.h"
#include "apps/webindex/print.h"
#include "apps/webindex/tables.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace webindex {
namespace {

using nlohmann::json;
using percolator::IsOk;
using percolator::ReadWrite;
using percolator::StatusIs;
using percolator::TempDir;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

struct Reply {
  int status = 0;  // zero: the connection was closed without a status
  std::string headers;
  std::string body;

  json parsed() const { return json::parse(body, nullptr, false); }
};

// Returns the file descriptor of a connection to the port, or a negative number.
int Connect(int port) {
  const int connection = socket(AF_INET, SOCK_STREAM, 0);
  const timeval patience{.tv_sec = 120, .tv_usec = 0};
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return connection;
  close(connection);
  return -1;
}

// Sends the bytes to the port and reads until the other side closes.
std::string Exchange(int port, const std::string& bytes) {
  const int connection = Connect(port);
  std::string answer;
  if (connection >= 0) {
    for (size_t sent = 0; sent < bytes.size();) {
      const ssize_t done = send(connection, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (done <= 0) break;
      sent += static_cast<size_t>(done);
    }
    char buffer[4096];
    for (ssize_t got = 0; (got = recv(connection, buffer, sizeof(buffer), 0)) > 0;) answer.append(buffer, got);
  }
  close(connection);
  return answer;
}

// Sends `start`, then `again` until the other side closes or this many bytes are sent. Returns the number of bytes
// sent.
size_t SendWithoutEnd(int port, const std::string& start, const std::string& again, size_t most) {
  const int connection = Connect(port);
  size_t total = 0;
  std::string bytes = start;
  while (connection >= 0 && total < most) {
    const ssize_t done = send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (done <= 0) break;
    total += static_cast<size_t>(done);
    bytes = again;
  }
  close(connection);
  return total;
}

Reply Send(int port, const std::string& method, const std::string& target, const std::string& host = "127.0.0.1") {
  const std::string answer =
      Exchange(port, method + " " + target + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n");
  Reply reply;
  const size_t end = answer.find("\r\n\r\n");
  if (end == std::string::npos) return reply;
  reply.status = std::atoi(answer.c_str() + std::string("HTTP/1.1 ").size());
  reply.headers = answer.substr(0, end);
  reply.body = answer.substr(end + 4);
  return reply;
}

void WriteFile(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

class ServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    docs_ = dir_.path() + "/docs";
    WriteFile(docs_ + "/a.html", "<title>Apples</title><p>An apple a day. <a href=b/c.html>pears &amp; plums</a>");
    WriteFile(docs_ + "/b/c.html", "<title><script>alert(1)</script></title><p>Pears \xff\xfe and <b>plums</b>.");
    WriteFile(docs_ + "/copy.html", "<title>Apples</title><p>An apple a day. <a href=b/c.html>pears &amp; plums</a>");
    WriteFile(docs_ + "/style.css", "p { color: red }");
    WriteFile(dir_.path() + "/secret.txt", "secret");
    auto index = WebIndex::Open({.address = "memory:", .crawl = {.folder = docs_}});
    ASSERT_THAT(index, IsOk());
    index_ = *std::move(index);
    api_ = std::make_unique<Api>(index_->cluster(), &index_->worker(), &index_->serving(),
                                 ApiOptions{.folder = docs_, .instance = "this one"});
    server_ = std::make_unique<Server>(api_.get(), ServerOptions{.port = 0, .folder = docs_});
    const absl::StatusOr<int> port = server_->Start();
    ASSERT_THAT(port, IsOk());
    port_ = *port;
  }

  void TearDown() override {
    server_.reset();
    index_.reset();
  }

  // Loads a page like a crawl.
  void Load(const std::string& url) {
    std::ifstream in(docs_ + "/" + url);
    const std::string contents{std::istreambuf_iterator<char>(in), {}};
    FileStat stat;
    stat.set_bytes(contents.size());
    stat.set_loaded_micros(
        std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
            .count());
    ASSERT_THAT(index_->cluster().Transact([&](ReadWrite& t) {
      t.Set(kContents, url, contents);
      t.Set(kStat, url, stat);
    }),
                IsOk());
  }

  void LoadAll() {
    for (const char* url : {"a.html", "b/c.html", "copy.html"}) Load(url);
    ASSERT_THAT(index_->WaitUntilIdle(std::chrono::seconds(120)), IsOk());
  }

  Reply Get(const std::string& target) const { return Send(port_, "GET", target); }

  TempDir dir_;
  std::string docs_;
  std::unique_ptr<WebIndex> index_;
  std::unique_ptr<Api> api_;
  std::unique_ptr<Server> server_;
  int port_ = 0;
};

TEST_F(ServerTest, ServesThePageWithAStrictPolicy) {
  for (const char* target : {"/", "/page?url=a.html", "/pipeline"}) {
    const Reply reply = Get(target);
    EXPECT_EQ(reply.status, 200) << target;
    EXPECT_THAT(reply.headers, HasSubstr("Content-Type: text/html; charset=utf-8"));
    EXPECT_THAT(reply.headers, HasSubstr("Content-Security-Policy: default-src 'none'; script-src 'self';"));
    EXPECT_THAT(reply.headers, Not(HasSubstr("unsafe")));
    EXPECT_THAT(reply.headers, HasSubstr("X-Content-Type-Options: nosniff"));
    EXPECT_THAT(reply.body, HasSubstr("/app.js"));
  }
  EXPECT_THAT(Get("/app.js").headers, HasSubstr("text/javascript"));
  EXPECT_THAT(Get("/style.css").headers, HasSubstr("text/css"));
  EXPECT_THAT(Get("/icon.svg").headers, HasSubstr("image/svg+xml"));
  EXPECT_EQ(Get("/nothing").status, 404);
  EXPECT_EQ(Get("/../etc/passwd").status, 404);
}

// The policy forbids scripts and styles in the markup, so there must be none; and nothing from other servers.
TEST_F(ServerTest, ThePageLoadsNothingFromOtherServers) {
  const std::string markup = Get("/").body;
  EXPECT_THAT(markup, Not(HasSubstr("<style")));
  EXPECT_THAT(markup, Not(HasSubstr("style=")));
  EXPECT_THAT(markup, Not(HasSubstr("onclick")));
  for (const char* asset : {"/", "/app.js", "/style.css"}) {
    std::string text = Get(asset).body;
    const std::string name_of_svg = "'http://www.w3.org/2000/svg'";  // not an address
    if (const size_t at = text.find(name_of_svg); at != std::string::npos) text.erase(at, name_of_svg.size());
    EXPECT_THAT(text, Not(HasSubstr("http:"))) << asset;
    EXPECT_THAT(text, Not(HasSubstr("https:"))) << asset;
    EXPECT_THAT(text, Not(HasSubstr("innerHTML"))) << asset;
  }
}

TEST_F(ServerTest, AnswersOnlyForItsOwnNames) {
  for (const char* host : {"127.0.0.1", "localhost", "localhost:8080", "127.0.0.1:1", "[::1]", "[::1]:8080"}) {
    EXPECT_EQ(Send(port_, "GET", "/api/status", host).status, 200) << host;
  }
  for (const char* host :
       {"evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8080", "", "[::2]", "::1"}) {
    EXPECT_EQ(Send(port_, "GET", "/api/status", host).status, 403) << host;
    EXPECT_EQ(Send(port_, "GET", "/files/a.html", host).status, 403) << host;
  }
}

TEST_F(ServerTest, ServesOriginalFilesWithoutRights) {
  const Reply reply = Get("/files/b/c.html");
  EXPECT_EQ(reply.status, 200);
  EXPECT_THAT(reply.headers, HasSubstr("Content-Security-Policy: sandbox allow-same-origin; default-src 'none'"));
  EXPECT_THAT(reply.headers, Not(HasSubstr("allow-scripts")));
  EXPECT_THAT(reply.headers, HasSubstr("X-Content-Type-Options: nosniff"));
  EXPECT_THAT(reply.headers, HasSubstr("Content-Type: text/html"));
  EXPECT_THAT(reply.body, HasSubstr("Pears"));
  EXPECT_THAT(Get("/files/style.css").headers, HasSubstr("text/css"));
  WriteFile(docs_ + "/with space?q=1.html", "odd");
  EXPECT_EQ(Get("/files/with%20space%3Fq=1.html").body, "odd");
  WriteFile(docs_ + "/unknown.xyz", "<script>");
  EXPECT_THAT(Get("/files/unknown.xyz").headers, HasSubstr("application/octet-stream"));
}

TEST_F(ServerTest, HiddenFilesAreNotShown) {
  std::filesystem::create_directory(docs_ + "/.git");
  std::ofstream(docs_ + "/.git/config") << "secret";
  std::ofstream(docs_ + "/.env") << "secret";
  for (const char* target : {"/files/.env", "/files/%2eenv", "/files/.git/config", "/files/%2Egit%2Fconfig"}) {
    EXPECT_EQ(Get(target).status, 404) << target;
  }
}

TEST_F(ServerTest, NoPathLeadsOutOfTheFolder) {
  std::filesystem::create_symlink("../secret.txt", docs_ + "/link.txt");
  std::filesystem::create_symlink("..", docs_ + "/up");
  std::filesystem::create_symlink(dir_.path() + "/secret.txt", docs_ + "/absolute.txt");
  std::filesystem::create_symlink("a.html", docs_ + "/inside.html");
  ASSERT_EQ(mkfifo((docs_ + "/pipe").c_str(), 0600), 0);
  for (const std::string& target : {std::string("/files/../secret.txt"),
                                    std::string("/files/..%2fsecret.txt"),
                                    std::string("/files/%2e%2e/secret.txt"),
                                    std::string("/files/%2e%2e%2fsecret.txt"),
                                    std::string("/files/b/../../secret.txt"),
                                    std::string("/files/b%2f..%2f..%2fsecret.txt"),
                                    std::string("/files/./../secret.txt"),
                                    "/files/" + dir_.path() + "/secret.txt",
                                    "/files//" + dir_.path() + "/secret.txt",
                                    std::string("/files//etc/passwd"),
                                    std::string("/files/%2fetc%2fpasswd"),
                                    std::string("/files/link.txt"),
                                    std::string("/files/up/secret.txt"),
                                    std::string("/files/absolute.txt"),
                                    std::string("/files/inside.html"),
                                    std::string("/files/a.html%00.txt"),
                                    std::string("/files/"),
                                    std::string("/files/b"),
                                    std::string("/files/b/"),
                                    std::string("/files/pipe"),
                                    std::string("/files/a.html/"),
                                    std::string("/files/a.html/x"),
                                    "/files/" + std::string(6000, 'a'),
                                    std::string("/files/..\\secret.txt"),
                                    std::string("/files/..%252fsecret.txt"),
                                    std::string("/files/%c0%ae%c0%ae/secret.txt")}) {
    const Reply reply = Get(target);
    EXPECT_THAT(reply.status, AnyOf(400, 404)) << target;
    EXPECT_TRUE(reply.parsed().is_object()) << target << ": " << reply.body;
    EXPECT_THAT(reply.body, Not(AnyOf("secret", HasSubstr("root:")))) << target;
    EXPECT_THAT(reply.headers, HasSubstr("Content-Security-Policy")) << target;
  }
}

TEST_F(ServerTest, BadInputGetsAClearError) {
  for (const auto& [target, status] : std::map<std::string, int>{
           {"/api/search?q=x&offset=minus", 400},
           {"/api/search?q=x&offset=-1", 400},
           {"/api/search?q=x&limit=101", 400},
           {"/api/search?q=x&limit=99999999999999999999999", 400},
           {"/api/search?q=x&offset=18446744073709551615", 400},
           {"/api/search?q=" + std::string(1001, 'x'), 400},
           {"/api/page", 400},
           {"/api/page?url=", 400},
           {"/api/page?url=" + std::string(2000, 'x'), 400},
           {"/api/page?url=a%00b", 400},
           {"/api/page?url=nowhere.html", 404},
           {"/api/page?url=a.html&at=now", 400},
           {"/api/unknown", 404},
           {"/api/", 404},
       }) {
    const Reply reply = Get(target);
    EXPECT_EQ(reply.status, status) << target;
    EXPECT_TRUE(reply.parsed().contains("error")) << target << ": " << reply.body;
  }
  EXPECT_EQ(Send(port_, "POST", "/api/search?q=x").status, 405);
  EXPECT_EQ(Send(port_, "DELETE", "/files/a.html").status, 405);
  EXPECT_EQ(Send(port_, "HEAD", "/").status, 200);
  EXPECT_THAT(Get("/api/search?q=" + std::string(20000, 'x')).status, AnyOf(400, 414));
  EXPECT_THAT(Exchange(port_, "no request at all\r\n\r\n"), Not(HasSubstr("200 OK")));
  EXPECT_EQ(Get("/api/search?q=%ff%fe%00").status, 200);
  EXPECT_EQ(Get("/api/search").status, 200);
}

// The system buffers some megabytes that the server has not read.
TEST_F(ServerTest, ARequestWithoutEndIsCutOff) {
  constexpr size_t kMax = 64 << 20;
  const std::string start = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n";
  std::string lines;
  while (lines.size() < 4096) lines += "X-Header: and another one\r\n";
  EXPECT_LT(SendWithoutEnd(port_, start, lines, kMax), kMax) << "headers";
  EXPECT_LT(SendWithoutEnd(port_, start + "X-Header: ", std::string(4096, 'x'), kMax), kMax) << "a header";
  EXPECT_LT(SendWithoutEnd(port_, "GET /", std::string(4096, 'x'), kMax), kMax) << "a request line";
  EXPECT_EQ(Get("/").status, 200);
  // The server cuts it off after 64 KiB, with an error.
  std::string head = start;
  while (head.size() < (64 << 10)) head += lines;
  EXPECT_THAT(Exchange(port_, head.substr(0, 64 << 10) + "\r\n\r\n"), HasSubstr("400 Bad Request"));
}

TEST_F(ServerTest, ASlowRequestIsCutOff) {
  Server impatient(api_.get(),
                   ServerOptions{.port = 0, .folder = docs_, .request_time = std::chrono::milliseconds(300)});
  const absl::StatusOr<int> port = impatient.Start();
  ASSERT_THAT(port, IsOk());
  const int connection = Connect(*port);
  ASSERT_GE(connection, 0);
  const std::string head = "GET / HTTP/1.1\r\nX-Header: " + std::string(200, 'x');
  bool closed = false;
  for (size_t i = 0; i < head.size() && !closed; ++i) {
    closed = send(connection, &head[i], 1, MSG_NOSIGNAL) <= 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  close(connection);
  EXPECT_TRUE(closed);
}

TEST_F(ServerTest, ManyRangesDoNotMultiplyAnAnswer) {
  WriteFile(docs_ + "/large.txt", std::string(100'000, 'x'));
  std::string ranges = "bytes=0-";
  for (int i = 0; i < 1000; ++i) ranges += ",0-";
  const std::string answer = Exchange(
      port_, "GET /files/large.txt HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nRange: " + ranges + "\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("200 OK"));
  EXPECT_LT(answer.size(), 110'000);
}

TEST_F(ServerTest, RequestsMayFollowEachOther) {
  const std::string one = "GET /api/stats HTTP/1.1\r\nHost: 127.0.0.1\r\n";
  const std::string answer = Exchange(port_, one + "\r\n" + one + "Connection: close\r\n\r\n");
  const size_t first = answer.find("200 OK");
  ASSERT_NE(first, std::string::npos);
  EXPECT_NE(answer.find("200 OK", first + 1), std::string::npos) << answer;
}

TEST_F(ServerTest, AnswersSearchesAndShowsPages) {
  LoadAll();
  const json search = Get("/api/search?q=apple").parsed();
  ASSERT_EQ(search["matches"], 1);
  const json& hit = search["hits"][0];
  EXPECT_EQ(hit["url"], "a.html");
  EXPECT_EQ(hit["duplicates"], json({"copy.html"}));
  EXPECT_GT(hit["rank"].get<double>(), 0.1);
  // Markup in titles is returned as text.
  const json hostile = Get("/api/search?q=plums").parsed();
  EXPECT_EQ(hostile["hits"][0]["title"], "<script>alert(1)</script>");

  const json page = Get("/api/page?url=b%2Fc.html").parsed();
  EXPECT_EQ(page["title"], "<script>alert(1)</script>");
  EXPECT_THAT(page["links_in"]["links"], SizeIs(2));
  EXPECT_EQ(page["links_in"]["links"][0]["anchor"], "pears & plums");
  EXPECT_THAT(page["history"], SizeIs(1));
  EXPECT_EQ(page["cluster"]["canonical"], "b/c.html");

  const json missing = Get("/api/page?url=copy.html").parsed();
  EXPECT_EQ(missing["cluster"]["canonical"], "a.html");
  EXPECT_EQ(missing["cluster"]["members"], json({"a.html", "copy.html"}));
}

TEST_F(ServerTest, ShowsEarlierVersionsOfAPage) {
  LoadAll();
  WriteFile(docs_ + "/a.html", "<title>Oranges</title><p>Now about oranges.");
  LoadAll();
  EXPECT_EQ(Get("/api/search?q=oranges").parsed()["matches"], 1);
  const json page = Get("/api/page?url=a.html").parsed();
  ASSERT_THAT(page["history"], SizeIs(2));
  EXPECT_EQ(page["title"], "Oranges");
  EXPECT_EQ(page["history"][1]["title"], "Apples");
  const json then = Get("/api/page?url=a.html&at=" + page["history"][1]["timestamp"].get<std::string>()).parsed();
  EXPECT_EQ(then["version"]["title"], "Apples");
  EXPECT_THAT(then["version"]["text"].get<std::string>(), HasSubstr("An apple a day"));
  EXPECT_EQ(Get("/api/page?url=a.html&at=1").parsed()["version"]["exists"], false);
  ASSERT_THAT(index_->cluster().CollectGarbage(), IsOk());
  EXPECT_EQ(Get("/api/page?url=a.html&at=1").status, 410);
}

TEST_F(ServerTest, ShowsThePipeline) {
  LoadAll();
  api_->Sample();
  const json pipeline = Get("/api/pipeline").parsed();
  std::map<std::string, json> observers;
  for (const json& observer : pipeline["observers"]) observers[observer["name"]] = observer;
  EXPECT_GE(observers["parse"]["commits"], 3);
  for (const auto& [name, observer] : observers) EXPECT_GT(observer["stage"], 0) << name << " is not in the drawing";
  bool seen = false;
  for (const json& edge : pipeline["edges"]) {
    EXPECT_TRUE(edge["from"] == "load" || observers.contains(edge["from"])) << edge;
    EXPECT_TRUE(observers.contains(edge["to"])) << edge;
    seen = seen || (edge["from"] == "parse" && edge["to"] == "invert" && edge["seen"] == true);
  }
  EXPECT_TRUE(seen);
  EXPECT_GE(pipeline["latencies"].size(), 2U);
  EXPECT_GT(pipeline["cluster"]["commits"], 0);
  EXPECT_EQ(pipeline["quarantine"]["count"], 0);
  const json stats = Get("/api/stats").parsed();
  EXPECT_EQ(stats["pages"], 3);
  EXPECT_EQ(stats["clusters"], 2);
  EXPECT_EQ(stats["duplicates"], 1);
  EXPECT_EQ(stats["documents"], 2);
  EXPECT_EQ(stats["links"], 2);
}

// While pages are being loaded, every request is answered, with consistent content.
TEST_F(ServerTest, AnswersWhileItIndexes) {
  api_->SetProgress({.phase = IndexingProgress::Phase::kLoading, .done = 1, .expected = 3});
  EXPECT_EQ(Get("/api/status").parsed()["phase"], "loading");
  std::thread loading([this] {
    for (int i = 0; i < 60; ++i) {
      const std::string url = "new" + std::to_string(i) + ".html";
      WriteFile(docs_ + "/" + url, "<title>T" + std::to_string(i) + "</title><p>fresh words " + std::to_string(i));
      Load(url);
    }
  });
  size_t seen = 0;
  for (int i = 0; i < 30; ++i) {
    const Reply reply = Get("/api/search?q=fresh&limit=100");
    ASSERT_EQ(reply.status, 200);
    const size_t matches = reply.parsed()["matches"];
    EXPECT_GE(matches, seen);
    seen = matches;
    EXPECT_EQ(Get("/api/pipeline").status, 200);
  }
  loading.join();
  ASSERT_THAT(index_->WaitUntilIdle(std::chrono::seconds(120)), IsOk());
  EXPECT_EQ(Get("/api/search?q=fresh").parsed()["matches"], 60);
}

TEST_F(ServerTest, TakesAnotherPortOnlyIfNoneWasRequested) {
  Server second(api_.get(), {.port = port_, .folder = docs_});
  EXPECT_THAT(second.Start(), StatusIs(absl::StatusCode::kUnavailable));
  Server third(api_.get(), {.folder = docs_});
  Server fourth(api_.get(), {.folder = docs_});
  const absl::StatusOr<int> one = third.Start();
  const absl::StatusOr<int> other = fourth.Start();
  ASSERT_THAT(one, IsOk());
  ASSERT_THAT(other, IsOk());
  EXPECT_GE(*one, kDefaultPort);
  EXPECT_GE(*other, kDefaultPort);
  EXPECT_NE(*other, *one);
}

TEST_F(ServerTest, TheDataFolderNamesTheServersAddress) {
  const std::string data = dir_.path() + "/data";
  EXPECT_FALSE(FindServer(data).has_value());
  EXPECT_THAT(Answers::Open(data, "").status(), StatusIs(absl::StatusCode::kNotFound));
  {
    const auto announcement = Announcement::Make(data, {.port = port_, .instance = "this one"});
    ASSERT_THAT(announcement, IsOk());
    ASSERT_TRUE(FindServer(data).has_value());
    EXPECT_EQ(FindServer(data)->port, port_);
    LoadAll();
    const auto answers = Answers::Open(data, "");
    ASSERT_THAT(answers, IsOk());
    const auto search = (*answers)->Ask("search", {{"q", "apple & day?"}, {"limit", "5"}});
    ASSERT_THAT(search, IsOk());
    EXPECT_EQ((*search)["matches"], 1);
    EXPECT_THAT((*answers)->Ask("page", {{"url", "no"}}).status(), StatusIs(absl::StatusCode::kNotFound));
  }
  EXPECT_FALSE(FindServer(data).has_value());
  const auto stale = Announcement::Make(data, {.port = port_, .instance = "another one"});
  EXPECT_FALSE(FindServer(data).has_value());
  WriteFile(data + "/server.json", "not json");
  EXPECT_FALSE(FindServer(data).has_value());
}

TEST(PrintTest, TextOfPagesDoesNotControlATerminal) {
  EXPECT_EQ(Printable("a\033[31mb\x07\nc\u009bd\u00e9"), "a [31mb  c d\u00e9");
  EXPECT_EQ(WithCommas(0), "0");
  EXPECT_EQ(WithCommas(999), "999");
  EXPECT_EQ(WithCommas(1234567), "1,234,567");
}

}  // namespace
}  // namespace webindex
