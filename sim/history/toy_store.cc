// SPDX-License-Identifier: Apache-2.0

#include "sim/history/toy_store.h"

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/base/strings.h"

namespace percolator {
namespace {

using Value = std::optional<std::string>;

// All versions of all keys. A commit checks for conflicts and draws its timestamp in one step.
class ToyStore {
 public:
  explicit ToyStore(ToyBug bug) : bug_(bug) {}

  Timestamp Draw() { return Timestamp(++last_); }
  uint64_t last() const { return last_; }

  Value Read(const std::string& key, Timestamp ts) const {
    const auto cell = cells_.find(key);
    if (cell == cells_.end()) return std::nullopt;
    const auto& versions = cell->second.versions;
    auto next = bug_ == ToyBug::kReadsNewest ? versions.end() : versions.upper_bound(ts);
    if (bug_ == ToyBug::kReadsBlink && last_ % 8 == 0 && next != versions.begin()) --next;
    return next == versions.begin() ? std::nullopt : std::prev(next)->second;
  }

  // Returns nullopt if there is a conflict.
  std::optional<Timestamp> Commit(Timestamp start_ts, const std::map<std::string, Value>& writes,
                                  const std::set<std::string>& verified) {
    const bool conflict = bug_ != ToyBug::kNoConflictCheck && HasConflict(start_ts, writes, verified);
    if (conflict && bug_ != ToyBug::kFailureIsVisible) return std::nullopt;
    const Timestamp commit_ts = Draw();
    Timestamp visible_ts = commit_ts;
    for (const auto& [key, value] : writes) {
      cells_[key].versions[visible_ts] = value;
      if (bug_ == ToyBug::kTornCommit) visible_ts = Timestamp(visible_ts.value() + 3);
    }
    for (const std::string& key : verified) cells_[key].verified = commit_ts;
    return conflict ? std::nullopt : std::optional(commit_ts);
  }

 private:
  struct Cell {
    std::map<Timestamp, Value> versions;
    Timestamp verified;
    Timestamp Newest() const { return versions.empty() ? Timestamp() : versions.rbegin()->first; }
  };

  bool HasConflict(Timestamp start_ts, const std::map<std::string, Value>& writes,
                   const std::set<std::string>& verified) {
    return std::any_of(writes.begin(), writes.end(),
                       [&](const auto& write) {
                         const Cell& cell = cells_[write.first];
                         return cell.Newest() > start_ts || cell.verified > start_ts;
                       }) ||
           std::any_of(verified.begin(), verified.end(),
                       [&](const std::string& key) { return cells_[key].Newest() > start_ts; });
  }

  const ToyBug bug_;
  uint64_t last_ = 0;
  std::map<std::string, Cell> cells_;
};

// A transaction in progress, as its client sees it.
struct Work {
  explicit Work(HistoryRecorder::Handle handle) : record(handle) {}
  HistoryRecorder::Handle record;
  int operations_left = 0;
  bool read_only = false;
  Timestamp start_ts;
  std::map<std::string, Value> view;  // what it has read and written
  std::map<std::string, Value> writes;
  std::set<std::string> verified;
};

class ToyRun {
 public:
  ToyRun(uint64_t seed, const ToyOptions& options) : options_(options), random_(seed), store_(options.bug) {
    for (int i = 0; i < options_.keys; ++i) NewKey(i);
  }

  History Run() {
    std::vector<std::optional<Work>> processes(options_.processes);
    int left = options_.transactions;
    const auto is_busy = [](const std::optional<Work>& work) { return work.has_value(); };
    while (left > 0 || std::any_of(processes.begin(), processes.end(), is_busy)) {
      const int process = Below(options_.processes);
      std::optional<Work>& work = processes[process];
      if (!ghosts_.empty() && Percent(10)) CommitGhost();
      if (work.has_value()) {
        if (!Step(&*work)) work.reset();
      } else if (left > 0) {
        --left;
        work = Begin(process);
      }
    }
    while (!ghosts_.empty()) CommitGhost();
    ReadAll();
    History history = recorder_.Take();
    for (const TxnId txn : as_of_) history.transactions[txn].as_of = true;
    return history;
  }

 private:
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  bool Percent(int percent) { return Below(100) < percent; }

  struct Key {
    std::string name;
    int appends = 0;
  };
  void NewKey(int i) {
    if (static_cast<size_t>(i) >= keys_.size()) keys_.resize(i + 1);
    keys_[i] = {StrCat("k", all_keys_.size()), 0};
    all_keys_.push_back(keys_[i].name);
  }

  Work Begin(int process) {
    Work work(recorder_.Begin(process));
    work.operations_left = 1 + Below(options_.operations_max);
    work.read_only = Percent(20);
    return work;
  }

  // One step of a transaction. Returns false if it was the last one.
  bool Step(Work* work) {
    if (work->start_ts == Timestamp()) {
      Start(work);
    } else if (work->operations_left-- > 0) {
      Operate(work);
    } else {
      End(work);
      return false;
    }
    return true;
  }

  void Start(Work* work) {
    const Timestamp drawn = store_.Draw();
    // Still unique: no other transaction starts at this timestamp.
    work->start_ts = options_.bug == ToyBug::kOldSnapshots ? std::exchange(put_by_, drawn) : drawn;
    if (Percent(options_.as_of_percent)) {
      work->read_only = true;
      work->start_ts = Timestamp(1 + Below(static_cast<int>(store_.last())));
      as_of_.push_back(work->record.id());
    }
    work->record.Started(work->start_ts);
  }

  void Operate(Work* work) {
    const int i = Below(options_.keys);
    const std::string key = keys_[i].name;
    const bool write = !work->read_only && Percent(60);
    const bool blind = write && Percent(options_.blind_percent);
    if (!blind) Read(key, work);
    if (!blind && !work->read_only && Percent(options_.verify_percent)) {
      work->record.Verify(key);
      work->verified.insert(key);
    }
    if (!write) return;
    if (options_.lists) {
      Append(key, work);
      if (++keys_[i].appends >= options_.appends_per_key) NewKey(i);
    } else {
      Write(key, work);
    }
  }

  Value& ViewOf(const std::string& key, Work* work) {
    const auto it = work->view.find(key);
    if (it != work->view.end()) return it->second;
    return work->view[key] = store_.Read(key, work->start_ts);
  }

  void Read(const std::string& key, Work* work) { work->record.Read(key, ViewOf(key, work)); }

  void Append(const std::string& key, Work* work) {
    Value& value = ViewOf(key, work);
    if (!value.has_value()) value.emplace();
    AppendToList(&*value, ++last_element_);
    work->record.Append(key, last_element_);
    work->writes[key] = value;
  }

  void Write(const std::string& key, Work* work) {
    Value& value = ViewOf(key, work);
    if (Percent(15)) {
      value.reset();
      work->record.Delete(key);
    } else {
      value = std::to_string(Below(5));
      work->record.Write(key, *value);
    }
    work->writes[key] = value;
  }

  void End(Work* work) {
    if (Percent(options_.unknown_percent)) {
      EndWithoutAnswer(work);
    } else if (work->writes.empty() && work->verified.empty()) {
      work->record.Finish(TxnOutcome::kOk);
    } else {
      std::optional<Timestamp> commit_ts;
      if (!Percent(options_.abort_percent)) commit_ts = store_.Commit(work->start_ts, work->writes, work->verified);
      work->record.Finish(commit_ts.has_value() ? TxnOutcome::kOk : TxnOutcome::kFail, {},
                          commit_ts.value_or(Timestamp()));
    }
  }

  // It commits now, later or never; if now, the client may know its timestamp.
  void EndWithoutAnswer(Work* work) {
    if (work->read_only || Percent(30)) return;
    if (Percent(50)) {
      ghosts_.push_back(std::move(*work));
      return;
    }
    const auto commit_ts = store_.Commit(work->start_ts, work->writes, work->verified);
    if (commit_ts.has_value() && Percent(60)) work->record.Finish(TxnOutcome::kInfo, {}, *commit_ts);
  }

  void CommitGhost() {
    const int i = Below(static_cast<int>(ghosts_.size()));
    store_.Commit(ghosts_[i].start_ts, ghosts_[i].writes, ghosts_[i].verified);
    ghosts_.erase(ghosts_.begin() + i);
  }

  void ReadAll() {
    Work work(recorder_.Begin(0));
    work.start_ts = store_.Draw();
    work.record.Started(work.start_ts);
    for (const std::string& key : all_keys_) Read(key, &work);
    work.record.Finish(TxnOutcome::kOk);
  }

  const ToyOptions options_;
  std::mt19937_64 random_;
  HistoryRecorder recorder_;
  ToyStore store_;
  std::vector<Key> keys_;  // in use
  std::vector<std::string> all_keys_;
  Timestamp put_by_ = store_.Draw();
  int64_t last_element_ = 0;
  std::vector<TxnId> as_of_;
  std::vector<Work> ghosts_;  // transactions whose clients are gone but which may still commit
};

}  // namespace

History RandomHistory(uint64_t seed, const ToyOptions& options) { return ToyRun(seed, options).Run(); }

}  // namespace percolator
