// SPDX-License-Identifier: Apache-2.0

// Histories in the notation of the literature, for tests:
//
//     Play("+0[x=10] c0  r1[x=10] r2[x=10] +1[x=11] c1 +2[x=12] f2  r3[x=10,11] c3")
//
//   b1           transaction 1 begins; if omitted, with its first operation
//   r1[x=10]     it reads x and gets 10; r1[x] gets nothing; r1[x=10,11] gets the list "10 11"
//   w1[x=11]     it writes x; w1[x] deletes it
//   +1[x=11]     it appends 11 to the list x
//   v1[x]        it verifies x
//   c1 f1 i1     it commits, fails, or gets no answer. A transaction without any of these gets no answer
//
// Order numbers and timestamps follow the script: a transaction is invoked and starts where it begins; it commits and
// is over at its c. Without writes it has no commit timestamp; after i its client does not know one. Transactions are
// numbered as in the history, from 0.

#ifndef PERCOLATOR_SIM_HISTORY_PLAY_H_
#define PERCOLATOR_SIM_HISTORY_PLAY_H_

#include <string_view>

#include "sim/history/history.h"

namespace percolator {

// Ends the program if the script is malformed.
History Play(std::string_view script);

}  // namespace percolator

#endif  // PERCOLATOR_SIM_HISTORY_PLAY_H_
