// SPDX-License-Identifier: Apache-2.0

#include "sim/history/play.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <utility>

namespace percolator {
namespace {

[[noreturn]] void Refuse(std::string_view step) {
  std::cerr << "not a step of a script: " << step << "\n";
  std::abort();
}

// One step: a letter, the number of the transaction, and for operations [key] or [key=value].
struct Step {
  char what = 0;
  TxnId txn = 0;
  std::string key;
  std::optional<std::string> value;
};

Step ParseStep(std::string_view text) {
  Step step;
  step.what = text.front();
  const auto [rest, error] = std::from_chars(text.data() + 1, text.data() + text.size(), step.txn);
  if (error != std::errc()) Refuse(text);
  std::string_view argument = text.substr(rest - text.data());
  const bool is_operation = std::string_view("rw+v").find(step.what) != std::string_view::npos;
  const bool is_other = std::string_view("bcfi").find(step.what) != std::string_view::npos;
  if (!(is_operation ? argument.size() > 2 && argument.front() == '[' && argument.back() == ']'
                     : is_other && argument.empty())) {
    Refuse(text);
  }
  if (!is_operation) return step;
  argument = argument.substr(1, argument.size() - 2);
  const size_t equals = argument.find('=');
  step.key = argument.substr(0, equals);
  if (equals != std::string_view::npos) {
    step.value = argument.substr(equals + 1);
    std::replace(step.value->begin(), step.value->end(), ',', ' ');
  }
  return step;
}

TxnOperation OperationOf(const Step& step) {
  switch (step.what) {
    case 'r':
      return {TxnOperation::Kind::kRead, step.key, step.value};
    case 'w':
      return {TxnOperation::Kind::kWrite, step.key, step.value};
    case 'v':
      return {TxnOperation::Kind::kVerify, step.key, std::nullopt};
    default:
      return {TxnOperation::Kind::kAppend, step.key, std::nullopt, std::stoll(step.value.value())};
  }
}

bool HasWrites(const TxnRecord& record) {
  return std::any_of(record.operations.begin(), record.operations.end(),
                     [](const TxnOperation& operation) { return operation.kind != TxnOperation::Kind::kRead; });
}

void Finish(char how, uint64_t place, TxnRecord* record) {
  record->complete = place;
  record->outcome = how == 'c' ? TxnOutcome::kOk : how == 'f' ? TxnOutcome::kFail : TxnOutcome::kInfo;
  if (how == 'c' && HasWrites(*record)) record->commit_ts = Timestamp(place + 1);
}

}  // namespace

History Play(std::string_view script) {
  History history;
  uint64_t place = 0;
  while (true) {
    script.remove_prefix(std::min(script.find_first_not_of(" \n"), script.size()));
    if (script.empty()) return history;
    const std::string_view text = script.substr(0, script.find_first_of(" \n"));
    script.remove_prefix(text.size());
    const Step step = ParseStep(text);
    if (step.txn >= history.transactions.size()) history.transactions.resize(step.txn + 1);
    TxnRecord& record = history.transactions[step.txn];
    if (record.start_ts == Timestamp()) {
      record.process = static_cast<int>(step.txn);
      record.invoke = place;
      record.start_ts = Timestamp(place + 1);
      ++place;
    }
    if (step.what == 'c' || step.what == 'f' || step.what == 'i') {
      Finish(step.what, place, &record);
    } else if (step.what != 'b') {
      record.operations.push_back(OperationOf(step));
    }
    ++place;
  }
}

}  // namespace percolator
