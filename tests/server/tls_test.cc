// SPDX-License-Identifier: Apache-2.0

// Servers and clients with TLS, and clients that must be refused: a refused client gets a clear error, soon, and the
// server continues to serve others.

#include <chrono>
#include <fstream>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "percolator/cluster.h"
#include "percolator/server.h"
#include "src/base/strings.h"
#include "tests/processes/certificates.h"
#include "tests/processes/etcd_process.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace percolator {
namespace {

using ::testing::HasSubstr;

constexpr std::chrono::seconds kTimeout(10);
constexpr std::chrono::seconds kBound(60);

class TlsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!Certificates::Available()) GTEST_SKIP() << "no command openssl to make the certificates";
    ASSERT_TRUE(made_.MakeAuthority("ca"));
    ASSERT_TRUE(made_.MakeAuthority("other-ca"));
    ASSERT_TRUE(made_.Make("server", "ca"));
  }

  // The name of the server's certificate, and of the authority of its clients, if they need certificates too.
  void Start(const std::string& name, const std::string& client_ca = {}) {
    ServerOptions options;
    options.listen = "127.0.0.1:0";
    options.tls.cert = made_.Cert(name);
    options.tls.key = made_.Key(name);
    if (!client_ca.empty()) options.tls.ca = made_.Cert(client_ca);
    absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(options);
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
  }

  std::string Address(const std::string& ca, const std::string& cert = {}) const {
    std::string address = StrCat(server_->address(), "?ca=", made_.Cert(ca));
    if (!cert.empty()) address = StrCat(address, "&cert=", made_.Cert(cert), "&key=", made_.Key(cert));
    return address;
  }

  void ExpectServed(const std::string& address) {
    const absl::StatusOr<Cluster> cluster = Cluster::Open(address);
    ASSERT_THAT(cluster, IsOk());
    const std::string table = StrCat("t", tables_++);
    ASSERT_THAT(cluster->CreateTable(table), IsOk());
    EXPECT_THAT(cluster->Transact([&](ReadWrite& t) { t.Set({table, "row", "column"}, "value"); }), IsOk());
  }

  // Expects Unavailable with a text that `text` matches, in bounded time.
  template <typename Text>
  void ExpectRefused(const std::string& address, Text text) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_THAT(Cluster::Open(address, {.call_timeout = kTimeout}), StatusIs(absl::StatusCode::kUnavailable, text));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, kBound);
  }

  TempDir dir_;
  Certificates made_{dir_.path()};
  std::unique_ptr<Server> server_;
  int tables_ = 0;
};

TEST_F(TlsTest, AClientThatKnowsTheAuthorityIsServed) {
  Start("server");
  ExpectServed(Address("ca"));
  ExpectServed(StrCat("percolator://localhost:", server_->port(), "?ca=", made_.Cert("ca")));
}

TEST_F(TlsTest, PlainTextIsRefused) {
  Start("server");
  ExpectRefused(server_->address(), HasSubstr("TLS"));
  ExpectServed(Address("ca"));
}

TEST_F(TlsTest, AServerInPlainTextIsRefused) {
  ServerOptions options;
  options.listen = "127.0.0.1:0";
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(options);
  ASSERT_THAT(server, IsOk());
  server_ = *std::move(server);
  ExpectRefused(Address("ca"), HasSubstr("plain text"));
  ExpectServed(server_->address());
}

TEST_F(TlsTest, AServerOfAnotherAuthorityIsRefused) {
  Start("server");
  ExpectRefused(Address("other-ca"), HasSubstr("certificate"));
  ExpectServed(Address("ca"));
}

TEST_F(TlsTest, AServerWithAnExpiredCertificateIsRefused) {
  ASSERT_TRUE(made_.Make("old", "ca", -1));
  Start("old");
  ExpectRefused(Address("ca"), HasSubstr("certificate"));
}

TEST_F(TlsTest, AServerWithTheCertificateOfAnotherHostIsRefused) {
  ASSERT_TRUE(made_.Make("elsewhere", "ca", 30, "DNS:elsewhere.example"));
  Start("elsewhere");
  ExpectRefused(Address("ca"), HasSubstr("certificate"));
}

TEST_F(TlsTest, ClientsNeedACertificateWhereOneIsRequired) {
  ASSERT_TRUE(made_.Make("client", "ca"));
  ASSERT_TRUE(made_.Make("stranger", "other-ca"));
  ASSERT_TRUE(made_.Make("old", "ca", -1));
  Start("server", "ca");
  ExpectServed(Address("ca", "client"));
  ExpectRefused(Address("ca"), HasSubstr("certificate"));
  ExpectRefused(Address("ca", "stranger"), HasSubstr("certificate"));
  ExpectRefused(Address("ca", "old"), HasSubstr("certificate"));
  ExpectRefused(server_->address(), HasSubstr("TLS"));
  ExpectServed(Address("ca", "client"));
}

TEST_F(TlsTest, FilesThatDoNotMatchAreReported) {
  ASSERT_TRUE(made_.Make("client", "ca"));
  const std::string garbage = dir_.path() + "/garbage.pem";
  std::ofstream(garbage) << "this is not a certificate\n";
  Start("server");
  const auto open = [&](const std::string& settings) {
    return Cluster::Open(StrCat(server_->address(), "?", settings), {.call_timeout = kTimeout}).status();
  };
  EXPECT_THAT(open("ca=/nowhere/ca.pem"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("/nowhere/ca.pem")));
  EXPECT_THAT(open(StrCat("ca=", made_.Cert("ca"), "&cert=", made_.Cert("client"))),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("key")));
  EXPECT_THAT(open(StrCat("ca=", made_.Cert("ca"), "&key=", made_.Key("client"))),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("certificate")));
  EXPECT_THAT(open(StrCat("ca=", garbage)), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(garbage)));

  ServerOptions options;
  options.listen = "127.0.0.1:0";
  options.tls = {.ca = {}, .cert = garbage, .key = garbage};
  EXPECT_THAT(Server::Start(options), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(garbage)));
  options.tls = {.ca = {}, .cert = made_.Cert("server"), .key = made_.Key("client")};
  EXPECT_THAT(Server::Start(options), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("certificate and key")));
  ExpectServed(Address("ca"));
}

// The server acts as Bigtable and as the oracle.
TEST_F(TlsTest, BigtableOraclesAndEtcdMayUseTls) {
  if (!EtcdProcess::WhyNot().empty()) GTEST_SKIP() << EtcdProcess::WhyNot();
  Start("server");
  const EtcdProcess etcd({made_.Cert("ca"), made_.Cert("server"), made_.Key("server")});
  const std::string server = StrCat("127.0.0.1:", server_->port());
  const auto address = [&](const std::string& endpoint) {
    return StrCat("bigtable:projects/p/instances/i?oracle=", server, "&coord=", etcd.endpoint(), "&endpoint=", endpoint,
                  "&ca=", made_.Cert("ca"));
  };
  ExpectServed(address("https://" + server));
  const ClusterOptions impatient{.call_timeout = std::chrono::seconds(1)};
  EXPECT_THAT(Cluster::Open(address(server), impatient), StatusIs(absl::StatusCode::kUnavailable)) << "plain text";
}

TEST_F(TlsTest, PlainTextToARemoteEndpointIsRefused) {
  const auto open = [&](const std::string& settings) {
    return Cluster::Open("bigtable:projects/p/instances/i?oracle=127.0.0.1:1&coord=127.0.0.1:1&endpoint=" + settings)
        .status();
  };
  EXPECT_THAT(open("db.example:1"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("plain text")));
  EXPECT_THAT(open("127.example.org:1"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("plain text")));
  EXPECT_THAT(open("https://db.example:1"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("ca=FILE")));
  EXPECT_THAT(open("https://db.example:1&ca=/nowhere/ca.pem"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("/nowhere/ca.pem")));
}

}  // namespace
}  // namespace percolator
