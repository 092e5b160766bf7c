// SPDX-License-Identifier: Apache-2.0

// The verbs of Player for transactions: reading, writing and committing, whole and step by step.

#include <utility>

#include "src/base/strings.h"
#include "tests/histories/dump.h"
#include "tests/histories/player.h"
#include "tests/histories/words.h"

namespace percolator {

// --- Transactions

Player::Answer Player::Init(const Words& words) {
  Answer begun = Begin({"t0"});
  if (!begun.ok()) return begun;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) return Mistake("not cell=value");
    Answer set = Set({"t0", word.substr(0, equals), word.substr(equals + 1)});
    if (!set.ok()) return set;
  }
  Answer committed = Commit({"t0"});
  if (!committed.ok()) return committed;
  return committed->starts_with("t0: committed") ? "" : *committed;
}

Player::Answer Player::Begin(const Words& words) {
  if (by_name_.contains(words[0])) return Mistake("the name is already used");
  const absl::StatusOr<Client*> client = StartClient(words[0]);
  if (!client.ok()) return client.status();
  if (absl::Status s = (*client)->Begin(); !s.ok()) return s;
  if (absl::Status s = stamps_.Number((*client)->start_ts(), WantedNumber(words)); !s.ok()) return s;
  stamps_.NameTransaction((*client)->start_ts(), words[0]);
  by_name_[words[0]] = *client;
  return "";
}

Player::Answer Player::OpenSnapshot(const Words& words) {
  if (by_name_.contains(words[0])) return Mistake("the name is already used");
  std::optional<Timestamp> ts;
  if (const std::optional<int> number = WantedNumber(words)) {
    ts = stamps_.Find(*number);
    if (!ts.has_value()) return Mistake("unknown timestamp");
  }
  const absl::StatusOr<Client*> client = StartClient(words[0]);
  if (!client.ok()) return client.status();
  const absl::Status opened = (*client)->OpenSnapshot(ts);
  if (!opened.ok()) return StrCat(words[0], ": ", ErrorText(opened));
  if (absl::Status s = stamps_.Number((*client)->start_ts()); !s.ok()) return s;
  by_name_[words[0]] = *client;
  return "";
}

Player::Answer Player::Get(const Words& words) {
  const absl::StatusOr<Client*> client = FindReader(words[0]);
  if (!client.ok()) return client.status();
  const absl::StatusOr<std::vector<CellName>> cells = FindCells(words, 1);
  if (!cells.ok()) return cells.status();
  return Act(*client, [&]() -> Answer {
    const absl::StatusOr<std::vector<std::optional<std::string>>> values = (*client)->view()->GetCells(*cells);
    if (!values.ok()) return ErrorText(values.status());
    return ValuesText({words.begin() + 1, words.end()}, *values);
  });
}

Player::Answer Player::Scan(const Words& words) {
  const absl::StatusOr<Client*> client = FindReader(words[0]);
  if (!client.ok()) return client.status();
  std::optional<ScriptPredicate> predicate;
  if (words.size() > 1) {
    const absl::StatusOr<ScriptPredicate> parsed = ScriptPredicate::Parse(words[1]);
    if (!parsed.ok()) return parsed.status();
    predicate = *parsed;
  }
  return Act(*client, [&]() -> Answer {
    std::vector<std::string> found;
    for (const std::string& table : cells_.tables()) {
      for (const absl::StatusOr<ScannedRow>& row : (*client)->view()->Scan(table)) {
        if (!row.ok()) return ErrorText(row.status());
        for (const ScannedRow::Column& column : row->columns) {
          if (predicate.has_value() && !predicate->Holds(column.value)) continue;
          found.push_back(StrCat(cells_.NameOf({table, row->key, column.name}), " = ", ValueText(column.value)));
        }
      }
    }
    return found.empty() ? "nothing" : Joined(found, ", ");
  });
}

Player::Answer Player::Set(const Words& words) {
  const absl::StatusOr<Client*> client = FindWriter(words[0]);
  const absl::StatusOr<CellName> cell = FindCell(words[1]);
  if (!client.ok() || !cell.ok()) return client.ok() ? cell.status() : client.status();
  (*client)->transaction()->Set(*cell, ParseValue(words[2]));
  return WriteErrorText(*client);
}

Player::Answer Player::Delete(const Words& words) {
  const absl::StatusOr<Client*> client = FindWriter(words[0]);
  const absl::StatusOr<CellName> cell = FindCell(words[1]);
  if (!client.ok() || !cell.ok()) return client.ok() ? cell.status() : client.status();
  (*client)->transaction()->Delete(*cell);
  return WriteErrorText(*client);
}

Player::Answer Player::Verify(const Words& words) {
  const absl::StatusOr<Client*> client = FindWriter(words[0]);
  const absl::StatusOr<CellName> cell = FindCell(words[1]);
  if (!client.ok() || !cell.ok()) return client.ok() ? cell.status() : client.status();
  (*client)->transaction()->Verify(*cell);
  return WriteErrorText(*client);
}

Player::Answer Player::Commit(const Words& words) {
  const absl::StatusOr<Client*> client = FindWriter(words[0]);
  if (!client.ok()) return client.status();
  return Act(*client, [&] { return ResultText((*client)->Commit(), WantedNumber(words)); });
}

Player::Answer Player::Abort(const Words& words) {
  const absl::StatusOr<Client*> client = FindReader(words[0]);
  if (!client.ok()) return client.status();
  (*client)->Abandon();
  return "";
}

// Adds one, in a transaction of its own that runs until it commits.
Player::Answer Player::Increment(const Words& words) {
  const absl::StatusOr<Client*> client = FindLive(words[0]);
  const absl::StatusOr<CellName> cell = FindCell(words[1]);
  if (!client.ok() || !cell.ok()) return client.ok() ? cell.status() : client.status();
  return Act(*client, [&]() -> Answer {
    int runs = 0;
    const auto increment = [&](ReadWrite& t) -> absl::Status {
      ++runs;
      const absl::StatusOr<std::optional<std::string>> value = t.Get(*cell);
      if (!value.ok()) return value.status();
      const int number = value->has_value() ? ParseNumber(**value).value_or(0) : 0;
      t.Set(*cell, std::to_string(number + 1));
      return absl::OkStatus();
    };
    CommitResult result;
    const absl::Status status = (*client)->cluster().Transact(increment, {}, &result);
    if (!status.ok()) return ErrorText(status);
    if (absl::Status s = stamps_.Number(result.commit_ts); !s.ok()) return s;
    return StrCat("committed ", stamps_.Text(result.commit_ts), " in run ", runs);
  });
}

// --- The steps of a commit

Player::Answer Player::Prewrite(const Words& words) {
  const absl::StatusOr<Client*> client = FindLive(words[0]);
  if (!client.ok()) return client.status();
  const absl::StatusOr<std::vector<CellName>> cells = FindCells(words, 1);
  if (!cells.ok()) return cells.status();
  return Act(*client, [&]() -> Answer {
    const absl::Status prewritten = (*client)->Prewrite(*cells);
    if (absl::IsInvalidArgument(prewritten)) return prewritten;
    return prewritten.ok() ? "" : "refused: " + ErrorText(prewritten);
  });
}

Player::Answer Player::DrawCommitTimestamp(const Words& words) {
  const absl::StatusOr<Client*> client = FindClient(words[0]);
  if (!client.ok()) return client.status();
  const absl::StatusOr<Timestamp> drawn = (*client)->DrawCommitTimestamp();
  if (!drawn.ok()) return drawn.status();
  if (absl::Status s = stamps_.Number(*drawn, WantedNumber(words)); !s.ok()) return s;
  return "";
}

Player::Answer Player::CommitPrimary(const Words& words) {
  const absl::StatusOr<Client*> client = FindLive(words[0]);
  if (!client.ok()) return client.status();
  if (!(*client)->prewritten()) return Mistake("it is not prewritten");
  Answer drawn = DrawCommitTimestamp(words);
  if (!drawn.ok()) return drawn;
  return Act(*client, [&] { return ResultText((*client)->CommitPrimary(), std::nullopt); });
}

Player::Answer Player::CommitSecondaries(const Words& words) {
  const absl::StatusOr<Client*> client = FindLive(words[0]);
  if (!client.ok()) return client.status();
  if (!(*client)->primary_committed()) return Mistake("its primary is not committed");
  return Act(*client, [&]() -> Answer {
    (*client)->CommitSecondaries();
    return "";
  });
}

Player::Answer Player::RollBack(const Words& words) {
  const absl::StatusOr<Client*> client = FindLive(words[0]);
  if (!client.ok()) return client.status();
  if (!(*client)->prewritten()) return Mistake("it is not prewritten");
  return Act(*client, [&]() -> Answer {
    (*client)->RollBack();
    return "";
  });
}

Player::Answer Player::Outcome(const Words& words) {
  const absl::StatusOr<Client*> client = FindLive(words[0]);
  if (!client.ok()) return client.status();
  return Act(*client, [&]() -> Answer {
    const absl::StatusOr<CommitResult> result = (*client)->Outcome();
    return result.ok() ? ResultText(*result, std::nullopt) : "still unknown";
  });
}

}  // namespace percolator
