// SPDX-License-Identifier: Apache-2.0

// Well-formed Bigtable requests on existing tables and families, one after another. Checks the answers as a client gets
// them: complete rows, in order, no more than were requested, and the same when they are read again.
#include <fuzzer/FuzzedDataProvider.h>

#include <string>
#include <vector>

#include "src/store/bigtable/row_parser.h"
#include "tests/fuzz/bigtable_world.h"

namespace percolator {
namespace {

namespace bt = google::bigtable::v2;

constexpr int kSteps = 24;
constexpr int kDeep = 3;
constexpr const char* kKeys[] = {"a", "b", "c"};

class Requests {
 public:
  explicit Requests(FuzzedDataProvider* bytes) : bytes_(*bytes), native_(bytes->ConsumeBool()) {}

  bt::ReadRowsRequest Read() {
    bt::ReadRowsRequest request;
    request.set_table_name(BigtableWorld::TableName(native_));
    request.set_rows_limit(bytes_.ConsumeIntegralInRange<int>(0, 2));
    if (bytes_.ConsumeBool()) request.mutable_rows()->add_row_keys(Key());
    if (bytes_.ConsumeBool()) request.mutable_rows()->add_row_ranges()->set_start_key_closed(Key());
    if (bytes_.ConsumeBool()) request.mutable_rows()->add_row_ranges()->set_end_key_closed(Key());
    if (bytes_.ConsumeBool()) Filter(kDeep, request.mutable_filter());
    return request;
  }

  bt::MutateRowRequest Mutate() {
    bt::MutateRowRequest request;
    request.set_table_name(BigtableWorld::TableName(native_));
    request.set_row_key(Key());
    Mutations(request.mutable_mutations());
    return request;
  }

  bt::CheckAndMutateRowRequest Check() {
    bt::CheckAndMutateRowRequest request;
    request.set_table_name(BigtableWorld::TableName(native_));
    request.set_row_key(Key());
    if (bytes_.ConsumeBool()) Filter(kDeep, request.mutable_predicate_filter());
    if (bytes_.ConsumeBool()) Mutations(request.mutable_true_mutations());
    if (bytes_.ConsumeBool()) Mutations(request.mutable_false_mutations());
    return request;
  }

 private:
  std::string Key() { return bytes_.PickValueInArray(kKeys); }
  std::string Family() {
    if (native_) return bytes_.PickValueInArray({"data", "lock", "write", "notify"});
    return bytes_.PickValueInArray({"f", "g"});
  }
  int64_t Time() { return bytes_.ConsumeIntegralInRange<int>(0, 5) * 1000; }
  std::string Value() { return bytes_.ConsumeRandomLengthString(9); }

  void Mutations(google::protobuf::RepeatedPtrField<bt::Mutation>* mutations) {
    for (int left = bytes_.ConsumeIntegralInRange<int>(1, 3); left > 0; --left) Mutation(mutations->Add());
  }

  void Mutation(bt::Mutation* mutation) {
    switch (bytes_.ConsumeIntegralInRange<int>(0, 5)) {
      case 0: {
        auto* const erase = mutation->mutable_delete_from_column();
        erase->set_family_name(Family());
        erase->set_column_qualifier(Key());
        erase->mutable_time_range()->set_start_timestamp_micros(Time());
        break;
      }
      case 1:
        mutation->mutable_delete_from_family()->set_family_name(Family());
        break;
      case 2:
        mutation->mutable_delete_from_row();
        break;
      default: {
        auto* const set = mutation->mutable_set_cell();
        set->set_family_name(Family());
        set->set_column_qualifier(Key());
        set->set_timestamp_micros(Time());
        set->set_value(Value());
      }
    }
  }

  void Filters(int deep, google::protobuf::RepeatedPtrField<bt::RowFilter>* filters) {
    for (int left = bytes_.ConsumeIntegralInRange<int>(2, 3); left > 0; --left) Filter(deep, filters->Add());
  }

  void Filter(int deep, bt::RowFilter* filter) {
    switch (bytes_.ConsumeIntegralInRange<int>(deep > 0 ? 0 : 3, 14)) {
      case 0:
        return Filters(deep - 1, filter->mutable_chain()->mutable_filters());
      case 1:
        return Filters(deep - 1, filter->mutable_interleave()->mutable_filters());
      case 2:
        Filter(deep - 1, filter->mutable_condition()->mutable_predicate_filter());
        Filter(deep - 1, filter->mutable_condition()->mutable_true_filter());
        return Filter(deep - 1, filter->mutable_condition()->mutable_false_filter());
      case 3:
        return filter->set_row_key_regex_filter(Key());
      case 4:
        return filter->set_family_name_regex_filter(Family());
      case 5:
        return filter->set_column_qualifier_regex_filter(bytes_.ConsumeBool() ? "a|b" : Key());
      case 6: {
        auto* const range = filter->mutable_column_range_filter();
        range->set_family_name(Family());
        if (bytes_.ConsumeBool()) range->set_start_qualifier_closed(Key());
        if (bytes_.ConsumeBool()) range->set_end_qualifier_closed(Key());
        return;
      }
      case 7:
        filter->mutable_timestamp_range_filter()->set_start_timestamp_micros(Time());
        return filter->mutable_timestamp_range_filter()->set_end_timestamp_micros(Time());
      case 8:
        return filter->set_value_regex_filter(".*");
      case 9:
        return filter->set_cells_per_row_offset_filter(bytes_.ConsumeIntegralInRange<int>(0, 4));
      case 10:
        return filter->set_cells_per_row_limit_filter(bytes_.ConsumeIntegralInRange<int>(1, 4));
      case 11:
        return filter->set_cells_per_column_limit_filter(bytes_.ConsumeIntegralInRange<int>(1, 3));
      case 12:
        return filter->set_strip_value_transformer(true);
      case 13:
        return filter->set_apply_label_transformer("l");
      default:
        return filter->set_pass_all_filter(true);
    }
  }

  FuzzedDataProvider& bytes_;
  const bool native_;
};

// All messages of an answer, one after another; empty if the request is refused.
std::string AnswerTo(BigtableWorld* world, const bt::ReadRowsRequest& request, std::vector<WireRow>* rows) {
  auto reader = RowReader::Open(world->store(), world->tables(), request);
  std::string all;
  RowParser parser;
  while (reader.ok() && !(*reader)->AtEnd()) {
    auto messages = (*reader)->Next();
    if (!messages.ok()) return "";
    for (bt::ReadRowsResponse& message : *messages) {
      all += message.SerializeAsString();
      FUZZ_CHECK(parser.Consume(&message, rows).ok());
    }
  }
  FUZZ_CHECK(parser.Finish().ok());
  return all;
}

void Read(BigtableWorld* world, const bt::ReadRowsRequest& request) {
  std::vector<WireRow> rows;
  std::vector<WireRow> again;
  FUZZ_CHECK(AnswerTo(world, request, &rows) == AnswerTo(world, request, &again));
  if (request.rows_limit() > 0) FUZZ_CHECK(rows.size() <= static_cast<size_t>(request.rows_limit()));
}

}  // namespace
}  // namespace percolator

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace percolator;
  FuzzedDataProvider bytes(data, size);
  Requests requests(&bytes);
  BigtableWorld world;
  for (int step = 0; step < kSteps && bytes.remaining_bytes() > 0; ++step) {
    const int kind = bytes.ConsumeIntegralInRange<int>(0, 3);
    google::bigtable::v2::CheckAndMutateRowResponse response;
    if (kind == 0) {
      Read(&world, requests.Read());
    } else if (kind == 1) {
      (void)world.mutator()->CheckAndMutateRow(requests.Check(), &response);
    } else {
      (void)world.mutator()->MutateRow(requests.Mutate());
    }
  }
  return 0;
}
