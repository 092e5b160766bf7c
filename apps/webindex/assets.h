// SPDX-License-Identifier: Apache-2.0

// The files of web/, embedded in the program.

#ifndef PERCOLATOR_APPS_WEBINDEX_ASSETS_H_
#define PERCOLATOR_APPS_WEBINDEX_ASSETS_H_

#include <string_view>

namespace webindex {

// Returns the bytes of a file, such as "index.html", or an empty text if there is no such file.
std::string_view Asset(std::string_view name);

}  // namespace webindex

#endif  // PERCOLATOR_APPS_WEBINDEX_ASSETS_H_
