// The files of web/, which are in the program itself.

#ifndef PERCOLATOR_APPS_WEBINDEX_ASSETS_H_
#define PERCOLATOR_APPS_WEBINDEX_ASSETS_H_

#include <string_view>

namespace webindex {

// The bytes of a file by its name, such as "index.html"; empty: there is none.
std::string_view Asset(std::string_view name);

}  // namespace webindex

#endif  // PERCOLATOR_APPS_WEBINDEX_ASSETS_H_
