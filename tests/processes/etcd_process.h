// Debian's etcd, for a test: one member, on free ports of the loopback, in a temporary folder. Its leases may be as short as
// one second.

#ifndef PERCOLATOR_TESTS_PROCESSES_ETCD_PROCESS_H_
#define PERCOLATOR_TESTS_PROCESSES_ETCD_PROCESS_H_

#include <chrono>
#include <memory>
#include <string>

#include "percolator/tls.h"
#include "src/etcd/etcd_options.h"
#include "tests/processes/child_process.h"
#include "tests/testing/temp_dir.h"

namespace percolator {

// A port of the loopback that nobody listens on, and that none but another caller of this is likely to get.
int FreePort();

class EtcdProcess {
 public:
  // Why there can be none on this machine; empty: there can.
  static std::string WhyNot();

  // Answers when this returns. Ends the program if it does not. With a certificate and its key it speaks TLS; `ca` is what the
  // certificate is signed by.
  explicit EtcdProcess(TlsFiles tls = {});

  std::string endpoint() const;
  // Of this etcd, with keys of their own.
  EtcdOptions Options(const std::string& prefix) const;

  void Stop() const;      // SIGSTOP: it stands still, and does not know
  void Continue() const;  // SIGCONT
  void Kill();            // SIGKILL
  // Starts it again after Kill, on the same data and port. Answers when this returns.
  void Start();

 private:
  bool TryStart();
  bool HasEnded() const;
  bool Answers(std::chrono::milliseconds timeout) const;

  std::string Url() const;
  // For a client of it.
  TlsFiles ClientTls() const { return {tls_.ca, {}, {}}; }

  const TlsFiles tls_;
  TempDir dir_;
  int port_ = 0;
  int peer_port_ = 0;
  std::unique_ptr<ChildProcess> process_;
};

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_PROCESSES_ETCD_PROCESS_H_
