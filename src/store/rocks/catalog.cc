// SPDX-License-Identifier: Apache-2.0

#include "src/store/rocks/catalog.h"

#include <limits>
#include <string_view>
#include <utility>

#include "src/base/coding.h"
#include "src/base/strings.h"
#include "src/store/rocks/rocks_status.h"

namespace percolator {
namespace {

constexpr std::string_view kTableKey = "table/";
constexpr std::string_view kNextIdKey = "next-table-id";
constexpr std::string_view kSafePointKey = "safe-point";

std::string KeyOf(const std::string& name) { return StrCat(kTableKey, name); }

}  // namespace

absl::Status RocksCatalog::Load(rocksdb::DB* db) {
  WriterLock lock(&mutex_);
  std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(rocksdb::ReadOptions()));
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    const std::string_view key(it->key().data(), it->key().size());
    if (!LoadEntry(key, std::string_view(it->value().data(), it->value().size()))) {
      return absl::DataLossError(StrCat("the store's catalog has an entry that is not valid: ", key));
    }
  }
  return FromRocks(it->status(), "reading the store's catalog");
}

bool RocksCatalog::LoadEntry(std::string_view key, std::string_view value) {
  if (key == kSafePointKey) {
    uint64_t safe_point = 0;
    if (!ConsumeFixed64(&value, &safe_point) || !value.empty()) return false;
    SetSafePoint(Timestamp(safe_point));
    return true;
  }
  uint32_t id = 0;
  if (!ConsumeFixed32(&value, &id)) return false;
  if (key == kNextIdKey) {
    next_id_ = id;
    return true;
  }
  if (!ConsumePrefix(&key, kTableKey)) return false;
  const std::string name(key);
  tables_[name] = std::make_unique<Table>(id, TableInfo{name, std::string(value)});
  return true;
}

Table* RocksCatalog::LookUp(const std::string& name) const {
  ReaderLock lock(&mutex_);
  const auto found = tables_.find(name);
  if (found == tables_.end()) return nullptr;
  KnownAs(name).store(found->second.get(), std::memory_order_release);
  return found->second.get();
}

std::vector<TableInfo> RocksCatalog::List() const {
  ReaderLock lock(&mutex_);
  std::vector<TableInfo> infos;
  infos.reserve(tables_.size());
  for (const auto& [name, table] : tables_) infos.push_back(table->info);
  return infos;
}

bool RocksCatalog::Full() const {
  ReaderLock lock(&mutex_);
  return next_id_ == std::numeric_limits<uint32_t>::max();
}

std::unique_ptr<Table> RocksCatalog::StageCreate(const TableInfo& info, rocksdb::WriteBatch* batch) const {
  ReaderLock lock(&mutex_);
  std::string entry;
  AppendFixed32(&entry, next_id_);
  entry.append(info.schema);
  std::string next;
  AppendFixed32(&next, next_id_ + 1);
  batch->Put(KeyOf(info.name), entry);
  batch->Put(kNextIdKey, next);
  return std::make_unique<Table>(next_id_, info);
}

void RocksCatalog::Add(std::unique_ptr<Table> table) {
  WriterLock lock(&mutex_);
  next_id_ = table->id + 1;
  std::string name = table->info.name;
  tables_.emplace(std::move(name), std::move(table));
}

void RocksCatalog::StageDrop(const Table& table, rocksdb::WriteBatch* batch) { batch->Delete(KeyOf(table.info.name)); }

void RocksCatalog::Remove(const std::string& name) {
  WriterLock lock(&mutex_);
  const auto found = tables_.find(name);
  dropped_.push_back(std::move(found->second));
  tables_.erase(found);
}

void RocksCatalog::StageSafePoint(Timestamp ts, rocksdb::WriteBatch* batch) {
  std::string value;
  AppendFixed64(&value, ts.value());
  batch->Put(kSafePointKey, value);
}

}  // namespace percolator
