// SPDX-License-Identifier: Apache-2.0

#include "src/store/rocks/rocks_status.h"

#include <string>

#include "src/base/strings.h"

namespace percolator {

absl::Status FromRocks(const rocksdb::Status& status, std::string_view doing) {
  if (status.ok()) return absl::OkStatus();
  const std::string text = StrCat("while ", doing, ": ", status.ToString());
  if (status.IsNoSpace()) return absl::ResourceExhaustedError(StrCat("disk full ", text));
  if (status.IsCorruption()) return absl::DataLossError(StrCat("stored bytes are corrupt ", text));
  if (status.IsIOError()) return absl::DataLossError(StrCat("I/O error ", text));
  if (status.IsShutdownInProgress() || status.IsAborted() || status.IsBusy() || status.IsTimedOut() ||
      status.IsTryAgain()) {
    return absl::UnavailableError(text);
  }
  return absl::InternalError(text);
}

}  // namespace percolator
