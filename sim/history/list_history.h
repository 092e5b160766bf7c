// SPDX-License-Identifier: Apache-2.0

// A history of lists that are only appended to: the versions of each key, their order, and the transactions that saw
// them.
//
// Every element is appended once, so a list that was read shows all versions that the key went through, and their
// writers: "1 2 5" is the version of 5's writer, after 2's, after 1's. All lists read of one key must be prefixes of
// the longest one, which gives the order of its versions. Timestamps are not used.
//
// Anomalies, parts A and B of the programme:
//   internal            a transaction's read contradicts its own earlier reads and writes
//   future-read         a transaction saw its own append before it made it
//   garbage-read        a value that is not a list, or an element that was never appended
//   duplicate-element   a list holds an element twice
//   G1a                 an element of a transaction that failed was seen
//   G1b                 a list was seen that ends between two appends of one transaction
//   incompatible-order  of two lists, neither is a prefix of the other; or a transaction's appends are swapped
//   lost-update         two transactions saw the same version, both appended to it, both committed
//   lost-write          a committed append is not in the final read
//   non-atomic          some of a transaction's appends are there and others are missing
//   dirty-update        a committed append on top of one that failed
//   duplicate-append    the history itself is wrong: an element was appended twice

#ifndef PERCOLATOR_SIM_HISTORY_LIST_HISTORY_H_
#define PERCOLATOR_SIM_HISTORY_LIST_HISTORY_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/history/findings.h"
#include "sim/history/history.h"
#include "sim/history/transaction_view.h"

namespace percolator {

struct ListHistory {
  static constexpr TxnId kNobody = std::numeric_limits<TxnId>::max();
  static constexpr uint32_t kNowhere = std::numeric_limits<uint32_t>::max();

  // The view that one transaction has of one key.
  struct View {
    TxnId txn = 0;
    bool read = false;
    bool verified = false;
    std::string_view seen;       // if `read`: the list without its own appends
    uint32_t length = kNowhere;  // of `seen`, in elements; kNowhere if not a prefix of the order
    std::vector<int64_t> appended;
    bool unseen = false;  // some of `appended` were never read: those versions come after all seen ones
  };
  // A version is named by the element that made it.
  struct Version {
    int64_t element = 0;
    TxnId writer = kNobody;  // kNobody: no transaction appended it
  };
  struct Key {
    std::vector<View> views;  // in the order of the transactions
    std::vector<Version> order;
  };

  KeyIds names;
  std::vector<Key> keys;        // by KeyId; empty if some writes are not appends
  std::vector<bool> committed;  // by TxnId: reported as committed, or its write was seen
};

// `final_read` is the transaction, if there is one, that read all keys after everything else was over.
ListHistory ReadLists(const History& history, std::optional<TxnId> final_read, Findings* findings);

}  // namespace percolator

#endif  // PERCOLATOR_SIM_HISTORY_LIST_HISTORY_H_
