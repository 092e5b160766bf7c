// SPDX-License-Identifier: Apache-2.0

// Player: plays the blocks of a script on a cluster of its own, on virtual time, and returns their output.
//
// Every transaction of a script is a client with a session of its own. After each command all background tasks run, but
// no time passes unless a command waits. After each block the raw cells are checked against the rules of
// tests/harness/raw_cells.h. README.md is the manual of the commands.

#ifndef PERCOLATOR_TESTS_HISTORIES_PLAYER_H_
#define PERCOLATOR_TESTS_HISTORIES_PLAYER_H_

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "percolator/cluster.h"
#include "percolator/spi/assemble.h"
#include "percolator/spi/mutex.h"
#include "src/observe/quarantine.h"
#include "src/observe/registry.h"
#include "src/observe/run.h"
#include "tests/harness/test_coordinator.h"
#include "tests/harness/test_oracle.h"
#include "tests/harness/virtual_runtime.h"
#include "tests/histories/client.h"
#include "tests/histories/client_store.h"
#include "tests/histories/names.h"
#include "tests/histories/script.h"
#include "tests/histories/variant.h"
#include "tests/store/store_kinds.h"
#include "tests/testing/temp_dir.h"

namespace percolator {

class Player {
 public:
  // The options of its cluster.
  static constexpr Duration kLease = std::chrono::seconds(10);
  static constexpr Duration kCallTimeout = std::chrono::seconds(30);
  static constexpr Duration kRetention = std::chrono::seconds(60);

  static absl::StatusOr<std::unique_ptr<Player>> Make(const Script& script, const Variant& variant);
  ~Player();
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;

  // The output of the commands, in lines. Returns InvalidArgument if a command cannot be played, Internal if a rule is
  // broken.
  absl::StatusOr<std::string> Play(const std::vector<Command>& commands);

 private:
  // The output of a command: lines, the last without its end; empty: none.
  using Answer = absl::StatusOr<std::string>;
  using Words = std::vector<std::string>;  // of a command, without the verb
  struct Verb;
  // A command in progress, in a task of its own.
  struct Running {
    explicit Running(Runtime* runtime) : changed(runtime->NewWaitQueue()) {}

    Mutex mutex;
    std::unique_ptr<WaitQueue> changed;
    bool done = false;  // guarded by `mutex`, as is the answer
    Answer answer;
  };

  // An observer with its action: "copy", "count" or "notify" a cell, "nothing" or "fail".
  struct ScriptedObserver {
    ObserverInfo info;
    std::string action;
    CellName target;
  };

  Player(const Script& script, const Variant& variant);

  static const std::map<std::string_view, Verb>& Verbs();
  absl::Status OpenStore();
  absl::StatusOr<std::unique_ptr<Store>> OpenOnDisk();
  absl::StatusOr<std::unique_ptr<Store>> OpenElsewhere();
  Answer Perform(const Command& command);
  bool IsForBusy(const Command& command) const;
  absl::Status CheckRules();

  // --- Names.
  // The parts that the clusters of all clients share.
  Parts SharedParts();
  absl::StatusOr<Client*> StartClient(const std::string& name);
  // A client that was begun; one that lives; one whose transaction or snapshot has not ended; one whose transaction has
  // not.
  absl::StatusOr<Client*> FindClient(const std::string& name);
  absl::StatusOr<Client*> FindLive(const std::string& name);
  absl::StatusOr<Client*> FindReader(const std::string& name);
  absl::StatusOr<Client*> FindWriter(const std::string& name);
  absl::StatusOr<CellName> FindCell(const std::string& name);
  absl::StatusOr<std::vector<CellName>> FindCells(const Words& words, size_t from);

  // --- Outputs.
  // The result of an action, with its time and the transactions that the client finished meanwhile. An action without a
  // result is reported only if it has one of these.
  Answer Act(Client* client, const std::function<Answer()>& action);
  std::string NoteOf(Client* client, Duration waited);
  std::string ErrorText(const absl::Status& status);
  Answer ResultText(const CommitResult& result, std::optional<int> number);
  // Returns the text of the first failed write of the transaction, or an empty string if all succeeded.
  std::string WriteErrorText(Client* client);
  std::string ValuesText(const Words& names, const std::vector<std::optional<std::string>>& values);

  // --- The verbs of transactions, in transaction_verbs.cc.
  Answer Init(const Words& words);
  Answer Begin(const Words& words);
  Answer OpenSnapshot(const Words& words);
  Answer Get(const Words& words);
  Answer Scan(const Words& words);
  Answer Set(const Words& words);
  Answer Delete(const Words& words);
  Answer Verify(const Words& words);
  Answer Commit(const Words& words);
  Answer Abort(const Words& words);
  Answer Increment(const Words& words);

  Answer Prewrite(const Words& words);
  Answer DrawCommitTimestamp(const Words& words);
  Answer CommitPrimary(const Words& words);
  Answer CommitSecondaries(const Words& words);
  Answer RollBack(const Words& words);
  Answer Outcome(const Words& words);

  // --- The verbs of failures and the world, in world_verbs.cc.
  Answer Stop(const Words& words);
  Answer Go(const Words& words);
  Answer Crash(const Words& words);
  Answer Hang(const Words& words);
  Answer LoseSession(const Words& words);
  Answer Deliver(const Words& words);
  Answer Resend(const Words& words);
  Answer Meet(const Words& words);
  Answer Resolve(const Words& words);

  Answer Expire(const Words& words);
  Answer Sleep(const Words& words);
  Answer CollectGarbage(const Words& words);
  Answer Lose(const Words& words);
  Answer Duplicate(const Words& words);
  Answer Disconnect(const Words& words);
  Answer Connect(const Words& words);
  Answer Restart(const Words& words);
  Answer DropTable(const Words& words);

  // --- The verbs of observers, in observer_verbs.cc.
  Answer Observe(const Words& words);
  Answer Unobserve(const Words& words);
  Answer StartWorkers(const Words& words);
  Answer Notify(const Words& words);
  Answer Look(const Words& words);
  Answer Run(const Words& words);
  Answer Hold(const Words& words);
  Answer Settle(const Words& words);
  Answer RemoveMarks(const Words& words);
  Answer Quarantine(const Words& words);
  Answer Replay(const Words& words);
  Answer Drop(const Words& words);
  Answer ListQuarantined(const Words& words);
  Answer Marks(const Words& words);

  absl::StatusOr<const ScriptedObserver*> FindObserver(const std::string& name);
  // "run w1 copy x keep": the worker, the observer and the cell, and whether marks may be removed.
  struct RunWords {
    Client* worker;
    const ScriptedObserver* observer;
    CellName cell;
    std::optional<Timestamp> others_done_at;
  };
  absl::StatusOr<RunWords> ParseRun(const Words& words);
  absl::StatusOr<Timestamp> FindUntil(const std::string& word);
  // The actions of the observers of scripts.
  absl::Status RunScripted(Client* worker, const ScriptedObserver& observer, ReadWrite& t, const CellName& cell);
  Answer OutcomeText(const RunOutcome& outcome);
  absl::Status StoreObservers();

  Answer Dump(const Words& words);
  Answer Locks(const Words& words);
  Answer History(const Words& words);
  Answer StartCommand(const Words& words);
  Answer Finish(const Words& words);

  const Variant variant_;
  const CellMap cells_;
  Stamps stamps_;

  VirtualRuntime runtime_{0};
  TestOracle oracle_{1, &runtime_};
  TestCoordinator coordinator_{&oracle_, &runtime_};
  Network network_;
  std::optional<TempDir> folder_;
  std::unique_ptr<StorePlace> place_;  // of a remote store
  std::unique_ptr<Store> store_;
  bool collected_ = false;                        // whether garbage was collected
  std::vector<std::unique_ptr<Client>> clients_;  // including dead ones
  std::map<std::string, Client*> by_name_;
  std::map<std::string, ScriptedObserver> observers_;
  std::map<std::string, std::unique_ptr<Running>> running_;  // started commands, by client
};

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_HISTORIES_PLAYER_H_
