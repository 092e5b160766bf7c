// SPDX-License-Identifier: Apache-2.0

// Listing: the output of most commands, an aligned table or an array of JSON objects:
//
//     Listing listing(std::cout, shell.json, {"table", "row", "age"});
//     listing.Add({"accounts", "Bob", "5m"}, {{"table", "accounts"}, {"row", "Bob"}, {"age_us", 300000000}});
//     listing.End();
//
// Rows are printed as they are added: a table in portions, each column as wide as its widest cell so far.

#ifndef PERCOLATOR_APPS_PERCOLATOR_LISTING_H_
#define PERCOLATOR_APPS_PERCOLATOR_LISTING_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "percolator/status.h"
#include "percolator/timestamp.h"

namespace percolator::cli {

using Json = nlohmann::ordered_json;

class Listing {
 public:
  Listing(std::ostream& out, bool json, std::vector<std::string> titles);

  // REQUIRES: `cells` has one cell for each title.
  void Add(std::vector<std::string> cells, const Json& object);
  void End();

 private:
  void PrintPortion();
  void PrintLine(const std::vector<std::string>& cells);

  std::ostream& out_;
  const bool json_;
  std::vector<std::string> titles_;
  std::vector<size_t> widths_;
  std::vector<std::vector<std::string>> portion_;
  bool titles_printed_ = false;
  size_t size_ = 0;
};

// Names in JSON are escaped as on the command line, so they can be used as arguments.
Json CellJson(const CellName& cell);
// Sets `value` if the bytes are UTF-8, otherwise `value_base64`.
void SetValue(Json* object, std::string_view bytes);
// Sets NAME to the number of the timestamp, and NAME_time to its date.
void SetTimestamp(Json* object, const std::string& name, Timestamp ts);
// Prints one line.
void PrintJson(std::ostream& out, const Json& json);
// Prints "WHAT CELL, committed at TIMESTAMP" after a write.
void PrintCommitted(std::ostream& out, bool json, std::string_view what, const CellName& cell, Timestamp committed);

}  // namespace percolator::cli

#endif  // PERCOLATOR_APPS_PERCOLATOR_LISTING_H_
