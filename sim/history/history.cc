// SPDX-License-Identifier: Apache-2.0

#include "sim/history/history.h"

#include <charconv>
#include <utility>

#include "src/base/strings.h"

namespace percolator {
namespace {

std::string_view NameOf(TxnOutcome outcome) {
  switch (outcome) {
    case TxnOutcome::kOk:
      return "ok";
    case TxnOutcome::kFail:
      return "fail";
    case TxnOutcome::kInfo:
      return "info";
  }
  return "?";
}

std::string Describe(const TxnOperation& operation) {
  switch (operation.kind) {
    case TxnOperation::Kind::kRead:
      return StrCat("read ", operation.key, " = ", QuoteValue(operation.value));
    case TxnOperation::Kind::kWrite:
      if (!operation.value.has_value()) return StrCat("delete ", operation.key);
      return StrCat("write ", operation.key, " = ", QuoteValue(operation.value));
    case TxnOperation::Kind::kAppend:
      return StrCat("append ", operation.key, " ", operation.element);
    case TxnOperation::Kind::kVerify:
      return StrCat("verify ", operation.key);
  }
  return "?";
}

}  // namespace

void TxnRecord::Resolve(TxnOutcome resolved, Timestamp resolved_commit_ts) {
  outcome = resolved;
  complete = kNever;
  if (resolved_commit_ts != Timestamp()) commit_ts = resolved_commit_ts;
}

std::string Describe(const History& history, TxnId txn) {
  const TxnRecord& record = history.transactions[txn];
  std::string out = StrCat("T", txn, " (process ", record.process, ", ", NameOf(record.outcome));
  if (record.start_ts != Timestamp()) out += StrCat(", start ", record.start_ts.ToString());
  if (record.commit_ts != Timestamp()) out += StrCat(", commit ", record.commit_ts.ToString());
  out += "):";
  std::string_view separator = " ";
  for (const TxnOperation& operation : record.operations) {
    out += StrCat(separator, Describe(operation));
    separator = ", ";
  }
  return out;
}

HistoryRecorder::Handle HistoryRecorder::Begin(int process) {
  MutexLock lock(&mutex_);
  TxnRecord& record = history_.transactions.emplace_back();
  record.process = process;
  record.invoke = next_order_++;
  return {this, static_cast<TxnId>(history_.transactions.size() - 1)};
}

History HistoryRecorder::Copy() const {
  MutexLock lock(&mutex_);
  return history_;
}

History HistoryRecorder::Take() {
  MutexLock lock(&mutex_);
  return std::exchange(history_, {});
}

void HistoryRecorder::Handle::Add(TxnOperation operation) {
  MutexLock lock(&recorder_->mutex_);
  recorder_->history_.transactions[id_].operations.push_back(std::move(operation));
}

void HistoryRecorder::Handle::Read(std::string_view key, std::optional<std::string> value) {
  Add({TxnOperation::Kind::kRead, std::string(key), std::move(value)});
}

void HistoryRecorder::Handle::Write(std::string_view key, std::string_view value) {
  Add({TxnOperation::Kind::kWrite, std::string(key), std::string(value)});
}

void HistoryRecorder::Handle::Delete(std::string_view key) {
  Add({TxnOperation::Kind::kWrite, std::string(key), std::nullopt});
}

void HistoryRecorder::Handle::Append(std::string_view key, int64_t element) {
  Add({TxnOperation::Kind::kAppend, std::string(key), std::nullopt, element});
}

void HistoryRecorder::Handle::Verify(std::string_view key) {
  Add({TxnOperation::Kind::kVerify, std::string(key), std::nullopt});
}

void HistoryRecorder::Handle::Started(Timestamp start_ts) {
  MutexLock lock(&recorder_->mutex_);
  recorder_->history_.transactions[id_].start_ts = start_ts;
}

void HistoryRecorder::Handle::Finish(TxnOutcome outcome, Timestamp start_ts, Timestamp commit_ts) {
  MutexLock lock(&recorder_->mutex_);
  TxnRecord& record = recorder_->history_.transactions[id_];
  record.complete = recorder_->next_order_++;
  record.outcome = outcome;
  if (start_ts != Timestamp()) record.start_ts = start_ts;
  if (commit_ts != Timestamp()) record.commit_ts = commit_ts;
}

std::optional<std::vector<int64_t>> ParseList(std::string_view text) {
  std::vector<int64_t> list;
  const char* next = text.data();
  const char* const end = text.data() + text.size();
  while (next != end) {
    int64_t element = 0;
    const auto [rest, error] = std::from_chars(next, end, element);
    if (error != std::errc()) return std::nullopt;
    list.push_back(element);
    next = rest == end ? end : rest + 1;
  }
  // Refuses what the loop accepts but FormatList does not write: leading zeros, other separators, one at the end.
  if (FormatList(list) != text) return std::nullopt;
  return list;
}

std::string FormatList(const std::vector<int64_t>& list) {
  std::string text;
  for (const int64_t element : list) AppendToList(&text, element);
  return text;
}

void AppendToList(std::string* list, int64_t element) {
  if (!list->empty()) list->push_back(' ');
  list->append(std::to_string(element));
}

std::optional<std::string_view> WithoutEnd(std::string_view list, std::string_view end) {
  if (end.empty()) return list;
  if (!list.ends_with(end)) return std::nullopt;
  list.remove_suffix(end.size());
  if (list.empty()) return list;
  if (!list.ends_with(' ')) return std::nullopt;
  list.remove_suffix(1);
  return list;
}

std::string QuoteValue(const std::optional<std::string_view>& value) {
  return value.has_value() ? StrCat("\"", *value, "\"") : "absent";
}

}  // namespace percolator
