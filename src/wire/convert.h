// SPDX-License-Identifier: Apache-2.0

// Converts the types of percolator/spi/store.h to messages and back. FromMessage returns InvalidArgument if a message does not
// represent such a value. It does not check the value itself (its limits, its table): the store does.

#ifndef PERCOLATOR_WIRE_CONVERT_H_
#define PERCOLATOR_WIRE_CONVERT_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/spi/store.h"
#include "percolator/status_macros.h"
#include "src/wire/proto/percolator.pb.h"

namespace percolator {

void ToMessage(const RowRead& read, v1::RowRead* message);
void ToMessage(const ScanRequest& request, v1::ScanRequest* message);
void ToMessage(const RowMutation& mutation, v1::RowMutation* message);
void ToMessage(Row row, v1::Row* message);

// FromMessage moves the contents out of the message.
absl::StatusOr<RowRead> FromMessage(v1::RowRead* message);
absl::StatusOr<ScanRequest> FromMessage(v1::ScanRequest* message);
absl::StatusOr<RowMutation> FromMessage(v1::RowMutation* message);
absl::StatusOr<Row> FromMessage(v1::Row* message);
absl::StatusOr<Cell> FromMessage(v1::Cell* message);
absl::StatusOr<Selector> FromMessage(v1::Selector* message);
absl::StatusOr<CellRange> FromMessage(v1::CellRange* message);
absl::StatusOr<Mutation> FromMessage(v1::Mutation* message);

// Converts all messages, in order.
template <typename Type, typename Messages>
absl::StatusOr<std::vector<Type>> FromMessages(Messages* messages) {
  std::vector<Type> all;
  all.reserve(static_cast<size_t>(messages->size()));
  for (auto& message : *messages) {
    PERCOLATOR_ASSIGN_OR_RETURN(Type one, FromMessage(&message));
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace percolator

#endif  // PERCOLATOR_WIRE_CONVERT_H_
