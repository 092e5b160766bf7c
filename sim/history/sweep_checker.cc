// SPDX-License-Identifier: Apache-2.0

#include "sim/history/sweep_checker.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "sim/history/transaction_view.h"
#include "src/base/strings.h"

namespace percolator {
namespace {

constexpr Timestamp kUnknown;

bool Writes(const TxnRecord& txn) {
  return std::any_of(txn.operations.begin(), txn.operations.end(), [](const TxnOperation& operation) {
    return operation.kind == TxnOperation::Kind::kWrite || operation.kind == TxnOperation::Kind::kAppend;
  });
}

std::vector<KeyView> OnlyWrites(std::vector<KeyView> views) {
  std::erase_if(views, [](const KeyView& view) { return !view.written && !view.verified; });
  return views;
}

// What a key holds, as far as it is known.
struct Content {
  std::optional<std::string> value;
  // False: a list of which only the end is known. A transaction appended to one of several possible values.
  bool is_whole = true;

  bool Allows(const std::optional<std::string_view>& seen) const {
    if (is_whole) return seen == value;
    return WithoutEnd(seen.value_or(std::string_view()), *value).has_value();
  }
};

class SweepChecker {
 public:
  explicit SweepChecker(const History& history) : history_(history), builder_(&history, &keys_) {}

  Findings Run();

 private:
  enum class Fate : uint8_t { kCommitted, kFailed, kOpen };

  // The transaction that committed last at a key.
  struct Holder {
    Timestamp commit_ts;
    TxnId txn = 0;
  };
  // What a key holds if a transaction of unknown outcome committed.
  struct Possible {
    Content content;
    TxnId txn = 0;
    bool unbounded = false;  // its commit time is unknown, so no later write covers it
  };
  // A key at the current time of the sweep.
  struct KeyState {
    Content content;
    Holder writer;
    Holder verifier;
    std::vector<Possible> possible;
  };
  struct Event {
    enum Kind : uint8_t { kCommit, kStart };  // in this order at equal timestamps
    Timestamp ts;
    Kind kind;
    TxnId txn;
  };
  // A value that only one transaction wrote to a key, and its outcome is unknown.
  using Claims = absl::flat_hash_map<std::pair<KeyId, std::string>, TxnId>;

  // Decides which transactions of unknown outcome must have committed.
  void DecideFates();
  Claims FindClaims();

  void CheckTimestamps();
  void CheckRealTime();

  std::vector<Event> Events() const;
  void Start(TxnId txn);
  void CheckRead(TxnId txn, const KeyView& view, KeyState* state);
  void TellWrongRead(TxnId txn, const KeyView& view, const KeyState& state);
  void Commit(TxnId txn);
  void CheckOverlap(TxnId txn, const KeyView& view, const KeyState& state);
  void AddOverlap(TxnId txn, std::string_view key, const Holder& other, std::string_view what);
  void MayCommit(TxnId txn);
  // What the transaction wrote and verified: as Start left it, if there was one.
  std::vector<KeyView> TakeWrites(TxnId txn);
  KeyState& StateOf(KeyId key);

  const TxnRecord& Record(TxnId txn) const { return history_.transactions[txn]; }
  TxnId size() const { return static_cast<TxnId>(history_.transactions.size()); }

  const History& history_;
  KeyIds keys_;
  ViewBuilder builder_;
  Findings findings_;
  std::vector<Fate> fates_;                                       // by TxnId
  std::vector<KeyState> states_;                                  // by KeyId
  absl::flat_hash_map<TxnId, std::vector<KeyView>> open_writes_;  // of transactions between start and commit
};

Findings SweepChecker::Run() {
  DecideFates();
  CheckTimestamps();
  CheckRealTime();
  for (TxnId txn = 0; txn < size(); ++txn) {
    if (Record(txn).start_ts != kUnknown) continue;
    builder_.Views(txn,
                   &findings_);  // checks only its reads against its own writes
    if (fates_[txn] == Fate::kOpen && Record(txn).commit_ts == kUnknown) MayCommit(txn);
  }
  for (const Event& event : Events()) {
    if (event.kind == Event::kStart) {
      Start(event.txn);
    } else if (fates_[event.txn] == Fate::kCommitted) {
      Commit(event.txn);
    } else {
      MayCommit(event.txn);
    }
  }
  return std::move(findings_);
}

void SweepChecker::DecideFates() {
  for (const TxnRecord& txn : history_.transactions) {
    fates_.push_back(txn.outcome == TxnOutcome::kOk     ? Fate::kCommitted
                     : txn.outcome == TxnOutcome::kFail ? Fate::kFailed
                                                        : Fate::kOpen);
  }
  const Claims claims = FindClaims();
  if (claims.empty()) return;
  for (TxnId txn = 0; txn < size(); ++txn) {
    for (const KeyView& view : builder_.Views(txn, nullptr)) {
      if (!view.read || !view.seen.has_value()) continue;
      const auto claim = claims.find(std::pair(view.key, std::string(*view.seen)));
      if (claim != claims.end() && claim->second != txn) fates_[claim->second] = Fate::kCommitted;
    }
  }
}

SweepChecker::Claims SweepChecker::FindClaims() {
  constexpr TxnId kSeveral = ~TxnId{0};
  Claims claims;
  const auto for_each_write = [this](TxnId txn, const auto& use) {
    for (KeyView& view : builder_.Views(txn, nullptr)) {
      if (view.written && view.value_is_whole && view.value.has_value())
        use(std::pair(view.key, *std::move(view.value)));
    }
  };
  for (TxnId txn = 0; txn < size(); ++txn) {
    if (fates_[txn] != Fate::kOpen || Record(txn).commit_ts == kUnknown) continue;
    for_each_write(txn, [&](auto written) { claims.try_emplace(std::move(written), txn); });
  }
  if (claims.empty()) return claims;
  for (TxnId txn = 0; txn < size(); ++txn) {
    for_each_write(txn, [&](const auto& written) {
      const auto claim = claims.find(written);
      if (claim != claims.end() && claim->second != txn) claim->second = kSeveral;
    });
  }
  absl::erase_if(claims, [](const auto& claim) { return claim.second == kSeveral; });
  return claims;
}

void SweepChecker::CheckTimestamps() {
  struct Drawn {
    Timestamp ts;
    TxnId txn;
  };
  std::vector<Drawn> drawn;
  for (TxnId txn = 0; txn < size(); ++txn) {
    const TxnRecord& record = Record(txn);
    if (record.start_ts != kUnknown && !record.as_of) drawn.push_back({record.start_ts, txn});
    if (record.commit_ts != kUnknown) drawn.push_back({record.commit_ts, txn});
    if (record.start_ts != kUnknown && record.commit_ts != kUnknown && record.commit_ts <= record.start_ts) {
      findings_.Add("commit-before-start", {txn}, [&] { return Describe(history_, txn); });
    }
    if (record.outcome != TxnOutcome::kOk || record.operations.empty()) continue;
    if (record.start_ts == kUnknown || (record.commit_ts == kUnknown && Writes(record))) {
      findings_.Add("missing-timestamp", {txn}, [&] { return Describe(history_, txn); });
    }
  }
  std::sort(drawn.begin(), drawn.end(),
            [](const Drawn& a, const Drawn& b) { return std::pair(a.ts, a.txn) < std::pair(b.ts, b.txn); });
  for (size_t i = 1; i < drawn.size(); ++i) {
    const Drawn& one = drawn[i - 1];
    const Drawn& two = drawn[i];
    if (one.ts != two.ts || one.txn == two.txn) continue;
    findings_.Add("duplicate-timestamp", {one.txn, two.txn},
                  [&] { return StrCat("T", one.txn, " and T", two.txn, " were both given ", one.ts.ToString()); });
  }
}

// All timestamps of a transaction were drawn before it was over, so a transaction invoked later must start above them.
// The commit timestamp of a transaction of unknown outcome may have been drawn later.
void SweepChecker::CheckRealTime() {
  struct Moment {
    uint64_t order;
    TxnId txn;
    bool is_end;
  };
  std::vector<Moment> moments;
  for (TxnId txn = 0; txn < size(); ++txn) {
    if (Record(txn).as_of) continue;
    moments.push_back({Record(txn).invoke, txn, false});
    if (Record(txn).complete != TxnRecord::kNever) moments.push_back({Record(txn).complete, txn, true});
  }
  std::sort(moments.begin(), moments.end(), [](const Moment& a, const Moment& b) { return a.order < b.order; });
  Holder newest;  // of the transactions that are over, the one with the highest timestamp
  for (const Moment& moment : moments) {
    const TxnRecord& record = Record(moment.txn);
    if (moment.is_end) {
      const bool is_known = record.outcome != TxnOutcome::kInfo;
      const Timestamp ts = is_known ? std::max(record.start_ts, record.commit_ts) : record.start_ts;
      if (ts > newest.commit_ts) newest = {ts, moment.txn};
    } else if (record.start_ts != kUnknown && record.start_ts < newest.commit_ts) {
      findings_.Add("real-time", {newest.txn, moment.txn}, [&] {
        return StrCat("T", newest.txn, " was over, with timestamp ", newest.commit_ts.ToString(), ", before T",
                      moment.txn, " was invoked, which started at ", record.start_ts.ToString());
      });
    }
  }
}

std::vector<SweepChecker::Event> SweepChecker::Events() const {
  std::vector<Event> events;
  for (TxnId txn = 0; txn < size(); ++txn) {
    const TxnRecord& record = Record(txn);
    if (record.start_ts != kUnknown) events.push_back({record.start_ts, Event::kStart, txn});
    if (record.commit_ts != kUnknown && fates_[txn] != Fate::kFailed) {
      events.push_back({record.commit_ts, Event::kCommit, txn});
    }
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::tuple(a.ts, a.kind, a.txn) < std::tuple(b.ts, b.kind, b.txn);
  });
  return events;
}

void SweepChecker::Start(TxnId txn) {
  std::vector<KeyView> views = builder_.Views(txn, &findings_);
  for (KeyView& view : views) {
    KeyState& state = StateOf(view.key);
    if (view.read) CheckRead(txn, view, &state);
    // Appends to a list that it did not read: to the current one, if that is certain.
    if (view.written && !view.value_is_whole && state.content.is_whole && state.possible.empty()) {
      std::string list(ListText(state.content.value));
      for (const int64_t element : view.appended) AppendToList(&list, element);
      view.value = std::move(list);
      view.value_is_whole = true;
    }
  }
  if (fates_[txn] == Fate::kFailed) return;
  open_writes_[txn] = OnlyWrites(std::move(views));
  if (fates_[txn] == Fate::kOpen && Record(txn).commit_ts == kUnknown) MayCommit(txn);
}

void SweepChecker::CheckRead(TxnId txn, const KeyView& view, KeyState* state) {
  if (state->content.Allows(view.seen)) {
    if (!state->content.is_whole) state->content = {std::optional<std::string>(view.seen), true};
    return;
  }
  for (const Possible& possible : state->possible) {
    if (possible.txn != txn && possible.content.Allows(view.seen)) return;
  }
  TellWrongRead(txn, view, *state);
}

void SweepChecker::TellWrongRead(TxnId txn, const KeyView& view, const KeyState& state) {
  const bool was_written = state.writer.commit_ts != kUnknown;
  std::vector<TxnId> transactions = {txn};
  if (was_written) transactions.push_back(state.writer.txn);
  findings_.Add("wrong-read", std::move(transactions), [&] {
    std::string text = StrCat("T", txn, " at ", Record(txn).start_ts.ToString(), " read ", keys_.Name(view.key), " = ",
                              QuoteValue(view.seen), "; the newest there is ", QuoteValue(state.content.value));
    if (was_written) text += StrCat(", by T", state.writer.txn, " at ", state.writer.commit_ts.ToString());
    for (TxnId other = 0; other < size() && view.seen.has_value(); ++other) {
      for (const KeyView& written : builder_.Views(other, nullptr)) {
        if (!written.written || written.key != view.key || written.value != view.seen) continue;
        text += StrCat("\n    what it read was written by ", Describe(history_, other));
      }
    }
    return text;
  });
}

void SweepChecker::Commit(TxnId txn) {
  const Timestamp commit_ts = Record(txn).commit_ts;
  for (KeyView& view : TakeWrites(txn)) {
    KeyState& state = StateOf(view.key);
    CheckOverlap(txn, view, state);
    if (view.verified) state.verifier = {commit_ts, txn};
    if (!view.written) continue;
    state.content = {std::move(view.value), view.value_is_whole};
    state.writer = {commit_ts, txn};
    // Covers the values below. A transaction that started before and commits later would overlap with this one.
    std::erase_if(state.possible, [](const Possible& possible) { return !possible.unbounded; });
  }
}

void SweepChecker::CheckOverlap(TxnId txn, const KeyView& view, const KeyState& state) {
  const Timestamp start_ts = Record(txn).start_ts;
  if (start_ts == kUnknown) return;
  const std::string_view key = keys_.Name(view.key);
  if (state.writer.commit_ts > start_ts) AddOverlap(txn, key, state.writer, "wrote");
  if (view.written && state.verifier.commit_ts > start_ts) AddOverlap(txn, key, state.verifier, "verified");
}

void SweepChecker::AddOverlap(TxnId txn, std::string_view key, const Holder& other, std::string_view what) {
  if (txn == other.txn) return;
  const TxnRecord& record = Record(txn);
  findings_.Add("overlapping-writers", {other.txn, txn}, [&] {
    return StrCat("T", other.txn, " ", what, " ", key, " and committed at ", other.commit_ts.ToString(), ", between ",
                  record.start_ts.ToString(), " and ", record.commit_ts.ToString(), ", where T", txn,
                  " started and committed, at the same key");
  });
}

void SweepChecker::MayCommit(TxnId txn) {
  const bool unbounded = Record(txn).start_ts == kUnknown && Record(txn).commit_ts == kUnknown;
  for (KeyView& view : TakeWrites(txn)) {
    if (!view.written) continue;
    StateOf(view.key).possible.push_back({{std::move(view.value), view.value_is_whole}, txn, unbounded});
  }
}

std::vector<KeyView> SweepChecker::TakeWrites(TxnId txn) {
  const auto it = open_writes_.find(txn);
  if (it == open_writes_.end()) return OnlyWrites(builder_.Views(txn, nullptr));
  std::vector<KeyView> views = std::move(it->second);
  open_writes_.erase(it);
  return views;
}

SweepChecker::KeyState& SweepChecker::StateOf(KeyId key) {
  if (key >= states_.size()) states_.resize(keys_.size());
  return states_[key];
}

}  // namespace

Findings CheckSweep(const History& history) { return SweepChecker(history).Run(); }

}  // namespace percolator
