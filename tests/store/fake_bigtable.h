// FakeBigtable: a server that says what a test tells it to, and remembers what it was asked.
//
// It knows one table "t", as generation 1 in the catalog; everything else is the test's to script: the next answers of each
// kind of request on the tables of Percolator, in order. Without a script an answer is empty and fine.

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

  // The messages of an answer, and how it ends.
  struct ReadAnswer {
    std::vector<ReadRowsResponse> messages;
    grpc::Status status;
    bool hangs = false;  // then it ends only when the client gives up
  };
  void ScriptRead(ReadAnswer answer);
  void ScriptMutateRow(grpc::Status status);
  // The status of each entry; those beyond are not mentioned.
  void ScriptMutateRows(std::vector<grpc::Status> entries, grpc::Status status = {});
  void ScriptCheck(grpc::Status status, bool matched = false);
  // The catalog says from now on that "t" is of this generation; zero: there is none.
  void SetGeneration(int generation);

  // Requests, in order. Those on the catalog are left out.
  std::vector<ReadRowsRequest> reads() const;
  std::vector<MutateRowRequest> mutations() const;
  std::vector<MutateRowsRequest> batches() const;
  std::vector<CheckAndMutateRowRequest> checks() const;
  // The routing headers of all requests, also those on the catalog.
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

// A chunk with everything in it, which begins and ends a row: data:COLUMN @ 1 of the store.
google::bigtable::v2::ReadRowsResponse::CellChunk WholeRow(const std::string& key, const std::string& value);
// A message of chunks.
google::bigtable::v2::ReadRowsResponse Message(
    const std::vector<google::bigtable::v2::ReadRowsResponse::CellChunk>& chunks);

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_STORE_FAKE_BIGTABLE_H_
