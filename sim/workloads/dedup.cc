// SPDX-License-Identifier: Apache-2.0

// Figure 2 of the paper: documents are loaded, and for each content the first one is canonical.
//
// A document's cell holds its content and names the canonical document for it; a content's cell names that document
// too. Documents that are not canonical may be unloaded, and loaded again with other contents.

#include <algorithm>
#include <string>

#include "percolator/status_macros.h"
#include "sim/workloads/kinds.h"
#include "src/base/strings.h"

namespace percolator::sim {
namespace {

class Dedup final : public Workload {
 public:
  std::vector<CellName> Cells(const Plan& plan) const override {
    std::vector<CellName> cells;
    for (size_t i = 0; i < plan.keys; ++i) cells.push_back(Document(i));
    for (size_t i = 0; i < Contents(plan); ++i) cells.push_back(Canonical(i));
    std::sort(cells.begin(), cells.end());
    return cells;
  }

  void Step(Actor& actor) override {
    const Plan& plan = actor.scene().plan;
    const size_t document = actor.Draw(plan.keys);
    const size_t content = actor.Draw(Contents(plan));
    const uint64_t what = actor.Draw(10);
    if (what < 7) {
      actor.Transact([&](Recorded& t) { return Load(t, document, content); });
    } else if (what < 9) {
      actor.Transact([&](Recorded& t) { return Unload(t, document); });
    } else {
      actor.Look([](Recorded& t) { return Audit(t); });
    }
  }

  void Check(Actor& actor) override {
    actor.Look([](Recorded& t) { return Audit(t); });
  }

 private:
  static size_t Contents(const Plan& plan) { return 1 + plan.keys / 4; }
  static std::string Numbered(std::string_view name, size_t i) { return StrCat(name, i < 10 ? "0" : "", i); }
  static CellName Document(size_t i) { return {Plan::Tables()[0], Numbered("doc", i), "contents"}; }
  static CellName Canonical(size_t i) { return {Plan::Tables()[1], Numbered("hash", i), "canonical"}; }
  static std::string Text(size_t content, size_t canonical) { return StrCat(content, " of ", canonical); }

  static absl::Status Load(Recorded& t, size_t document, size_t content) {
    PERCOLATOR_ASSIGN_OR_RETURN(const std::optional<std::string> old, t.Get(Document(document)));
    if (old.has_value()) return absl::OkStatus();
    PERCOLATOR_ASSIGN_OR_RETURN(const std::optional<std::string> found, t.Get(Canonical(content)));
    const std::string canonical = found.has_value() ? std::string(Actor::TextOf(*found)) : std::to_string(document);
    if (!found.has_value()) t.Set(Canonical(content), t.actor().Value(canonical));
    t.Set(Document(document), t.actor().Value(StrCat(content, " of ", canonical)));
    return absl::OkStatus();
  }

  static absl::Status Unload(Recorded& t, size_t document) {
    PERCOLATOR_ASSIGN_OR_RETURN(const std::optional<std::string> old, t.Get(Document(document)));
    if (!old.has_value() || Actor::TextOf(*old).ends_with(StrCat(" of ", document))) return absl::OkStatus();
    t.Delete(Document(document));
    return absl::OkStatus();
  }

  // The canonical document of each content exists and names itself, and all documents with this content agree.
  static absl::Status Audit(Recorded& t) {
    PERCOLATOR_ASSIGN_OR_RETURN((const std::map<CellName, std::string> documents), t.Scan(Plan::Tables()[0]));
    PERCOLATOR_ASSIGN_OR_RETURN((const std::map<CellName, std::string> contents), t.Scan(Plan::Tables()[1]));
    const Plan& plan = t.actor().scene().plan;
    for (size_t content = 0; content < Contents(plan); ++content) {
      const auto found = contents.find(Canonical(content));
      const std::string expected = found == contents.end() ? "" : StrCat(content, " of ", Actor::TextOf(found->second));
      bool canonical_says_so = found == contents.end();
      for (size_t document = 0; document < plan.keys; ++document) {
        const auto it = documents.find(Document(document));
        if (it == documents.end()) continue;
        const std::string_view text = Actor::TextOf(it->second);
        if (!text.starts_with(StrCat(content, " of "))) continue;
        canonical_says_so |= text.ends_with(StrCat(" of ", document));
        if (text == expected) continue;
        t.actor().scene().Fail("dedup", StrCat("T", t.id(), " sees document ", document, " with ", text,
                                               ", but content ", content, " has the canonical \"", expected, "\""));
      }
      if (!canonical_says_so) {
        t.actor().scene().Fail("dedup", StrCat("T", t.id(), " sees ", expected, ", which does not exist"));
      }
    }
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<Workload> NewDedup() { return std::make_unique<Dedup>(); }

}  // namespace percolator::sim
