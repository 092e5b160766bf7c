// SPDX-License-Identifier: Apache-2.0

// The verbs of Player for everything around transactions: failures, late messages, time, garbage collection, and
// inspection.

#include <set>
#include <utility>

#include "src/base/strings.h"
#include "src/txn/resolve.h"
#include "tests/harness/raw_cells.h"
#include "tests/histories/dump.h"
#include "tests/histories/player.h"
#include "tests/histories/words.h"

namespace percolator {
namespace {

// More than the oracle is ahead of the elapsed time because of its draws.
constexpr Duration kMargin = std::chrono::seconds(1);

}  // namespace

// --- Failures

Player::Answer Player::Stop(const Words& words) {
  const absl::StatusOr<Client*> client = FindLive(words[0]);
  if (!client.ok()) return client.status();
  const std::optional<int> mutation = ParseNumber(words[2]);
  if ((words[1] != "before" && words[1] != "after") || mutation.value_or(0) < 1) {
    return Mistake("not before or after a number");
  }
  (*client)->store().StopAt(words[1] == "before" ? ClientStore::Moment::kBefore : ClientStore::Moment::kAfter,
                            *mutation);
  return "";
}

Player::Answer Player::Go(const Words& words) {
  const absl::StatusOr<Client*> client = FindLive(words[0]);
  if (!client.ok()) return client.status();
  (*client)->store().GoOn();
  return "";
}

Player::Answer Player::Crash(const Words& words) {
  const absl::StatusOr<Client*> client = FindLive(words[0]);
  if (!client.ok()) return client.status();
  coordinator_.EndSession((*client)->env().session);
  (*client)->Crash();
  return "";
}

Player::Answer Player::Hang(const Words& words) {
  const absl::StatusOr<Client*> client = FindLive(words[0]);
  if (!client.ok()) return client.status();
  (*client)->StopRefreshing();
  return "";
}

Player::Answer Player::LoseSession(const Words& words) {
  const absl::StatusOr<Client*> client = FindLive(words[0]);
  if (!client.ok()) return client.status();
  coordinator_.EndSession((*client)->env().session);
  return "";
}

Player::Answer Player::Deliver(const Words& words) {
  const absl::StatusOr<Client*> client = FindClient(words[0]);
  if (!client.ok()) return client.status();
  const absl::StatusOr<std::vector<CellName>> cells = FindCells(words, 2);
  if (!cells.ok()) return cells.status();
  static const auto& steps = *new std::map<std::string_view, Client::Step>{
      {"prewrite", Client::Step::kPrewrite}, {"commit", Client::Step::kCommit}, {"rollback", Client::Step::kRollBack}};
  const auto step = steps.find(words[1]);
  if (step == steps.end()) return Mistake("not prewrite, commit or rollback");
  if (step->second == Client::Step::kCommit) {
    Answer drawn = DrawCommitTimestamp({words[0]});
    if (!drawn.ok()) return drawn;
  }
  const absl::StatusOr<std::vector<RowMutation>> requests = (*client)->RequestOf(step->second, *cells);
  if (!requests.ok()) return requests.status();
  std::set<std::string> answers;
  for (const absl::StatusOr<MutateResult>& result : store_->Mutate(*requests)) {
    answers.insert(!result.ok() ? "refused: " + ErrorText(result.status())
                                : (*result == MutateResult::kApplied ? "applied" : "refused"));
  }
  return StrCat(words[0], " ", words[1], ": ", Joined({answers.begin(), answers.end()}, " or "));
}

Player::Answer Player::Resend(const Words& words) {
  const absl::StatusOr<Client*> client = FindClient(words[0]);
  if (!client.ok()) return client.status();
  absl::StatusOr<std::vector<RawCell>> before = ReadRawCells(store_.get());
  (*client)->store().SendAllAgain(&oracle_);
  absl::StatusOr<std::vector<RawCell>> after = ReadRawCells(store_.get());
  if (!before.ok() || !after.ok()) return before.ok() ? after.status() : before.status();
  // Its own rollback may leave a marker again after that was collected. A wrong one would break T1.
  std::erase_if(*before, [](const RawCell& cell) { return cell.is_marker(); });
  std::erase_if(*after, [](const RawCell& cell) { return cell.is_marker(); });
  return StrCat(words[0], " again: ", *before == *after ? "nothing changes" : "something changes");
}

Player::Answer Player::Meet(const Words& words) {
  const absl::StatusOr<CellName> cell = FindCell(words[1]);
  if (!cell.ok()) return cell.status();
  const absl::StatusOr<Client*> client = StartClient(words[0]);
  if (!client.ok()) return client.status();
  const absl::StatusOr<std::vector<RawCell>> cells = ReadRawCells(store_.get());
  if (!cells.ok()) return cells.status();
  for (const RawCell& raw : *cells) {
    if (raw.name == *cell && raw.lock.has_value()) (*client)->met = FoundLock{*cell, raw.timestamp, *raw.lock};
  }
  by_name_[words[0]] = *client;
  return (*client)->met.has_value() ? "" : StrCat(words[1], ": no lock");
}

// By a client that has met a lock before, or by a new client for a cell.
Player::Answer Player::Resolve(const Words& words) {
  if (cells_.Find(words[0]) != nullptr) {
    Answer met = Meet({words[0], words[0]});
    if (!met.ok() || !met->empty()) return met;
  }
  const absl::StatusOr<Client*> client = FindClient(words[0]);
  if (!client.ok()) return client.status();
  if (!(*client)->met.has_value()) return Mistake("it has met no lock");
  return Act(*client, [&]() -> Answer {
    const FoundLock met = *(*client)->met;
    const absl::StatusOr<bool> resolved = ResolveLocks((*client)->env(), {met}, LiveLocks::kKeep);
    if (!resolved.ok()) return ErrorText(resolved.status());
    return *resolved ? "resolved" : stamps_.TransactionName(met.start_ts) + " is alive";
  });
}

// --- The world

Player::Answer Player::Expire(const Words& /*words*/) {
  runtime_.Sleep(kLease + kMargin);
  return "";
}

Player::Answer Player::Sleep(const Words& words) {
  std::string_view text = words[0];
  if (!text.ends_with("s")) return Mistake("not a number of seconds: 5s");
  text.remove_suffix(1);
  const std::optional<int> seconds = ParseNumber(text);
  if (!seconds.has_value()) return Mistake("not a number of seconds: 5s");
  runtime_.Sleep(std::chrono::seconds(*seconds));
  return "";
}

// Waits until everything that has happened is older than the retention.
Player::Answer Player::CollectGarbage(const Words& /*words*/) {
  runtime_.Sleep(kRetention + kMargin);
  collected_ = true;
  const absl::StatusOr<Client*> client = StartClient("gc");
  if (!client.ok()) return client.status();
  return Act(*client, [&]() -> Answer {
    const absl::StatusOr<Timestamp> safe_point = (*client)->cluster().CollectGarbage();
    return safe_point.ok() ? "up to " + stamps_.Text(*safe_point) : ErrorText(safe_point.status());
  });
}

Player::Answer Player::Lose(const Words& words) {
  if (words[0] == "request") {
    network_.lose_request = true;
  } else if (words[0] == "answer" || words[0] == "connection") {
    network_.lose_answer = true;
    network_.lose_connection = words[0] == "connection";
  } else {
    return Mistake("not request, answer or connection");
  }
  return "";
}

Player::Answer Player::Duplicate(const Words& words) {
  if (words[0] != "soon" && words[0] != "late") return Mistake("not soon or late");
  network_.copy = words[0] == "soon" ? Network::Copy::kSoon : Network::Copy::kLate;
  return "";
}

Player::Answer Player::Disconnect(const Words& /*words*/) {
  network_.down = true;
  return "";
}

Player::Answer Player::Connect(const Words& /*words*/) {
  network_.down = false;
  return "";
}

Player::Answer Player::Restart(const Words& /*words*/) {
  if (!running_.empty()) return Mistake("a command is still running");
  for (const std::unique_ptr<Client>& client : clients_) client->store().GoOn();
  by_name_.clear();
  clients_.clear();
  runtime_.LetOthersRun();
  oracle_.Advance(1'000'000);  // above everything that it may have handed out below an unused bound (O3)
  if (absl::Status s = OpenStore(); !s.ok()) return s;
  return "";
}

Player::Answer Player::DropTable(const Words& words) {
  const absl::StatusOr<CellName> cell = FindCell(words[0]);
  if (!cell.ok()) return cell.status();
  const absl::StatusOr<Client*> client = StartClient("drop-table");
  if (!client.ok()) return client.status();
  return Act(*client, [&]() -> Answer {
    const absl::Status dropped = (*client)->cluster().DropTable(cell->table);
    return dropped.ok() ? "" : ErrorText(dropped);
  });
}

// --- Inspection

Player::Answer Player::Dump(const Words& /*words*/) {
  const absl::StatusOr<std::vector<RawCell>> cells = ReadRawCells(store_.get());
  if (!cells.ok()) return cells.status();
  std::string text = DumpText(*cells, cells_, stamps_);
  text.pop_back();
  return text;
}

Player::Answer Player::Locks(const Words& /*words*/) {
  const absl::StatusOr<std::vector<RawCell>> cells = ReadRawCells(store_.get());
  if (!cells.ok()) return cells.status();
  return "locks: " + LocksText(*cells, cells_, stamps_);
}

// The values of the cells at every numbered timestamp at which they change.
Player::Answer Player::History(const Words& words) {
  const absl::StatusOr<std::vector<CellName>> cells = FindCells(words, 0);
  if (!cells.ok()) return cells.status();
  const absl::StatusOr<Client*> client = StartClient("history");
  if (!client.ok()) return client.status();
  std::vector<std::string> lines;
  std::string last;
  for (const auto& [ts, number] : stamps_.all()) {
    const absl::Status opened = (*client)->OpenSnapshot(ts);
    std::string text = opened.ok() ? "" : ErrorText(opened);
    if (opened.ok()) {
      const absl::StatusOr<std::vector<std::optional<std::string>>> values = (*client)->view()->GetCells(*cells);
      text = values.ok() ? ValuesText(words, *values) : ErrorText(values.status());
    }
    if (text != last) lines.push_back(StrCat("@", number, ": ", text));
    last = std::move(text);
  }
  (*client)->Abandon();
  return Joined(lines, "\n");
}

// The second word of the command is the client.
Player::Answer Player::StartCommand(const Words& words) {
  const std::string& name = words[1];
  const absl::StatusOr<Client*> client = FindLive(name);
  if (!client.ok()) return client.status();
  const Command command = ParseCommand(Joined(words, " "));
  Running* const running = (running_[name] = std::make_unique<Running>(&runtime_)).get();
  runtime_.Start([this, command, running] {
    Answer answer = Perform(command);
    MutexLock lock(&running->mutex);
    running->answer = std::move(answer);
    running->done = true;
    running->changed->WakeAll();
  });
  runtime_.LetOthersRun();
  if (!running->done) return StrCat(name, ": ", (*client)->store().stopped() ? "stopped" : "waits");
  return Finish({name});
}

Player::Answer Player::Finish(const Words& words) {
  const auto it = running_.find(words[0]);
  if (it == running_.end()) return Mistake("it does nothing");
  Answer answer;
  {
    Running& running = *it->second;
    MutexLock lock(&running.mutex);
    while (!running.done) running.changed->Wait(&running.mutex);
    answer = running.answer;
  }
  running_.erase(it);
  return answer;
}

}  // namespace percolator
