// SPDX-License-Identifier: Apache-2.0

// Debian's etcd, for a test: one member, on free ports of the loopback, in a temporary folder. Its leases may be as
// short as one second.

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

// An unused port of the loopback, which no other process is likely to get, except another caller of this.
int FreePort();

class EtcdProcess {
 public:
  // The reason why etcd cannot run on this machine; empty if it can.
  static std::string WhyNot();

  // Returns when etcd answers; ends the program if it does not. With a certificate and its key it uses TLS; `ca` is the
  // authority of the certificate.
  explicit EtcdProcess(TlsFiles tls = {});

  std::string endpoint() const;
  // Options for this etcd, with separate keys.
  EtcdOptions Options(const std::string& prefix) const;

  void Stop() const;      // SIGSTOP: it stands still without notice
  void Continue() const;  // SIGCONT
  void Kill();            // SIGKILL
  // Starts it again after Kill, on the same data and port. Returns when it answers.
  void Start();

 private:
  bool TryStart();
  bool HasEnded() const;
  bool Answers(std::chrono::milliseconds timeout) const;

  std::string Url() const;
  // The files for a client of it.
  TlsFiles ClientTls() const { return {tls_.ca, {}, {}}; }

  const TlsFiles tls_;
  TempDir dir_;
  int port_ = 0;
  int peer_port_ = 0;
  std::unique_ptr<ChildProcess> process_;
};

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_PROCESSES_ETCD_PROCESS_H_
