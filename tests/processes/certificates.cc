// SPDX-License-Identifier: Apache-2.0

#include "tests/processes/certificates.h"

#include <fstream>
#include <iostream>
#include <vector>

#include "tests/processes/child_process.h"

namespace percolator {
namespace {

bool Run(std::vector<std::string> words) {
  words.insert(words.begin(), "openssl");
  ChildProcess openssl(words, {}, /*merge=*/true);
  const std::string said = openssl.ReadAll();
  if (openssl.Wait() == 0) return true;
  std::cerr << said;
  return false;
}

}  // namespace

bool Certificates::Available() { return Run({"version"}); }

bool Certificates::MakeAuthority(const std::string& name) {
  return Run({"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30",
              "-subj", "/CN=" + name, "-keyout", Key(name), "-out", Cert(name)});
}

bool Certificates::Make(const std::string& name, const std::string& authority, int days, const std::string& host) {
  const std::string request = folder_ + "/" + name + ".csr";
  const std::string extensions = folder_ + "/" + name + ".ext";
  std::ofstream(extensions) << "subjectAltName=" << host << "\n";
  return Run({"req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj",
              "/CN=" + name, "-keyout", Key(name), "-out", request}) &&
         Run({"x509", "-req", "-in", request, "-CA", Cert(authority), "-CAkey", Key(authority), "-CAcreateserial",
              "-days", std::to_string(days), "-extfile", extensions, "-out", Cert(name)});
}

}  // namespace percolator
