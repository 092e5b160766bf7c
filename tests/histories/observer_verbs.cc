// SPDX-License-Identifier: Apache-2.0

// The verbs of Player for observers: notifications, and the runs that they lead to.
//
// A worker of a script acts only on commands: it runs one observer for one cell with the same RunObserver that a real
// worker uses. `hold` and `stop` divide a run, so that others come in between.

#include <utility>

#include "src/base/strings.h"
#include "src/txn/columns.h"
#include "tests/harness/raw_cells.h"
#include "tests/histories/dump.h"
#include "tests/histories/player.h"
#include "tests/histories/words.h"

namespace percolator {
namespace {

// Longer than any chain of a script that does not test the limit.
constexpr uint32_t kMaxChain = 3;

bool HasTarget(const std::string& action) { return action == "copy" || action == "count" || action == "notify"; }

}  // namespace

// --- Registration

absl::StatusOr<const Player::ScriptedObserver*> Player::FindObserver(const std::string& name) {
  const auto it = observers_.find(name);
  if (it == observers_.end()) return Mistake(StrCat("there is no observer ", name));
  return &it->second;
}

absl::Status Player::StoreObservers() {
  const absl::StatusOr<Client*> client = StartClient("observers");
  if (!client.ok()) return client.status();
  std::vector<ObserverInfo> infos;
  for (const auto& [name, observer] : observers_) infos.push_back(observer.info);
  return percolator::StoreObservers((*client)->engine(), infos, /*add_only=*/false).status();
}

// "observe x by copier strong copy y"
Player::Answer Player::Observe(const Words& words) {
  const absl::StatusOr<CellName> cell = FindCell(words[0]);
  if (!cell.ok()) return cell.status();
  if (words[1] != "by" || (words[3] != "strong" && words[3] != "weak")) return Mistake("not CELL by NAME strong|weak");
  const std::string& action = words[4];
  if (HasTarget(action) != (words.size() == 6)) return Mistake("copy, count and notify need a cell, others do not");
  if (!HasTarget(action) && action != "nothing" && action != "fail") return Mistake("observers cannot do that");
  ScriptedObserver observer{
      {words[2], cell->table, cell->column, words[3] == "strong" ? NotificationKind::kStrong : NotificationKind::kWeak},
      action,
      {}};
  if (HasTarget(action)) {
    const absl::StatusOr<CellName> target = FindCell(words[5]);
    if (!target.ok()) return target.status();
    observer.target = *target;
  }
  observers_.insert_or_assign(words[2], std::move(observer));
  if (absl::Status s = StoreObservers(); !s.ok()) return s;
  return "";
}

Player::Answer Player::Unobserve(const Words& words) {
  if (observers_.erase(words[0]) == 0) return Mistake("there is no such observer");
  if (absl::Status s = StoreObservers(); !s.ok()) return s;
  return "";
}

Player::Answer Player::StartWorkers(const Words& words) {
  for (const std::string& name : words) {
    if (by_name_.contains(name)) return Mistake("there was one of this name");
    const absl::StatusOr<Client*> client = StartClient(name);
    if (!client.ok()) return client.status();
    (*client)->Abandon();
    by_name_[name] = *client;
  }
  return "";
}

Player::Answer Player::Notify(const Words& words) {
  const absl::StatusOr<Client*> client = FindWriter(words[0]);
  const absl::StatusOr<CellName> cell = FindCell(words[1]);
  if (!client.ok() || !cell.ok()) return client.ok() ? cell.status() : client.status();
  (*client)->transaction()->Notify(*cell);
  return WriteErrorText(*client);
}

// --- Runs

absl::StatusOr<Timestamp> Player::FindUntil(const std::string& word) {
  constexpr std::string_view kUntil = "until=";
  if (!word.starts_with(kUntil)) return Mistake("not until=NUMBER");
  const std::optional<int> number = ParseNumber(word.substr(kUntil.size()));
  const std::optional<Timestamp> ts = number.has_value() ? stamps_.Find(*number) : std::nullopt;
  if (!ts.has_value()) return Mistake("there was no such timestamp");
  return *ts;
}

absl::StatusOr<Player::RunWords> Player::ParseRun(const Words& words) {
  const absl::StatusOr<Client*> worker = FindLive(words[0]);
  if (!worker.ok()) return worker.status();
  const absl::StatusOr<const ScriptedObserver*> observer = FindObserver(words[1]);
  if (!observer.ok()) return observer.status();
  const absl::StatusOr<CellName> cell = FindCell(words[2]);
  if (!cell.ok()) return cell.status();
  RunWords run{*worker, *observer, *cell, Timestamp::Infinity()};
  if (words.size() <= 3) return run;
  if (words[3] == "keep") {
    run.others_done_at.reset();
    return run;
  }
  const absl::StatusOr<Timestamp> until = FindUntil(words[3]);
  if (!until.ok()) return until.status();
  run.others_done_at = *until;
  return run;
}

absl::Status Player::RunScripted(Client* worker, const ScriptedObserver& observer, ReadWrite& t, const CellName& cell) {
  stamps_.Number(t.timestamp()).IgnoreError();
  stamps_.NameTransaction(t.timestamp(), worker->name());
  if (std::exchange(worker->holds, false)) worker->store().StopHere();
  const CellName& target = observer.target;
  if (observer.action == "nothing") return absl::OkStatus();
  if (observer.action == "fail") return absl::InternalError("broken");
  if (observer.action == "notify") {
    t.Notify(target);
    return absl::OkStatus();
  }
  const absl::StatusOr<std::optional<std::string>> value = t.Get(observer.action == "copy" ? cell : target);
  if (!value.ok()) return value.status();
  if (observer.action == "count") {
    const int number = value->has_value() ? ParseNumber(**value).value_or(0) : 0;
    t.Set(target, std::to_string(number + 1));
  } else if (value->has_value()) {
    t.Set(target, **value);
  } else {
    t.Delete(target);
  }
  return absl::OkStatus();
}

Player::Answer Player::OutcomeText(const RunOutcome& outcome) {
  const std::string marks = outcome.marks_removed ? "" : ", marks stay";
  switch (outcome.kind) {
    case RunOutcome::Kind::kNoMark:
      return "no mark";
    case RunOutcome::Kind::kClean:
      return "nothing to do" + marks;
    case RunOutcome::Kind::kDirty:
      return "something to do";
    case RunOutcome::Kind::kCommitted:
      if (absl::Status s = stamps_.Number(outcome.commit_ts); !s.ok()) return s;
      return StrCat("saw ", stamps_.Text(outcome.change_ts), ", committed ", stamps_.Text(outcome.commit_ts), marks);
    case RunOutcome::Kind::kConflict:
      return "lost: " + ErrorText(outcome.status);
    case RunOutcome::Kind::kFailed:
      return StrCat("failed: ", outcome.status.message());
    case RunOutcome::Kind::kCycle:
      return "too long a chain";
    case RunOutcome::Kind::kTrouble:
      return "trouble: " + ErrorText(outcome.status);
  }
  return "";
}

// The check that a worker makes for the observer of another worker.
Player::Answer Player::Look(const Words& words) {
  const absl::StatusOr<RunWords> run = ParseRun(words);
  if (!run.ok()) return run.status();
  return Act(run->worker, [&]() -> Answer {
    const RunRequest request{&run->observer->info, nullptr, run->cell, std::nullopt, kMaxChain};
    Answer text = OutcomeText(RunObserver(run->worker->engine(), request));
    if (text.ok() && *text == "nothing to do, marks stay") text = "nothing to do";
    return text;
  });
}

Player::Answer Player::Run(const Words& words) {
  const absl::StatusOr<RunWords> run = ParseRun(words);
  if (!run.ok()) return run.status();
  return Act(run->worker, [&]() -> Answer {
    const ObserverFunction function = [&](ReadWrite& t, const Notification& notification) {
      return RunScripted(run->worker, *run->observer, t, notification.cell);
    };
    return OutcomeText(RunObserver(run->worker->engine(),
                                   {&run->observer->info, &function, run->cell, run->others_done_at, kMaxChain}));
  });
}

Player::Answer Player::Hold(const Words& words) {
  const absl::StatusOr<Client*> worker = FindLive(words[0]);
  if (!worker.ok()) return worker.status();
  (*worker)->holds = true;
  return "";
}

// --- Scanners

// All pending marks, settled as by a scanner that finds them.
Player::Answer Player::Settle(const Words& words) {
  const absl::StatusOr<Client*> worker = FindLive(words[0]);
  if (!worker.ok()) return worker.status();
  return Act(*worker, [&]() -> Answer {
    std::vector<std::string> said;
    const absl::StatusOr<Timestamp> now = oracle_.GetTimestamp();
    if (!now.ok()) return now.status();
    for (const std::string& table : cells_.tables()) {
      RowRange rows = RowRange::All();
      for (bool done = false; !done;) {
        const absl::StatusOr<std::vector<FoundMark>> found = ScanMarks(&(*worker)->env(), table, &rows, 1, &done);
        if (!found.ok()) return ErrorText(found.status());
        for (const FoundMark& mark : *found) {
          if (!mark.pending) continue;
          const bool young = now->value() <= mark.timestamp.value() + static_cast<uint64_t>(kLease.count());
          said.push_back(cells_.NameOf(mark.cell) + (young ? " is young" : " is settled"));
          if (young) continue;
          if (absl::Status s = SettlePending((*worker)->engine(), mark); !s.ok()) return ErrorText(s);
        }
      }
    }
    return said.empty() ? "nothing is pending" : Joined(said, ", ");
  });
}

// "remove-marks w1 x until=3", late or again.
Player::Answer Player::RemoveMarks(const Words& words) {
  const absl::StatusOr<Client*> worker = FindLive(words[0]);
  if (!worker.ok()) return worker.status();
  const absl::StatusOr<CellName> cell = FindCell(words[1]);
  if (!cell.ok()) return cell.status();
  const absl::StatusOr<Timestamp> until = FindUntil(words[2]);
  if (!until.ok()) return until.status();
  const absl::Status removed = percolator::RemoveMarks(&(*worker)->env(), *cell, *until);
  return removed.ok() ? "" : StrCat(words[0], ": ", ErrorText(removed));
}

Player::Answer Player::Marks(const Words& /*words*/) {
  const absl::StatusOr<std::vector<RawCell>> cells = ReadRawCells(store_.get());
  if (!cells.ok()) return cells.status();
  return "marks: " + MarksText(*cells, cells_, stamps_);
}

// --- Quarantine

Player::Answer Player::Quarantine(const Words& words) {
  const absl::StatusOr<RunWords> run = ParseRun(words);
  if (!run.ok()) return run.status();
  return Act(run->worker, [&]() -> Answer {
    const absl::StatusOr<Timestamp> done_at = percolator::Quarantine(
        run->worker->engine(), run->observer->info, run->cell, Timestamp::Infinity(), 1, absl::InternalError("broken"));
    if (!done_at.ok()) return ErrorText(done_at.status());
    if (absl::Status s = stamps_.Number(*done_at); !s.ok()) return s;
    return "done " + stamps_.Text(*done_at);
  });
}

Player::Answer Player::Replay(const Words& words) {
  const absl::StatusOr<RunWords> run = ParseRun(words);
  if (!run.ok()) return run.status();
  return Act(run->worker, [&]() -> Answer {
    const absl::Status replayed =
        ReplayQuarantined(run->worker->engine(), run->observer->info, {.observer = words[1], .cell = run->cell});
    if (absl::IsNotFound(replayed)) return "not in quarantine";
    return replayed.ok() ? "replayed" : ErrorText(replayed);
  });
}

Player::Answer Player::Drop(const Words& words) {
  const absl::StatusOr<RunWords> run = ParseRun(words);
  if (!run.ok()) return run.status();
  return Act(run->worker, [&]() -> Answer {
    const absl::Status dropped = DropQuarantined(run->worker->engine(), {.observer = words[1], .cell = run->cell});
    if (absl::IsNotFound(dropped)) return "not in quarantine";
    return dropped.ok() ? "dropped" : ErrorText(dropped);
  });
}

Player::Answer Player::ListQuarantined(const Words& /*words*/) {
  const absl::StatusOr<Client*> client = StartClient("quarantined");
  if (!client.ok()) return client.status();
  const absl::StatusOr<std::vector<Quarantined>> entries = percolator::ListQuarantined((*client)->engine());
  if (!entries.ok()) return entries.status();
  std::vector<std::string> texts;
  for (const Quarantined& entry : *entries) {
    texts.push_back(StrCat(cells_.NameOf(entry.cell), " for ", entry.observer, " (", entry.error, ")"));
  }
  return "quarantined: " + (texts.empty() ? "none" : Joined(texts, ", "));
}

}  // namespace percolator
