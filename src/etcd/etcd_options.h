// How to reach an etcd.

#ifndef PERCOLATOR_ETCD_ETCD_OPTIONS_H_
#define PERCOLATOR_ETCD_ETCD_OPTIONS_H_

#include <chrono>
#include <string>
#include <vector>

#include "percolator/options.h"
#include "percolator/tls.h"

namespace percolator {

struct EtcdOptions {
  std::vector<std::string> endpoints;  // HOST:PORT each
  std::string prefix = "percolator/";  // of all keys
  TlsFiles tls;
  Duration timeout = std::chrono::seconds(5);      // of one request, with all its repetitions
  Duration session_ttl = std::chrono::seconds(5);  // whole seconds; etcd may make it longer
};

}  // namespace percolator

#endif  // PERCOLATOR_ETCD_ETCD_OPTIONS_H_
