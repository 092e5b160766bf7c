// SPDX-License-Identifier: Apache-2.0

// `percolator serve` as a process, with other processes around it; and the commands on every kind of shared address.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "src/base/strings.h"
#include "tests/processes/child_process.h"
#include "tests/processes/cluster_places.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace percolator {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::json;
using Words = std::vector<std::string>;

struct Ran {
  int exit = -1;
  std::string said;  // on standard output and error
};

Words Program(const Words& words) {
  Words all = {PERCOLATOR};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

Ran RunCommand(const Words& words) {
  ChildProcess child(Program(words), {}, /*merge=*/true);
  Ran ran;
  ran.said = child.ReadAll();
  ran.exit = child.Wait();
  return ran;
}

// Errors are reported soon, before anything is served.
void ExpectError(const Words& words, int exit, const std::string& text) {
  const auto begin = std::chrono::steady_clock::now();
  const Ran ran = RunCommand(words);
  EXPECT_EQ(ran.exit, exit) << ran.said;
  EXPECT_THAT(ran.said, AllOf(ContainsRegex("(^|\n)percolator: "), HasSubstr(text)));  // after messages of gRPC
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
}

// A memory limit ends the server with a message and an exit code, at whichever allocation it is met.
TEST(ShortageTest, AServerWithoutMemoryEndsWithAMessage) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need more address space than the limit";
#endif
  for (const char* kilobytes : {"150000", "300000"}) {
    ChildProcess child(
        {"/bin/sh", "-c", StrCat("ulimit -v ", kilobytes, "; exec ", PERCOLATOR, " serve --listen 127.0.0.1:0")}, {},
        /*merge=*/true);
    const std::string said = child.ReadAll();
    EXPECT_EQ(child.Wait(), 4) << said;
    EXPECT_THAT(said, HasSubstr("ulimit -v"));
  }
}

// Commands with an address.
class CommandsTest : public ::testing::Test {
 protected:
  Words With(const Words& words) const {
    Words all = {"--cluster", address_};
    all.insert(all.end(), words.begin(), words.end());
    return all;
  }
  std::string Must(const Words& words) const {
    const Ran ran = RunCommand(With(words));
    EXPECT_EQ(ran.exit, 0) << ran.said;
    return ran.said;
  }
  Json MustJson(Words words) const {
    words.emplace_back("--json");
    const std::string said = Must(words);
    return Json::parse(said, nullptr, /*allow_exceptions=*/false);
  }
  // Expects the exit code for an empty result.
  void ExpectNone(const Words& words, const std::string& text) const {
    const Ran ran = RunCommand(With(words));
    EXPECT_EQ(ran.exit, 1) << ran.said;
    EXPECT_THAT(ran.said, HasSubstr(text));
  }

  void ExpectAllCommandsWork() const {
    Must({"tables", "create", "t"});
    EXPECT_THAT(Must({"set", "t", "r", "c", "v"}), HasSubstr("committed at"));
    EXPECT_EQ(Must({"get", "t", "r", "c"}), "v\n");
    const Json set = MustJson({"set", "t", "r", "c", "w"});
    EXPECT_EQ(MustJson({"scan", "t"}), Json::array({{{"row", "r"}, {"column", "c"}, {"value", "w"}}}));
    EXPECT_THAT(Must({"cells", "t", "r"}), AllOf(ContainsRegex("c .*put v"), ContainsRegex("c .*put w")));
    EXPECT_EQ(MustJson({"tables"})[0]["table"], "t");
    Must({"delete", "t", "r", "c"});
    ExpectNone({"get", "t", "r", "c"}, "has no value");
    EXPECT_EQ(Must({"get", "t", "r", "c", "--as-of", std::to_string(set["commit_ts"].get<uint64_t>())}), "w\n");
    EXPECT_TRUE(MustJson({"stats"}).is_object());
    ExpectNone({"locks"}, "there are no locks");
    ExpectNone({"notifications"}, "there are no notifications");
    ExpectNone({"quarantine"}, "nothing is in quarantine");
    Must({"gc"});
    Must({"wait-idle", "--timeout", "2m"});
    Must({"bench", "--time", "100ms", "--rows", "100", "--threads", "4"});
    Must({"tables", "drop", "t", "--yes"});
  }

  std::string address_;
};

class ServeTest : public CommandsTest {
 protected:
  // Starts the server, by default on a free port, and waits until it is ready.
  void Serve(const std::string& listen = "127.0.0.1:0") {
    const Words words = {"serve", "--listen", listen, "--data", Data(), "--no-sync"};
    server_ = std::make_unique<ChildProcess>(Program(words));
    std::string line;
    // While it was dead, its port may have been used for another connection.
    for (int i = 0; !server_->ReadLine(&line); ++i) {
      ASSERT_LT(i, 100) << "it does not start";
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      server_ = std::make_unique<ChildProcess>(Program(words));
    }
    ASSERT_THAT(line, StartsWith("ready on percolator://127.0.0.1:"));
    address_ = line.substr(std::string("ready on ").size());
  }
  // Stops the server. Returns its exit code.
  int Stop(int signal = SIGTERM) {
    kill(server_->pid(), signal);
    return server_->Wait();
  }

  std::string Data() const { return dir_.path() + "/data"; }
  std::string Listen() const { return address_.substr(std::string("percolator://").size()); }

  TempDir dir_;
  std::unique_ptr<ChildProcess> server_;
};

TEST_F(ServeTest, CommandsOfOtherProcesses) {
  ASSERT_NO_FATAL_FAILURE(Serve());
  ExpectAllCommandsWork();
  EXPECT_EQ(Stop(), 0);
}

TEST_F(ServeTest, AcknowledgedWritesSurviveAKill) {
  ASSERT_NO_FATAL_FAILURE(Serve());
  Must({"tables", "create", "t"});
  Must({"set", "t", "r", "c", "v"});
  EXPECT_EQ(Stop(SIGINT), 0);
  ASSERT_NO_FATAL_FAILURE(Serve(Listen()));
  EXPECT_EQ(Must({"get", "t", "r", "c"}), "v\n");
  EXPECT_EQ(Stop(SIGKILL), -1);
  ASSERT_NO_FATAL_FAILURE(Serve(Listen()));
  EXPECT_EQ(Must({"get", "t", "r", "c"}), "v\n");
  EXPECT_EQ(Stop(), 0);
}

TEST_F(ServeTest, OutputForPrograms) {
  server_ = std::make_unique<ChildProcess>(Program({"serve", "--listen", "127.0.0.1:0", "--json"}));
  std::string text;
  Json ready;
  for (std::string line; ready.empty() && server_->ReadLine(&line);) {
    text += line;
    const Json parsed = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!parsed.is_discarded()) ready = parsed;
  }
  ASSERT_TRUE(ready.is_object()) << text;
  address_ = ready["address"];
  EXPECT_EQ(address_, StrCat("percolator://127.0.0.1:", ready["port"].get<int>()));
  Must({"tables", "create", "t"});
  EXPECT_EQ(Stop(), 0);
}

TEST_F(ServeTest, AnAddressOfIPv6IsServed) {
  server_ = std::make_unique<ChildProcess>(Program({"serve", "--listen", "[::1]:0"}));
  std::string line;
  if (!server_->ReadLine(&line)) GTEST_SKIP() << "it cannot listen on [::1]: this machine has no IPv6";
  ASSERT_THAT(line, StartsWith("ready on percolator://[::1]:"));
  address_ = line.substr(std::string("ready on ").size());
  Must({"tables", "create", "t"});
  EXPECT_EQ(Stop(), 0);
}

// Clients that are killed while requests are in progress.
TEST_F(ServeTest, KilledClientsDoNoHarm) {
  ASSERT_NO_FATAL_FAILURE(Serve());
  Must({"tables", "create", "t"});
  for (int i = 0; i < 3; ++i) {
    ChildProcess client(Program(With({"bench", "--time", "5m", "--rows", "100", "--threads", "16"})), {},
                        /*merge=*/true);
    std::this_thread::sleep_for(std::chrono::milliseconds(200 + 100 * i));
    kill(client.pid(), SIGKILL);
    EXPECT_EQ(client.Wait(), -1);
    Must({"set", "t", "r", "c", std::to_string(i)});
    EXPECT_EQ(Must({"get", "t", "r", "c"}), StrCat(i, "\n"));
  }
  EXPECT_EQ(Stop(), 0);
}

TEST_F(ServeTest, AStopWhileClientsWork) {
  ASSERT_NO_FATAL_FAILURE(Serve());
  ChildProcess client(Program(With({"bench", "--time", "5m", "--rows", "100", "--threads", "16"})), {},
                      /*merge=*/true);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(Stop(), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
}

TEST_F(ServeTest, AnErrorSaysWhyNothingIsServed) {
  ASSERT_NO_FATAL_FAILURE(Serve());
  ExpectError({"serve", "--listen", Listen()}, 3, "in use");
  ExpectError({"serve", "--listen", "127.0.0.1:0", "--data", Data()}, 3, Data());
  ExpectError({"serve", "--listen", "0.0.0.0:0"}, 2, "--plaintext");
  ExpectError({"serve", "--listen", "nonsense"}, 2, "HOST:PORT");
  ExpectError({"serve", "--listen", "127.0.0.1:99999"}, 2, "65535");
  ExpectError({"serve", "--listen", "127.0.0.1:0", "--tls-cert", "/", "--tls-key", "/"}, 2, "folder");
  ExpectError({"--cluster", "percolator://127.0.0.1:1?ca=/", "tables"}, 2, "folder");
  ExpectError({"--cluster", "percolator://127.0.0.1:99999", "tables"}, 2, "65535");
  ExpectError({"--cluster", "memory:", "set", "t", "r", "c", "--from", "/"}, 2, "folder");
  ExpectError({"--cluster", "memory:", "set", "t", "r", "c", "--from", "/dev/zero"}, 2, "device");
  ExpectError({"serve", "--listen", "127.0.0.1:0", "--session-ttl", "soon"}, 2, "soon");
  ExpectError({"serve", "--listen", "127.0.0.1:0", "--session-ttl", "1ms"}, 2, "session");
  ExpectError({"serve", "--listen", "127.0.0.1:0", "--threads", "0"}, 2, "thread");
  ExpectError({"serve", "--listen", "127.0.0.1:0", "--tls-cert", "/nowhere/cert"}, 2, "key");
  ExpectError({"serve", "--listen", "127.0.0.1:0", "--tls-cert", "/nowhere/cert", "--tls-key", "/nowhere/key"}, 2,
              "/nowhere/cert");
  EXPECT_EQ(Stop(), 0);
}

TEST_F(ServeTest, WithoutAServerCommandsFail) {
  ExpectError({"--cluster", "percolator://nobody.invalid:1", "get", "t", "r", "c"}, 3, "nobody.invalid:1");
  ExpectError({"--cluster", "percolator://127.0.0.1:1", "get", "t", "r", "c"}, 3, "127.0.0.1:1");
  ExpectError({"--cluster", "percolator://127.0.0.1", "get", "t", "r", "c"}, 2, "HOST:PORT");
}

TEST_F(CommandsTest, OnBigtable) {
  const absl::StatusOr<std::unique_ptr<ClusterPlace>> place = MakeBigtablePlace();
  if (absl::IsUnavailable(place.status())) GTEST_SKIP() << place.status();
  ASSERT_THAT(place, IsOk());
  address_ = (*place)->address();
  ExpectAllCommandsWork();
}

}  // namespace
}  // namespace percolator
