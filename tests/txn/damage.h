// SPDX-License-Identifier: Apache-2.0

// Damaged bytes, for the tests of formats: whatever a disk or another program does to a record, reading it returns an
// error or a record that could have been written.

#ifndef PERCOLATOR_TESTS_TXN_DAMAGE_H_
#define PERCOLATOR_TESTS_TXN_DAMAGE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "src/txn/record_coding.h"

namespace percolator {

// Every prefix of `bytes`, and every string that differs from it by one byte: changed, inserted or appended.
inline std::vector<std::string> DamagedForms(const std::string& bytes) {
  std::vector<std::string> forms;
  for (size_t n = 0; n < bytes.size(); ++n) forms.push_back(bytes.substr(0, n));
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int value = 0; value < 256; ++value) {
      std::string form = bytes;
      form[i] = static_cast<char>(value);
      if (form != bytes) forms.push_back(std::move(form));
    }
  }
  for (const char extra : {'\0', '\x01', '\xff'}) {
    for (size_t i = 0; i <= bytes.size(); ++i) forms.push_back(bytes.substr(0, i) + extra + bytes.substr(i));
  }
  return forms;
}

// Decodes every damaged form of `bytes`. Each is an error with one of the two codes of the formats, or decodes to a
// record that encodes to exactly these bytes: no part of a record is ignored.
template <typename Decode, typename Encode>
void CheckDamagedForms(const std::string& bytes, const Decode& decode, const Encode& encode) {
  size_t refused = 0;
  for (const std::string& form : DamagedForms(bytes)) {
    const auto decoded = decode(form);
    if (decoded.ok()) {
      ASSERT_EQ(absl::BytesToHexString(encode(*decoded)), absl::BytesToHexString(form));
      continue;
    }
    ++refused;
    const int version = form.empty() ? 0 : static_cast<unsigned char>(form[0]);
    const bool newer = version > kRecordVersion && version <= kLastRecordVersion;
    const absl::StatusCode code = newer ? absl::StatusCode::kFailedPrecondition : absl::StatusCode::kDataLoss;
    ASSERT_EQ(decoded.status().code(), code) << absl::BytesToHexString(form) << ": " << decoded.status();
    ASSERT_FALSE(decoded.status().message().empty());
  }
  EXPECT_GT(refused, bytes.size());
}

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_TXN_DAMAGE_H_
