// SPDX-License-Identifier: Apache-2.0

#include "tests/histories/player.h"

#include <algorithm>
#include <set>
#include <utility>

#include "percolator/conflict.h"
#include "src/base/strings.h"
#include "src/txn/tables.h"
#include "tests/harness/raw_cells.h"
#include "tests/histories/dump.h"
#include "tests/histories/words.h"

namespace percolator {
namespace {

// Shorter waits, between attempts, are not shown.
constexpr Duration kShort = std::chrono::milliseconds(50);

ClusterOptions OptionsOf(const Variant& variant) {
  ClusterOptions options;
  options.one_step_commit = variant.in_one_step;
  options.lock_lease = Player::kLease;
  options.call_timeout = Player::kCallTimeout;
  options.gc_retention = Player::kRetention;
  options.gc_period = Duration(0);
  return options;
}

}  // namespace

struct Player::Verb {
  Answer (Player::*play)(const Words& words);
  size_t least = 0;  // the min number of words
  size_t most = 0;
};

const std::map<std::string_view, Player::Verb>& Player::Verbs() {
  constexpr size_t kMany = 100;
  static const auto& verbs = *new std::map<std::string_view, Verb>{
      {"init", {&Player::Init, 1, kMany}},
      {"begin", {&Player::Begin, 1, 2}},
      {"snapshot", {&Player::OpenSnapshot, 1, 2}},
      {"get", {&Player::Get, 2, kMany}},
      {"scan", {&Player::Scan, 1, 2}},
      {"set", {&Player::Set, 3, 3}},
      {"delete", {&Player::Delete, 2, 2}},
      {"verify", {&Player::Verify, 2, 2}},
      {"commit", {&Player::Commit, 1, 2}},
      {"abort", {&Player::Abort, 1, 1}},
      {"increment", {&Player::Increment, 2, 2}},
      {"prewrite", {&Player::Prewrite, 1, kMany}},
      {"commit-ts", {&Player::DrawCommitTimestamp, 1, 2}},
      {"commit-primary", {&Player::CommitPrimary, 1, 2}},
      {"commit-secondaries", {&Player::CommitSecondaries, 1, 1}},
      {"rollback", {&Player::RollBack, 1, 1}},
      {"outcome", {&Player::Outcome, 1, 1}},
      {"stop", {&Player::Stop, 3, 3}},
      {"go", {&Player::Go, 1, 1}},
      {"crash", {&Player::Crash, 1, 1}},
      {"hang", {&Player::Hang, 1, 1}},
      {"lose-session", {&Player::LoseSession, 1, 1}},
      {"deliver", {&Player::Deliver, 2, kMany}},
      {"resend", {&Player::Resend, 1, 1}},
      {"meet", {&Player::Meet, 2, 2}},
      {"resolve", {&Player::Resolve, 1, 1}},
      {"expire", {&Player::Expire, 0, 0}},
      {"sleep", {&Player::Sleep, 1, 1}},
      {"gc", {&Player::CollectGarbage, 0, 0}},
      {"lose", {&Player::Lose, 1, 1}},
      {"duplicate", {&Player::Duplicate, 1, 1}},
      {"disconnect", {&Player::Disconnect, 0, 0}},
      {"connect", {&Player::Connect, 0, 0}},
      {"restart", {&Player::Restart, 0, 0}},
      {"drop-table", {&Player::DropTable, 1, 1}},
      {"observe", {&Player::Observe, 5, 6}},
      {"unobserve", {&Player::Unobserve, 1, 1}},
      {"worker", {&Player::StartWorkers, 1, kMany}},
      {"notify", {&Player::Notify, 2, 2}},
      {"look", {&Player::Look, 3, 3}},
      {"run", {&Player::Run, 3, 4}},
      {"hold", {&Player::Hold, 1, 1}},
      {"settle", {&Player::Settle, 1, 1}},
      {"remove-marks", {&Player::RemoveMarks, 3, 3}},
      {"quarantine", {&Player::Quarantine, 3, 3}},
      {"replay", {&Player::Replay, 3, 3}},
      {"drop", {&Player::Drop, 3, 3}},
      {"quarantined", {&Player::ListQuarantined, 0, 0}},
      {"marks", {&Player::Marks, 0, 0}},
      {"dump", {&Player::Dump, 0, 0}},
      {"locks", {&Player::Locks, 0, 0}},
      {"history", {&Player::History, 1, kMany}},
      {"start", {&Player::StartCommand, 2, kMany}},
      {"finish", {&Player::Finish, 1, 1}},
  };
  return verbs;
}

Player::Player(const Script& script, const Variant& variant)
    : variant_(variant), cells_(variant.layout, script.cells) {}

// Clients first: they use all other members, and their tasks end with them.
Player::~Player() {
  network_ = {};
  for (const std::unique_ptr<Client>& client : clients_) client->store().GoOn();
  for (const auto& [name, running] : running_) {
    MutexLock lock(&running->mutex);
    while (!running->done) running->changed->Wait(&running->mutex);
  }
  clients_.clear();
  runtime_.LetOthersRun();
}

absl::StatusOr<std::unique_ptr<Player>> Player::Make(const Script& script, const Variant& variant) {
  std::unique_ptr<Player> player(new Player(script, variant));
  if (absl::Status s = player->OpenStore(); !s.ok()) return s;
  for (const std::string& table : player->cells_.tables()) {
    const std::string schema = EncodeSchema({.notify_only_columns = script.notify_only});
    if (absl::Status s = player->store_->CreateTable({table, schema}); !s.ok()) return s;
  }
  return player;
}

absl::Status Player::OpenStore() {
  if (!variant_.on_disk && variant_.elsewhere == nullptr) {
    if (store_ == nullptr) store_ = NewMemoryStore();
    return absl::OkStatus();
  }
  store_.reset();
  absl::StatusOr<std::unique_ptr<Store>> store = variant_.on_disk ? OpenOnDisk() : OpenElsewhere();
  if (!store.ok()) return store.status();
  store_ = *std::move(store);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Store>> Player::OpenOnDisk() {
  if (!folder_.has_value()) folder_.emplace();
  RocksOptions options;
  options.durability = Durability::kNoSync;
  options.block_cache_bytes = 1 << 20;
  options.write_buffer_bytes = 1 << 20;
  return OpenRocksStore(folder_->path() + "/store", options);
}

absl::StatusOr<std::unique_ptr<Store>> Player::OpenElsewhere() {
  if (place_ == nullptr) place_ = variant_.elsewhere->make();
  return place_->Open(StoreLimits());
}

// Whether the command needs a client that is in the middle of another command.
bool Player::IsForBusy(const Command& command) const {
  static const auto& harmless =
      *new std::set<std::string_view>{"finish", "go", "crash", "lose-session", "deliver", "resend"};
  return command.words.size() > 1 && running_.contains(command.words[1]) && !harmless.contains(command.words[0]);
}

absl::StatusOr<std::string> Player::Play(const std::vector<Command>& commands) {
  std::string out;
  for (const Command& command : commands) {
    Answer answer = IsForBusy(command) ? Mistake("it is still busy") : Perform(command);
    if (!answer.ok())
      return absl::Status(answer.status().code(), StrCat(command.text, ": ", answer.status().message()));
    if (!answer->empty()) out += *answer + "\n";
    runtime_.LetOthersRun();
  }
  if (absl::Status s = CheckRules(); !s.ok()) return s;
  return out;
}

Player::Answer Player::Perform(const Command& command) {
  const auto verb = Verbs().find(command.words[0]);
  if (verb == Verbs().end()) return Mistake("unknown command");
  const Words words(command.words.begin() + 1, command.words.end());
  if (words.size() < verb->second.least || words.size() > verb->second.most) {
    return Mistake("wrong number of words");
  }
  return (this->*verb->second.play)(words);
}

absl::Status Player::CheckRules() {
  const absl::StatusOr<std::vector<RawCell>> cells = ReadRawCells(store_.get());
  if (!cells.ok()) return cells.status();
  std::vector<std::string> broken = BrokenRules(*cells);
  if (!collected_) {
    for (std::string& repeated : RepeatedRuns(*cells)) broken.push_back(std::move(repeated));
  }
  for (const auto& [name, observer] : observers_) {
    if (observer.info.kind != NotificationKind::kStrong) continue;
    const CellName* const observed = cells_.Find(observer.info.column);
    for (std::string& lost : LostChanges(*cells, name, *observed)) broken.push_back(std::move(lost));
  }
  return broken.empty() ? absl::OkStatus() : absl::InternalError(Joined(broken, "; "));
}

// --- Names

Parts Player::SharedParts() {
  return {Borrow(store_.get()), Borrow(&oracle_), Borrow(&coordinator_), Borrow(&runtime_)};
}

absl::StatusOr<Client*> Player::StartClient(const std::string& name) {
  absl::StatusOr<std::unique_ptr<Client>> client = Client::Start(name, SharedParts(), &network_, OptionsOf(variant_));
  if (!client.ok()) return client.status();
  return clients_.emplace_back(*std::move(client)).get();
}

absl::StatusOr<Client*> Player::FindClient(const std::string& name) {
  const auto it = by_name_.find(name);
  if (it == by_name_.end()) return Mistake(StrCat("there is no ", name));
  return it->second;
}

absl::StatusOr<Client*> Player::FindLive(const std::string& name) {
  absl::StatusOr<Client*> client = FindClient(name);
  if (client.ok() && (*client)->crashed()) return Mistake(StrCat(name, " has crashed"));
  return client;
}

absl::StatusOr<Client*> Player::FindReader(const std::string& name) {
  absl::StatusOr<Client*> client = FindLive(name);
  if (client.ok() && (*client)->view() == nullptr) return Mistake(StrCat(name, " has ended"));
  return client;
}

absl::StatusOr<Client*> Player::FindWriter(const std::string& name) {
  absl::StatusOr<Client*> client = FindReader(name);
  if (client.ok() && (*client)->transaction() == nullptr) return Mistake(StrCat(name, " only reads"));
  return client;
}

absl::StatusOr<CellName> Player::FindCell(const std::string& name) {
  const CellName* const cell = cells_.Find(name);
  if (cell == nullptr) return Mistake(StrCat("there is no cell ", name));
  return *cell;
}

absl::StatusOr<std::vector<CellName>> Player::FindCells(const Words& words, size_t from) {
  std::vector<CellName> cells;
  for (size_t i = from; i < words.size(); ++i) {
    const absl::StatusOr<CellName> cell = FindCell(words[i]);
    if (!cell.ok()) return cell.status();
    cells.push_back(*cell);
  }
  return cells;
}

// --- Outputs

Player::Answer Player::Act(Client* client, const std::function<Answer()>& action) {
  const Duration begun = runtime_.Elapsed();
  client->store().TakeDeeds();
  Answer answer = action();
  if (!answer.ok()) return answer;
  const std::string note = NoteOf(client, runtime_.Elapsed() - begun);
  if (answer->empty() && note.empty()) return "";
  return StrCat(client->name(), ": ", answer->empty() ? "done" : *answer, note);
}

std::string Player::NoteOf(Client* client, Duration waited) {
  std::vector<std::string> notes;
  if (waited >= kShort) notes.push_back("waited " + SecondsText(waited));
  for (const Deed& deed : client->store().TakeDeeds()) {
    const bool forward = deed.verdict.kind == Verdict::Kind::kCommitted;
    std::string note = StrCat(stamps_.TransactionName(deed.start_ts), " rolled ",
                              forward ? "forward " + stamps_.Text(deed.verdict.commit_ts) : "back");
    if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(std::move(note));
  }
  return notes.empty() ? "" : StrCat(" (", Joined(notes, "; "), ")");
}

std::string Player::ErrorText(const absl::Status& status) {
  if (const std::optional<Conflict> conflict = GetConflict(status)) {
    const std::string other = stamps_.TransactionName(conflict->other_start_ts);
    switch (conflict->kind) {
      case Conflict::Kind::kNewerWrite:
        return StrCat(cells_.NameOf(conflict->cell), " was written by ", other, " ",
                      stamps_.Text(conflict->other_commit_ts));
      case Conflict::Kind::kLocked:
        return StrCat(cells_.NameOf(conflict->cell), " is locked by ", other);
      case Conflict::Kind::kRolledBack:
        return "rolled back";
    }
  }
  if (GetUnknownCommit(status).has_value()) return "unknown";
  if (IsSnapshotTooOld(status)) return "older than the safe point";
  if (absl::IsDeadlineExceeded(status)) return "locked, timed out";
  if (absl::IsUnavailable(status)) return "the store does not answer";
  if (absl::IsNotFound(status)) return "there is no such table";
  return status.ToString();
}

Player::Answer Player::ResultText(const CommitResult& result, std::optional<int> number) {
  switch (result.outcome) {
    case CommitResult::Outcome::kCommitted:
      if (result.commit_ts == Timestamp()) return "committed, wrote nothing";
      if (absl::Status s = stamps_.Number(result.commit_ts, number); !s.ok()) return s;
      return "committed " + stamps_.Text(result.commit_ts);
    case CommitResult::Outcome::kAborted:
      return "aborted: " + ErrorText(result.status);
    case CommitResult::Outcome::kUnknown:
      return "unknown";
  }
  return "";
}

std::string Player::WriteErrorText(Client* client) {
  const absl::Status status = client->transaction()->status();
  return status.ok() ? "" : StrCat(client->name(), ": ", ErrorText(status));
}

std::string Player::ValuesText(const Words& names, const std::vector<std::optional<std::string>>& values) {
  std::vector<std::string> pieces;
  for (size_t i = 0; i < names.size(); ++i) {
    pieces.push_back(StrCat(names[i], " = ", values[i].has_value() ? ValueText(*values[i]) : "none"));
  }
  return Joined(pieces, ", ");
}

}  // namespace percolator
