// SPDX-License-Identifier: Apache-2.0

// Certificates for a test, made by the command `openssl` in a folder of the test.

#ifndef PERCOLATOR_TESTS_PROCESSES_CERTIFICATES_H_
#define PERCOLATOR_TESTS_PROCESSES_CERTIFICATES_H_

#include <string>
#include <utility>

namespace percolator {

class Certificates {
 public:
  explicit Certificates(std::string folder) : folder_(std::move(folder)) {}

  // Whether the command exists.
  static bool Available();

  // Makes an authority of that name. Returns false, as do the others, if the command fails; its error is on standard
  // error.
  bool MakeAuthority(const std::string& name);
  // Makes a certificate that the authority signs, for 127.0.0.1 and localhost or for `host`. Negative days: it has
  // expired.
  bool Make(const std::string& name, const std::string& authority, int days = 30,
            const std::string& host = "IP:127.0.0.1,DNS:localhost");

  std::string Cert(const std::string& name) const { return folder_ + "/" + name + ".pem"; }
  std::string Key(const std::string& name) const { return folder_ + "/" + name + ".key"; }

 private:
  const std::string folder_;
};

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_PROCESSES_CERTIFICATES_H_
