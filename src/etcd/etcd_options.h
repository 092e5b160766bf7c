// SPDX-License-Identifier: Apache-2.0

// Options for clients of etcd.

#ifndef PERCOLATOR_ETCD_ETCD_OPTIONS_H_
#define PERCOLATOR_ETCD_ETCD_OPTIONS_H_

#include <chrono>
#include <string>
#include <vector>

#include "percolator/options.h"
#include "percolator/tls.h"

namespace percolator {

struct EtcdOptions {
  std::vector<std::string> endpoints;  // HOST:PORT of each member
  std::string prefix = "percolator/";  // The prefix of all keys.
  TlsFiles tls;
  Duration timeout = std::chrono::seconds(5);      // The timeout of a request, including its retries.
  Duration session_ttl = std::chrono::seconds(5);  // The lease of a session in whole seconds. etcd may make it longer.
};

}  // namespace percolator

#endif  // PERCOLATOR_ETCD_ETCD_OPTIONS_H_
