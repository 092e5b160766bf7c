// SPDX-License-Identifier: Apache-2.0

// Prints answers of api.h on a terminal.

#ifndef PERCOLATOR_APPS_WEBINDEX_PRINT_H_
#define PERCOLATOR_APPS_WEBINDEX_PRINT_H_

#include <nlohmann/json_fwd.hpp>
#include <ostream>
#include <string>
#include <string_view>

namespace webindex {

// Replaces every control character by a space, so that text of pages cannot control the terminal.
std::string Printable(std::string_view text);

// 1234567 -> "1,234,567"
std::string WithCommas(uint64_t number);

// `bold` says that the terminal can show bold text.
void PrintSearch(const nlohmann::json& answer, bool bold, std::ostream& out);
void PrintPage(const nlohmann::json& answer, bool bold, std::ostream& out);
void PrintStats(const nlohmann::json& answer, std::ostream& out);

}  // namespace webindex

#endif  // PERCOLATOR_APPS_WEBINDEX_PRINT_H_
