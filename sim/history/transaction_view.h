// SPDX-License-Identifier: Apache-2.0

// A transaction, key by key: what it saw of others, and what it leaves behind.
//
// Under snapshot isolation this is all that judging between transactions needs. Whether a transaction sees its own
// writes, and whether a second read returns what the first did, is judged here (T9).

#ifndef PERCOLATOR_SIM_HISTORY_TRANSACTION_VIEW_H_
#define PERCOLATOR_SIM_HISTORY_TRANSACTION_VIEW_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "sim/history/findings.h"
#include "sim/history/history.h"
#include "src/base/strings.h"

namespace percolator {

using KeyId = uint32_t;

// Numbers keys from 0. The keys must outlive this.
class KeyIds {
 public:
  KeyId Of(std::string_view key) {
    const auto [it, is_new] = ids_.try_emplace(key, static_cast<KeyId>(names_.size()));
    if (is_new) names_.push_back(key);
    return it->second;
  }
  std::string_view Name(KeyId id) const { return names_[id]; }
  KeyId size() const { return static_cast<KeyId>(names_.size()); }

 private:
  absl::flat_hash_map<std::string_view, KeyId, StringHash> ids_;
  std::vector<std::string_view> names_;
};

struct KeyView {
  KeyId key = 0;

  // What the transaction read before its own writes, or a list that it read, without its own appends. Points into the
  // history.
  bool read = false;
  std::optional<std::string_view> seen;

  bool written = false;
  bool verified = false;
  // If `written`: the value that the transaction leaves; absent if it deletes the key. If not whole, only its own
  // appends: it never read the list that it appended to.
  std::optional<std::string> value;
  bool value_is_whole = true;
  std::vector<int64_t> appended;  // in their order

  // The key's value for this transaction, after all its operations. REQUIRES: value_is_whole.
  std::optional<std::string_view> Now() const { return written ? std::optional<std::string_view>(value) : seen; }
};

class ViewBuilder {
 public:
  ViewBuilder(const History* history, KeyIds* keys) : history_(*history), keys_(*keys) {}

  // The keys of a transaction in the order of their first use. Adds the anomaly
  //   internal   a read contradicts the transaction's own earlier reads and writes
  // to the findings, if there are any to add to.
  std::vector<KeyView> Views(TxnId txn, Findings* findings);

 private:
  KeyView& ViewOf(KeyId key, std::vector<KeyView>* views);
  // Returns whether the read agrees with what the transaction did before.
  static bool Read(const std::optional<std::string>& value, KeyView* view);
  static void Append(int64_t element, KeyView* view);

  const History& history_;
  KeyIds& keys_;
  // The index in `views` of a key when it was last looked up. Valid if that key is there now.
  std::vector<uint32_t> place_;
};

}  // namespace percolator

#endif  // PERCOLATOR_SIM_HISTORY_TRANSACTION_VIEW_H_
