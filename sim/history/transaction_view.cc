// SPDX-License-Identifier: Apache-2.0

#include "sim/history/transaction_view.h"

namespace percolator {

std::vector<KeyView> ViewBuilder::Views(TxnId txn, Findings* findings) {
  std::vector<KeyView> views;
  for (const TxnOperation& operation : history_.transactions[txn].operations) {
    KeyView& view = ViewOf(keys_.Of(operation.key), &views);
    switch (operation.kind) {
      case TxnOperation::Kind::kRead:
        if (!Read(operation.value, &view) && findings != nullptr) {
          findings->Add("internal", {txn}, [&] {
            return StrCat("T", txn, " read ", operation.key, " = ", QuoteValue(operation.value), ", though by its own ",
                          view.value_is_whole ? "earlier reads and writes it is " : "appends it has to end with ",
                          QuoteValue(view.value_is_whole ? view.Now() : view.value));
          });
        }
        break;
      case TxnOperation::Kind::kWrite:
        view.written = true;
        view.value = operation.value;
        view.value_is_whole = true;
        break;
      case TxnOperation::Kind::kAppend:
        Append(operation.element, &view);
        break;
      case TxnOperation::Kind::kVerify:
        view.verified = true;
        break;
    }
  }
  return views;
}

KeyView& ViewBuilder::ViewOf(KeyId key, std::vector<KeyView>* views) {
  if (key >= place_.size()) place_.resize(keys_.size());
  uint32_t& place = place_[key];
  if (place >= views->size() || (*views)[place].key != key) {
    place = static_cast<uint32_t>(views->size());
    views->emplace_back().key = key;
  }
  return (*views)[place];
}

bool ViewBuilder::Read(const std::optional<std::string>& value, KeyView* view) {
  if (!view->read && !view->written) {
    view->read = true;
    view->seen = value;
    return true;
  }
  if (view->value_is_whole) return view->Now() == value;
  // Of such a list only the end is known, its own appends. The elements before them come from others.
  const std::optional<std::string_view> seen = WithoutEnd(ListText(value), *view->value);
  if (!seen.has_value()) return false;
  view->read = true;
  if (!seen->empty()) view->seen = *seen;
  view->value = value;
  view->value_is_whole = true;
  return true;
}

void ViewBuilder::Append(int64_t element, KeyView* view) {
  if (!view->read && !view->written) view->value_is_whole = false;
  if (!view->written) view->value = view->seen;
  if (!view->value.has_value()) view->value.emplace();
  view->written = true;
  view->appended.push_back(element);
  AppendToList(&*view->value, element);
}

}  // namespace percolator
