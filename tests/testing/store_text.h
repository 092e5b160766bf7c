// SPDX-License-Identifier: Apache-2.0

// The types of percolator/spi/store.h as text, for readable expectations and messages of failed tests.
//
//     cell       data:column@7=value       (unprintable bytes: \xNN)
//     row        key{cell cell ...}
//     rows       row row ...

#ifndef PERCOLATOR_TESTS_TESTING_STORE_TEXT_H_
#define PERCOLATOR_TESTS_TESTING_STORE_TEXT_H_

#include <ostream>
#include <string>
#include <vector>

#include "percolator/spi/store.h"

namespace percolator {

std::string ToText(const Cell& cell);
std::string ToText(const std::vector<Cell>& cells);
std::string ToText(const Row& row);
std::string ToText(const std::vector<Row>& rows);

std::string ToText(const TimestampRange& range);
std::string ToText(const Selector& selector);
std::string ToText(const RowRead& read);
std::string ToText(const ScanRequest& request);
std::string ToText(const Mutation& mutation);
std::string ToText(const RowMutation& mutation);

// Used by GoogleTest.
inline void PrintTo(const Cell& cell, std::ostream* os) { *os << ToText(cell); }
inline void PrintTo(const Row& row, std::ostream* os) { *os << ToText(row); }
inline void PrintTo(const TableInfo& info, std::ostream* os) { *os << info.name << "(" << info.schema << ")"; }

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_TESTING_STORE_TEXT_H_
