// SPDX-License-Identifier: Apache-2.0

#include "src/store/rocks/max_timestamp.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "src/base/coding.h"
#include "src/store/rocks/cell_key.h"
#include "src/store/rocks/rocks_status.h"

namespace percolator {
namespace {

constexpr char kProperty[] = "percolator.max-timestamp";

class Collector : public rocksdb::TablePropertiesCollector {
 public:
  rocksdb::Status AddUserKey(const rocksdb::Slice& key, const rocksdb::Slice& /*value*/, rocksdb::EntryType type,
                             rocksdb::SequenceNumber /*seq*/, uint64_t /*file_size*/) override {
    if (type == rocksdb::kEntryPut && key.size() > kTimestampBytes) {
      max_ = std::max(max_, TimestampOf(std::string_view(key.data(), key.size())));
    }
    return rocksdb::Status::OK();
  }
  rocksdb::Status Finish(rocksdb::UserCollectedProperties* properties) override {
    std::string value;
    AppendFixed64(&value, max_.value());
    properties->emplace(kProperty, value);
    return rocksdb::Status::OK();
  }
  rocksdb::UserCollectedProperties GetReadableProperties() const override { return {{kProperty, max_.ToString()}}; }
  const char* Name() const override { return "percolator.MaxTimestampCollector"; }

 private:
  Timestamp max_;
};

class Factory : public rocksdb::TablePropertiesCollectorFactory {
 public:
  rocksdb::TablePropertiesCollector* CreateTablePropertiesCollector(Context /*context*/) override {
    return new Collector;
  }
  const char* Name() const override { return "percolator.MaxTimestampCollectorFactory"; }
};

}  // namespace

std::shared_ptr<rocksdb::TablePropertiesCollectorFactory> NewMaxTimestampCollectorFactory() {
  return std::make_shared<Factory>();
}

absl::StatusOr<Timestamp> MaxTimestampInFiles(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family) {
  rocksdb::TablePropertiesCollection files;
  const rocksdb::Status status = db->GetPropertiesOfAllTables(family, &files);
  if (!status.ok()) return FromRocks(status, "reading the properties of the store's files");
  Timestamp max;
  for (const auto& [name, properties] : files) {
    const auto found = properties->user_collected_properties.find(kProperty);
    uint64_t value = 0;
    std::string_view encoded;
    if (found != properties->user_collected_properties.end()) encoded = found->second;
    // A file without the property may have any timestamp.
    if (!ConsumeFixed64(&encoded, &value)) return Timestamp::Infinity();
    max = std::max(max, Timestamp(value));
  }
  return max;
}

}  // namespace percolator
