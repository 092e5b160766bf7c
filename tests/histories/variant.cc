// SPDX-License-Identifier: Apache-2.0

#include "tests/histories/variant.h"

#include <algorithm>
#include <string_view>

#include "src/base/strings.h"
#include "tests/histories/words.h"

namespace percolator {
namespace {

std::string_view LayoutName(Layout layout) {
  switch (layout) {
    case Layout::kOneRow:
      return "one-row";
    case Layout::kTwoRows:
      return "two-rows";
    case Layout::kTwoTables:
      return "two-tables";
  }
  return "";
}

std::string_view StoreName(bool on_disk) { return on_disk ? "rocksdb" : "memory"; }
std::string_view CommitName(bool in_one_step) { return in_one_step ? "one-step" : "two-phase"; }

// Whether a line of the head, which may name several, allows this name.
bool Allows(const std::vector<std::string>& wanted, std::string_view name) {
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end();
}

}  // namespace

std::string Variant::name() const {
  const std::string_view store = elsewhere != nullptr ? elsewhere->name : StoreName(on_disk);
  std::string name = StrCat(LayoutName(layout), "_", store, "_", CommitName(in_one_step));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

absl::StatusOr<std::vector<Variant>> VariantsOf(const Script& script) {
  std::vector<Variant> variants;
  for (const Layout layout : {Layout::kOneRow, Layout::kTwoRows, Layout::kTwoTables}) {
    for (const bool on_disk : {false, true}) {
      for (const bool in_one_step : {false, true}) {
        if (!Allows(script.layouts, LayoutName(layout)) || !Allows(script.stores, StoreName(on_disk)) ||
            !Allows(script.commits, CommitName(in_one_step))) {
          continue;
        }
        variants.push_back({layout, on_disk, in_one_step});
      }
    }
  }
  if (variants.empty()) return Mistake("the layout, store or commit in its head does not exist");
  for (const Block& block : script.blocks) {
    for (const Command& command : block.commands) {
      if (command.words[0] == "dump" && (script.layouts.size() != 1 || script.commits.size() != 1)) {
        return Mistake("a dump depends on layout and commit: its head must name one of each");
      }
    }
  }
  return variants;
}

std::vector<Variant> Elsewhere(const std::vector<Variant>& variants) {
  const bool in_two_rows =
      std::any_of(variants.begin(), variants.end(), [](const Variant& v) { return v.layout == Layout::kTwoRows; });
  const Layout layout = in_two_rows ? Layout::kTwoRows : variants.front().layout;
  std::vector<Variant> elsewhere;
  for (const StoreKind& kind : StoresToTest()) {
    if (kind.like_another) continue;
    for (Variant variant : variants) {
      if (variant.layout != layout || variant.on_disk || (variant.in_one_step && !kind.mutates_together)) continue;
      variant.elsewhere = &kind;
      elsewhere.push_back(variant);
    }
  }
  return elsewhere;
}

}  // namespace percolator
