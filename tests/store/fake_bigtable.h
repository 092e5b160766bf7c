// SPDX-License-Identifier: Apache-2.0

// FakeBigtable: a server that gives the answers that a test scripts, and records its requests.
//
// It knows one table "t", as generation 1 in the catalog. The test scripts everything else: the next answers of each
// kind of request on the tables of Percolator, in order. Without a script an answer is empty and OK.

#ifndef PERCOLATOR_TESTS_STORE_FAKE_BIGTABLE_H_
#define PERCOLATOR_TESTS_STORE_FAKE_BIGTABLE_H_

#include <grpcpp/server.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "percolator/spi/mutex.h"
#include "src/wire/proto/bigtable.grpc.pb.h"
#include "src/wire/proto/bigtable_admin.grpc.pb.h"

namespace percolator {

class FakeBigtable {
 public:
  using ReadRowsRequest = google::bigtable::v2::ReadRowsRequest;
  using ReadRowsResponse = google::bigtable::v2::ReadRowsResponse;
  using MutateRowRequest = google::bigtable::v2::MutateRowRequest;
  using MutateRowsRequest = google::bigtable::v2::MutateRowsRequest;
  using MutateRowsResponse = google::bigtable::v2::MutateRowsResponse;
  using CheckAndMutateRowRequest = google::bigtable::v2::CheckAndMutateRowRequest;

  FakeBigtable();
  ~FakeBigtable();

  const std::string& target() const { return target_; }

  // The messages of an answer, and its end.
  struct ReadAnswer {
    std::vector<ReadRowsResponse> messages;
    grpc::Status status;
    bool hangs = false;  // if true, it ends only when the client cancels
  };
  void ScriptRead(ReadAnswer answer);
  void ScriptMutateRow(grpc::Status status);
  // The status of each entry; the answer has none for further entries.
  void ScriptMutateRows(std::vector<grpc::Status> entries, grpc::Status status = {});
  void ScriptCheck(grpc::Status status, bool matched = false);
  // From now on "t" has this generation in the catalog. Zero: the catalog does not have "t".
  void SetGeneration(int generation);

  // The requests, in order, without those on the catalog.
  std::vector<ReadRowsRequest> reads() const;
  std::vector<MutateRowRequest> mutations() const;
  std::vector<MutateRowsRequest> batches() const;
  std::vector<CheckAndMutateRowRequest> checks() const;
  // The routing headers of all requests, including those on the catalog.
  std::vector<std::string> routes() const;

 private:
  class Data;
  class Admin;
  struct State;

  const std::unique_ptr<State> state_;
  const std::unique_ptr<Data> data_;
  const std::unique_ptr<Admin> admin_;
  std::string target_;
  std::unique_ptr<grpc::Server> server_;
};

// A complete chunk, which begins and ends a row: data:COLUMN @ 1 of the store.
google::bigtable::v2::ReadRowsResponse::CellChunk WholeRow(const std::string& key, const std::string& value);
// A message of chunks.
google::bigtable::v2::ReadRowsResponse Message(
    const std::vector<google::bigtable::v2::ReadRowsResponse::CellChunk>& chunks);

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_STORE_FAKE_BIGTABLE_H_
