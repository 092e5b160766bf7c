// SPDX-License-Identifier: Apache-2.0

#include "sim/history/findings.h"

#include "src/base/strings.h"

namespace percolator {

size_t Findings::Count(std::string_view name) const {
  const auto it = counts_.find(name);
  return it == counts_.end() ? 0 : it->second;
}

std::vector<std::string> Findings::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, count] : counts_) names.push_back(name);
  return names;
}

std::string Findings::ToString() const {
  if (ok()) return "no anomaly\n";
  std::string out;
  for (const Anomaly& anomaly : anomalies_) out += StrCat(anomaly.name, ": ", anomaly.text, "\n");
  for (const auto& [name, count] : counts_) {
    if (count > kKeptPerName) out += StrCat(name, ": and ", count - kKeptPerName, " more\n");
  }
  return out;
}

std::ostream& operator<<(std::ostream& os, const Findings& findings) { return os << findings.ToString(); }

}  // namespace percolator
