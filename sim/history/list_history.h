// A history of lists that are only appended to: who saw which versions of a key, and in which order they came.
//
// Every element is appended once, so a list that someone read tells all versions the key went through, and who wrote
// them: "1 2 5" is the version of 5's writer, after 2's, after 1's. All lists read of one key must be beginnings of the
// longest one, which gives the order of its versions. Nothing here looks at a timestamp.
//
// Anomalies, parts A and B of the programme:
//   internal            a transaction's read contradicts its own earlier reads and writes
//   future-read         a transaction saw what it itself appended only later
//   garbage-read        a value that is no list, or an element that nobody appended
//   duplicate-element   an element stands twice in a list
//   G1a                 an element of a transaction that failed was seen
//   G1b                 a list was seen that ends between two appends of one transaction
//   incompatible-order  of two lists, neither is the beginning of the other; or a transaction's appends are swapped
//   lost-update         two transactions saw the same version, both appended to it, both committed
//   lost-write          a committed append is not in the final read
//   non-atomic          of a transaction's appends some are there and some are not
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

  // One transaction at one key.
  struct View {
    TxnId txn = 0;
    bool read = false;
    bool verified = false;
    std::string_view seen;       // if `read`: the list without its own appends
    uint32_t length = kNowhere;  // of `seen`, in elements; kNowhere if it is not a beginning of the order of versions
    std::vector<int64_t> appended;
    bool unseen = false;  // nobody saw some of `appended`: those versions come after all that were seen
  };
  // A version is named by the element that made it.
  struct Version {
    int64_t element = 0;
    TxnId writer = kNobody;  // kNobody: nobody appended it
  };
  struct Key {
    std::vector<View> views;  // in the order of the transactions
    std::vector<Version> order;
  };

  KeyIds names;
  std::vector<Key> keys;        // KeyId is the index; empty if the key is also written otherwise than by appending
  std::vector<bool> committed;  // by TxnId: it said so, or someone saw what it wrote
};

// `final_read` is the transaction, if there is one, that read all keys after everything else was over.
ListHistory ReadLists(const History& history, std::optional<TxnId> final_read, Findings* findings);

}  // namespace percolator

#endif  // PERCOLATOR_SIM_HISTORY_LIST_HISTORY_H_
