// SPDX-License-Identifier: Apache-2.0

#include "sim/history/list_history.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "src/base/strings.h"

namespace percolator {
namespace {

constexpr TxnId kNobody = ListHistory::kNobody;
constexpr uint32_t kNowhere = ListHistory::kNowhere;
using View = ListHistory::View;
using Version = ListHistory::Version;

class ListReader {
 public:
  ListReader(const History& history, Findings* findings) : history_(history), findings_(*findings) {}

  ListHistory Run(std::optional<TxnId> final_read);

 private:
  // The append that made an element, and its position.
  struct Origin {
    uint32_t view;              // of its writer, in Key::views
    uint32_t nth;               // of the appends there
    uint32_t place = kNowhere;  // in Key::order
  };
  // The longest list read of a key, which is the order of its versions.
  struct Longest {
    std::string_view text;
    std::vector<size_t> ends;  // the offset in the text where each element ends
    uint32_t view = 0;         // of a transaction that read it
    uint32_t first_failed = kNowhere;
  };

  // Fills the views of all keys, and the origins of elements.
  void Gather();
  std::vector<bool> KeysWrittenOtherwise();
  void AddAppends(KeyId key, uint32_t view);
  Origin* FindOrigin(KeyId key, int64_t element);

  // Fills the order of a key, and the lengths of the lists that were read of it.
  void FindOrder(KeyId key);
  void TakeOrder(KeyId key, uint32_t view, const std::vector<int64_t>& elements);
  uint32_t LengthOf(KeyId key, std::string_view seen) const;

  void CheckReads(KeyId key);
  void CheckFutureRead(KeyId key, const View& view);
  void CheckLastVersion(KeyId key, const View& view);
  void CheckElements(KeyId key, const View& view, const std::vector<int64_t>& elements);
  void CheckStrangeRead(KeyId key, const View& view);
  void CheckAppends(KeyId key);
  void CheckRun(KeyId key, const View& view, const std::vector<uint32_t>& places);
  void AddRunAnomaly(std::string_view name, KeyId key, const View& view, std::string_view how);
  void CheckLostUpdate(KeyId key);
  void CheckDirtyUpdate(KeyId key);
  void CheckFinalRead(TxnId final_read);

  TxnOutcome OutcomeOf(TxnId txn) const { return history_.transactions[txn].outcome; }
  std::string_view NameOf(KeyId key) const { return lists_.names.Name(key); }
  // T3 read x = "1 2"
  std::string TellRead(KeyId key, const View& view) const {
    return StrCat("T", view.txn, " read ", NameOf(key), " = \"", view.seen, "\"");
  }
  // T3 appended "1 2" to x
  std::string TellAppends(KeyId key, const View& view) const {
    return StrCat("T", view.txn, " appended \"", FormatList(view.appended), "\" to ", NameOf(key));
  }

  const History& history_;
  Findings& findings_;
  ListHistory lists_;
  std::vector<Longest> longest_;  // by KeyId
  absl::flat_hash_map<std::pair<KeyId, int64_t>, Origin> origins_;
};

ListHistory ListReader::Run(std::optional<TxnId> final_read) {
  Gather();
  // Whether a transaction of unknown outcome committed is known only after all orders are known.
  for (KeyId key = 0; key < lists_.keys.size(); ++key) FindOrder(key);
  for (KeyId key = 0; key < lists_.keys.size(); ++key) {
    CheckReads(key);
    CheckAppends(key);
    CheckLostUpdate(key);
    CheckDirtyUpdate(key);
  }
  if (final_read.has_value()) CheckFinalRead(*final_read);
  return std::move(lists_);
}

void ListReader::Gather() {
  const std::vector<bool> written_otherwise = KeysWrittenOtherwise();
  lists_.keys.resize(lists_.names.size());
  longest_.resize(lists_.names.size());
  ViewBuilder builder(&history_, &lists_.names);
  for (TxnId txn = 0; txn < history_.transactions.size(); ++txn) {
    lists_.committed.push_back(OutcomeOf(txn) == TxnOutcome::kOk);
    for (KeyView& found : builder.Views(txn, &findings_)) {
      if (written_otherwise[found.key]) continue;
      std::vector<View>& views = lists_.keys[found.key].views;
      View& view = views.emplace_back();
      view.txn = txn;
      view.read = found.read;
      view.verified = found.verified;
      view.seen = found.seen.value_or(std::string_view());
      view.appended = std::move(found.appended);
      AddAppends(found.key, static_cast<uint32_t>(views.size() - 1));
    }
  }
}

std::vector<bool> ListReader::KeysWrittenOtherwise() {
  std::vector<bool> written_otherwise;
  for (const TxnRecord& txn : history_.transactions) {
    for (const TxnOperation& operation : txn.operations) {
      const KeyId key = lists_.names.Of(operation.key);
      if (key >= written_otherwise.size()) written_otherwise.resize(key + 1, false);
      if (operation.kind == TxnOperation::Kind::kWrite) written_otherwise[key] = true;
    }
  }
  return written_otherwise;
}

void ListReader::AddAppends(KeyId key, uint32_t view) {
  const View& writer = lists_.keys[key].views[view];
  for (uint32_t nth = 0; nth < writer.appended.size(); ++nth) {
    const int64_t element = writer.appended[nth];
    const auto [it, is_new] = origins_.try_emplace(std::pair(key, element), Origin{view, nth});
    if (is_new) continue;
    const TxnId other = lists_.keys[key].views[it->second.view].txn;
    findings_.Add("duplicate-append", {other, writer.txn}, [&] {
      return StrCat("T", other, " and T", writer.txn, " appended ", element, " to ", NameOf(key),
                    ": elements must be unique for this check");
    });
  }
}

ListReader::Origin* ListReader::FindOrigin(KeyId key, int64_t element) {
  const auto it = origins_.find(std::pair(key, element));
  return it == origins_.end() ? nullptr : &it->second;
}

void ListReader::FindOrder(KeyId key) {
  std::vector<View>& views = lists_.keys[key].views;
  std::vector<uint32_t> by_length;
  for (uint32_t i = 0; i < views.size(); ++i) {
    if (views[i].read) by_length.push_back(i);
  }
  std::stable_sort(by_length.begin(), by_length.end(),
                   [&](uint32_t a, uint32_t b) { return views[a].seen.size() > views[b].seen.size(); });
  for (const uint32_t i : by_length) {
    const std::optional<std::vector<int64_t>> elements = ParseList(views[i].seen);
    if (!elements.has_value()) continue;  // CheckStrangeRead reports it
    TakeOrder(key, i, *elements);
    break;
  }
  for (const uint32_t i : by_length) views[i].length = LengthOf(key, views[i].seen);
}

void ListReader::TakeOrder(KeyId key, uint32_t view, const std::vector<int64_t>& elements) {
  std::vector<View>& views = lists_.keys[key].views;
  Longest& longest = longest_[key];
  longest.text = views[view].seen;
  longest.view = view;
  size_t end = 0;
  for (uint32_t place = 0; place < elements.size(); ++place) {
    end = std::min(longest.text.find(' ', end + 1), longest.text.size());
    longest.ends.push_back(end);
    Version& version = lists_.keys[key].order.emplace_back();
    version.element = elements[place];
    Origin* origin = FindOrigin(key, version.element);
    if (origin == nullptr) continue;
    version.writer = views[origin->view].txn;
    if (origin->place == kNowhere) origin->place = place;
    if (OutcomeOf(version.writer) == TxnOutcome::kInfo) lists_.committed[version.writer] = true;
    if (OutcomeOf(version.writer) == TxnOutcome::kFail) longest.first_failed = std::min(longest.first_failed, place);
  }
}

uint32_t ListReader::LengthOf(KeyId key, std::string_view seen) const {
  const Longest& longest = longest_[key];
  if (seen.empty()) return 0;
  const auto end = std::lower_bound(longest.ends.begin(), longest.ends.end(), seen.size());
  if (end == longest.ends.end() || *end != seen.size() || !longest.text.starts_with(seen)) return kNowhere;
  return static_cast<uint32_t>(end - longest.ends.begin() + 1);
}

// A mistake in an element of the longest list concerns all that saw the element. So the other lists are searched only
// for failed writers, and every other mistake is reported once.
void ListReader::CheckReads(KeyId key) {
  const ListHistory::Key& lists = lists_.keys[key];
  const Longest& longest = longest_[key];
  for (uint32_t i = 0; i < lists.views.size(); ++i) {
    const View& view = lists.views[i];
    if (!view.read) continue;
    if (view.length == kNowhere) {
      CheckStrangeRead(key, view);
      continue;
    }
    if (i == longest.view && !lists.order.empty()) CheckElements(key, view, *ParseList(view.seen));
    if (longest.first_failed < view.length && i != longest.view) {
      const Version& failed = lists.order[longest.first_failed];
      findings_.Add("G1a", {view.txn, failed.writer}, [&] {
        return StrCat(TellRead(key, view), "; ", failed.element, " in it was appended by T", failed.writer,
                      ", which failed");
      });
    }
    CheckFutureRead(key, view);
    CheckLastVersion(key, view);
  }
}

void ListReader::CheckFutureRead(KeyId key, const View& view) {
  for (const int64_t element : view.appended) {
    if (FindOrigin(key, element)->place >= view.length) continue;
    findings_.Add("future-read", {view.txn}, [&] {
      return StrCat(TellRead(key, view), " with ", element, ", which it appended only after this read");
    });
  }
}

void ListReader::CheckLastVersion(KeyId key, const View& view) {
  if (view.length == 0) return;
  const Version& last = lists_.keys[key].order[view.length - 1];
  if (last.writer == kNobody || last.writer == view.txn || OutcomeOf(last.writer) == TxnOutcome::kFail) return;
  const Origin& origin = *FindOrigin(key, last.element);
  const View& writer = lists_.keys[key].views[origin.view];
  if (origin.nth + 1 == writer.appended.size()) return;
  findings_.Add("G1b", {view.txn, writer.txn}, [&] {
    return StrCat(TellRead(key, view), ", but ", TellAppends(key, writer), ": a reader must see all of it or nothing");
  });
}

void ListReader::CheckElements(KeyId key, const View& view, const std::vector<int64_t>& elements) {
  absl::flat_hash_set<int64_t> met;
  for (const int64_t element : elements) {
    if (!met.insert(element).second) {
      findings_.Add("duplicate-element", {view.txn},
                    [&] { return StrCat(TellRead(key, view), ", which holds ", element, " twice"); });
    }
    const Origin* origin = FindOrigin(key, element);
    if (origin == nullptr) {
      findings_.Add("garbage-read", {view.txn},
                    [&] { return StrCat(TellRead(key, view), "; no transaction appended ", element); });
      continue;
    }
    const TxnId writer = lists_.keys[key].views[origin->view].txn;
    if (OutcomeOf(writer) == TxnOutcome::kFail) {
      findings_.Add("G1a", {view.txn, writer}, [&] {
        return StrCat(TellRead(key, view), "; ", element, " in it was appended by T", writer, ", which failed");
      });
    }
  }
}

// A read that does not fit into the order of versions.
void ListReader::CheckStrangeRead(KeyId key, const View& view) {
  const std::optional<std::vector<int64_t>> elements = ParseList(view.seen);
  if (!elements.has_value()) {
    findings_.Add("garbage-read", {view.txn}, [&] { return StrCat(TellRead(key, view), ", which is not a list"); });
    return;
  }
  CheckElements(key, view, *elements);
  const View& other = lists_.keys[key].views[longest_[key].view];
  findings_.Add("incompatible-order", {view.txn, other.txn}, [&] {
    return StrCat(TellRead(key, view), " and ", TellRead(key, other), ": neither list is the beginning of the other");
  });
}

void ListReader::CheckAppends(KeyId key) {
  std::vector<uint32_t> places;
  for (View& view : lists_.keys[key].views) {
    if (view.appended.empty()) continue;
    places.clear();
    for (const int64_t element : view.appended) places.push_back(FindOrigin(key, element)->place);
    view.unseen = std::find(places.begin(), places.end(), kNowhere) != places.end();
    if (lists_.committed[view.txn]) CheckRun(key, view, places);
  }
}

// The appends of one transaction to a key become visible together and in their order.
void ListReader::CheckRun(KeyId key, const View& view, const std::vector<uint32_t>& places) {
  const ListHistory::Key& lists = lists_.keys[key];
  const size_t unseen = std::count(places.begin(), places.end(), kNowhere);
  const bool in_order = std::is_sorted(places.begin(),
                                       places.end());  // unseen ones count as last
  if (unseen == places.size() || (unseen == 0 && in_order)) return;
  if (unseen == 0) {
    AddRunAnomaly("incompatible-order", key, view, "in another order");
    return;
  }
  // If the list ends with the first of them, its reader came in between: that is G1b, which is reported there.
  if (in_order && places[places.size() - unseen - 1] + 1 == lists.order.size()) return;
  AddRunAnomaly("non-atomic", key, view, "with only some of it");
}

void ListReader::AddRunAnomaly(std::string_view name, KeyId key, const View& view, std::string_view how) {
  const View& reader = lists_.keys[key].views[longest_[key].view];
  findings_.Add(name, {view.txn, reader.txn},
                [&] { return StrCat(TellAppends(key, view), ", but ", TellRead(key, reader), ", ", how); });
}

// Does not need the order of versions: of two transactions that saw the same version and both appended, one did not see
// the other.
void ListReader::CheckLostUpdate(KeyId key) {
  absl::flat_hash_map<std::string_view, TxnId> updater_of;
  for (const View& view : lists_.keys[key].views) {
    if (!view.read || view.appended.empty() || !lists_.committed[view.txn]) continue;
    const auto [it, is_new] = updater_of.try_emplace(view.seen, view.txn);
    if (is_new) continue;
    const TxnId other = it->second;
    findings_.Add("lost-update", {other, view.txn}, [&] {
      return StrCat("T", other, " and T", view.txn, " both read ", NameOf(key), " = \"", view.seen,
                    "\", both appended to it and both committed");
    });
  }
}

void ListReader::CheckDirtyUpdate(KeyId key) {
  const std::vector<Version>& order = lists_.keys[key].order;
  const uint32_t failed = longest_[key].first_failed;
  if (failed == kNowhere) return;
  const auto is_committed = [&](const Version& v) { return v.writer != kNobody && lists_.committed[v.writer]; };
  const auto update = std::find_if(order.begin() + failed, order.end(), is_committed);
  if (update == order.end()) return;
  findings_.Add("dirty-update", {order[failed].writer, update->writer}, [&] {
    return StrCat("T", update->writer, " appended ", update->element, " to ", NameOf(key), ", after ",
                  order[failed].element, " of T", order[failed].writer, ", which failed");
  });
}

void ListReader::CheckFinalRead(TxnId final_read) {
  std::vector<bool> present(history_.transactions.size(), false);
  std::vector<bool> missing(history_.transactions.size(), false);
  for (KeyId key = 0; key < lists_.keys.size(); ++key) {
    const std::vector<View>& views = lists_.keys[key].views;
    const auto last = std::find_if(views.begin(), views.end(), [&](const View& v) { return v.txn == final_read; });
    if (last == views.end() || !last->read || last->length == kNowhere) continue;
    for (const View& view : views) {
      if (view.txn == final_read) continue;
      for (const int64_t element : view.appended) {
        const bool is_there = FindOrigin(key, element)->place < last->length;
        (is_there ? present : missing)[view.txn] = true;
        if (is_there || OutcomeOf(view.txn) != TxnOutcome::kOk) continue;
        findings_.Add("lost-write", {view.txn, final_read}, [&] {
          return StrCat("T", view.txn, " committed ", element, " as an element of ", NameOf(key), ", but in the end ",
                        TellRead(key, *last));
        });
      }
    }
  }
  for (TxnId txn = 0; txn < history_.transactions.size(); ++txn) {
    if (OutcomeOf(txn) != TxnOutcome::kInfo || !present[txn] || !missing[txn]) continue;
    findings_.Add("non-atomic", {txn, final_read}, [&] {
      return StrCat("in the end T", final_read, " saw some but not all that T", txn,
                    " appended: ", Describe(history_, txn));
    });
  }
}

}  // namespace

ListHistory ReadLists(const History& history, std::optional<TxnId> final_read, Findings* findings) {
  return ListReader(history, findings).Run(final_read);
}

}  // namespace percolator
