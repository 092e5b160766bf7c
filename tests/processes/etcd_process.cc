// SPDX-License-Identifier: Apache-2.0

#include "tests/processes/etcd_process.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <random>
#include <utility>
#include <vector>

#include "src/base/strings.h"
#include "src/etcd/etcd_client.h"

namespace percolator {
namespace {

constexpr char kProgram[] = "/usr/bin/etcd";
constexpr std::chrono::seconds kPatience(60);

// Below the ports that Linux assigns to connections and to port 0, so that no other process gets one while its process
// is dead.
constexpr int kFirstPort = 12'000;
constexpr int kLastPort = 32'000;

}  // namespace

int FreePort() {
  std::random_device random;
  for (;;) {
    const int port = std::uniform_int_distribution<int>(kFirstPort, kLastPort)(random);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0) std::abort();
    const bool is_free = bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    close(fd);
    if (is_free) return port;
  }
}

std::string EtcdProcess::WhyNot() {
  return access(kProgram, X_OK) == 0 ? "" : StrCat("there is no ", kProgram, ": install etcd-server");
}

EtcdProcess::EtcdProcess(TlsFiles tls) : tls_(std::move(tls)) {
  for (int attempt = 0; attempt < 3; ++attempt) {
    port_ = FreePort();
    peer_port_ = FreePort();
    if (TryStart()) return;
  }
  std::cerr << "etcd does not start:\n" << std::ifstream(dir_.path() + "/log").rdbuf();
  std::abort();
}

void EtcdProcess::Start() {
  if (TryStart()) return;
  std::cerr << "etcd does not start again:\n" << std::ifstream(dir_.path() + "/log").rdbuf();
  std::abort();
}

std::string EtcdProcess::Url() const { return StrCat(tls_.empty() ? "http" : "https", "://", endpoint()); }

bool EtcdProcess::TryStart() {
  const std::string peer_url = StrCat("http://127.0.0.1:", peer_port_);
  std::vector<std::string> command = {kProgram,
                                      "--name=test",
                                      "--data-dir=" + dir_.path() + "/data",
                                      "--listen-client-urls=" + Url(),
                                      "--advertise-client-urls=" + Url(),
                                      "--listen-peer-urls=" + peer_url,
                                      "--initial-advertise-peer-urls=" + peer_url,
                                      "--initial-cluster=test=" + peer_url,
                                      "--heartbeat-interval=10",
                                      "--election-timeout=100",
                                      "--logger=zap",
                                      "--log-level=error",
                                      "--log-outputs=" + dir_.path() + "/log"};
  if (!tls_.empty()) {
    command.push_back("--cert-file=" + tls_.cert);
    command.push_back("--key-file=" + tls_.key);
  }
  process_ = std::make_unique<ChildProcess>(command);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  for (std::chrono::milliseconds timeout(300); !HasEnded() && std::chrono::steady_clock::now() < end; timeout *= 2) {
    if (Answers(timeout)) return true;
  }
  return false;
}

bool EtcdProcess::HasEnded() const {
  siginfo_t end = {};
  return waitid(P_PID, static_cast<id_t>(process_->pid()), &end, WEXITED | WNOHANG | WNOWAIT) != 0 || end.si_pid != 0;
}

void EtcdProcess::Stop() const { kill(process_->pid(), SIGSTOP); }

void EtcdProcess::Continue() const { kill(process_->pid(), SIGCONT); }

void EtcdProcess::Kill() { process_ = nullptr; }

bool EtcdProcess::Answers(std::chrono::milliseconds timeout) const {
  const absl::StatusOr<std::unique_ptr<EtcdClient>> client = EtcdClient::Open({endpoint()}, ClientTls());
  return client.ok() && (*client)->Get("health", timeout).ok();
}

std::string EtcdProcess::endpoint() const { return StrCat("127.0.0.1:", port_); }

EtcdOptions EtcdProcess::Options(const std::string& prefix) const {
  EtcdOptions options;
  options.endpoints = {endpoint()};
  options.prefix = prefix;
  options.tls = ClientTls();
  return options;
}

}  // namespace percolator
