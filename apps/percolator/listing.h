// Listing: what most commands print. To people an aligned table, to programs an array of JSON objects:
//
//     Listing listing(std::cout, shell.json, {"table", "row", "age"});
//     listing.Add({"accounts", "Bob", "5m"}, {{"table", "accounts"}, {"row", "Bob"}, {"age_us", 300000000}});
//     listing.End();
//
// It is printed as it grows: a table in portions, each column as wide as the widest so far.

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

  // One cell for each title.
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

// Names in JSON are escaped as on the command line, so that they can be given back to it.
Json CellJson(const CellName& cell);
// Sets `value` if the bytes are UTF-8, else `value_base64`.
void SetValue(Json* object, std::string_view bytes);
// Sets NAME and NAME_time: the number, and what it means to people.
void SetTimestamp(Json* object, const std::string& name, Timestamp ts);
// On one line.
void PrintJson(std::ostream& out, const Json& json);
// That a cell was written: "WHAT CELL, committed at ...".
void PrintCommitted(std::ostream& out, bool json, std::string_view what, const CellName& cell, Timestamp committed);

}  // namespace percolator::cli

#endif  // PERCOLATOR_APPS_PERCOLATOR_LISTING_H_
