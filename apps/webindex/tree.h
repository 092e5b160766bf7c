// SPDX-License-Identifier: Apache-2.0

// Visits the content of a page, from its beginning to its end.
//
// VisitTree visits the tree that the HTML standard defines for the page, with all implied elements. The time to build it grows
// with the nesting, and with tags that are left open and opened again in every block: for hostile pages with the square of
// their size. TreeIsCheap estimates it beforehand. VisitTokens visits the tags as written, in one pass, for any page.

#ifndef PERCOLATOR_APPS_WEBINDEX_TREE_H_
#define PERCOLATOR_APPS_WEBINDEX_TREE_H_

#include <functional>
#include <string>
#include <string_view>

namespace webindex {

// The value of an attribute of an element, or an empty text if the element has no such attribute.
using AttributeFunction = std::function<std::string(const char* name)>;

class Visitor {
 public:
  virtual ~Visitor() = default;
  // The name is in lower case. In drawings and formulas, and of elements that HTML does not know, it may be empty.
  virtual void Open(std::string_view name, const AttributeFunction& attribute) = 0;
  virtual void Close(std::string_view name) = 0;
  virtual void Characters(std::string_view text) = 0;
  virtual void Comment(std::string_view text) = 0;
};

// All take valid UTF-8.
bool TreeIsCheap(std::string_view html);
void VisitTree(std::string_view html, Visitor& visitor);  // REQUIRES: TreeIsCheap
void VisitTokens(std::string_view html, Visitor& visitor);

}  // namespace webindex

#endif  // PERCOLATOR_APPS_WEBINDEX_TREE_H_
