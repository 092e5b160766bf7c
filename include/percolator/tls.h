// SPDX-License-Identifier: Apache-2.0

// TLS of servers and of the connections to them.

#ifndef PERCOLATOR_TLS_H_
#define PERCOLATOR_TLS_H_

#include <string>

namespace percolator {

// Certificates and keys, as PEM files. Without any, connections are plain text.
struct TlsFiles {
  // The CA to trust: of the server for a client, of the clients for a server, which then requires a
  // client certificate.
  std::string ca = {};
  std::string cert = {};  // our own certificate
  std::string key = {};   // its private key

  bool empty() const { return ca.empty() && cert.empty() && key.empty(); }
};

}  // namespace percolator

#endif  // PERCOLATOR_TLS_H_
