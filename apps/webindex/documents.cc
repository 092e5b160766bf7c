// The document processor: from a file to what everything else is made of.
//
// Has one input, the contents, and one observer of it, whose runs for a page can't overlap. So its outputs need no Verify.

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/webindex/cells.h"
#include "apps/webindex/document.pb.h"
#include "apps/webindex/observers.h"
#include "apps/webindex/parse.h"
#include "apps/webindex/tables.h"
#include "apps/webindex/terms.h"

namespace webindex {

using percolator::CellName;
using percolator::ReadWrite;
using percolator::Timestamp;

namespace {

absl::StatusOr<std::string> WithNewVersion(ReadWrite& t, const Value& history, const Value& stat, const Value& contents,
                                           const Text& text) {
  absl::StatusOr<History> old = MessageIn<History>(history);
  if (!old.ok()) return old.status();
  const absl::StatusOr<FileStat> loaded = MessageIn<FileStat>(stat);
  if (!loaded.ok()) return loaded.status();
  const absl::StatusOr<Timestamp> start = t.Start();
  if (!start.ok()) return start.status();
  History versions;
  PageVersion* newest = versions.add_versions();
  newest->set_timestamp(start->value());
  newest->set_loaded_micros(loaded->loaded_micros());
  newest->set_title(text.title());
  newest->set_bytes(contents->size());
  newest->set_hash(HashOf(*contents).low);
  const int kept = std::min(old->versions_size(), static_cast<int>(kKeptVersions) - 1);
  for (int i = 0; i < kept; ++i) *versions.add_versions() = std::move(*old->mutable_versions(i));
  return versions.SerializeAsString();
}

}  // namespace

absl::Status ParseContents(const std::string& base, ReadWrite& t, const std::string& url) {
  const std::vector<std::string_view> outputs = {kText, kIdentity, kLinks, kResources, kHistory};
  std::vector<CellName> cells = {Cell(kPages, url, kContents), Cell(kPages, url, kStat)};
  for (const std::string_view column : outputs) cells.push_back(Cell(kPages, url, column));
  const absl::StatusOr<std::vector<Value>> values = t.Get(cells);
  if (!values.ok()) return values.status();
  const Value& contents = (*values)[0];

  std::vector<Value> made(outputs.size());
  if (contents.has_value()) {
    const ParsedPage page = ParsePage(base, url, *contents);
    absl::StatusOr<std::string> history = WithNewVersion(t, values->back(), (*values)[1], contents, page.text);
    if (!history.ok()) return history.status();
    made = {page.text.SerializeAsString(), page.identity.SerializeAsString(), page.links.SerializeAsString(),
            page.resources.SerializeAsString(), *std::move(history)};
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (made[i] == (*values)[2 + i]) continue;  // not written: what depends on it alone has nothing to do
    if (absl::Status s = Put(t, kPages, url, outputs[i], made[i]); !s.ok()) return s;
    if (outputs[i] != kText) continue;
    if (absl::Status s = t.Notify(kPages, url, kReindex); !s.ok()) return s;
    if (absl::Status s = t.Notify(kPages, url, kSummarize); !s.ok()) return s;
  }
  return absl::OkStatus();
}

}  // namespace webindex
