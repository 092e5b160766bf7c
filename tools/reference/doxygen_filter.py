#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Copies the public headers with their comments as Doxygen reads them, so that the headers stay plain C++.

    tools/reference/doxygen_filter.py FROM TO     copies the headers of a folder; ./reference does

    // text            the comment of the next declaration, or of the file if the file begins with it
    int a;  // text    the comment of the field before it
    //     code        lines that are indented are shown as they are
    // LIFETIME  text  a word in capitals and two spaces begin a paragraph with that title

A function that follows another one directly, without a comment of its own, gets the same comment if that is about both:
if it names the second, or they are overloads, or it begins with "Return". The filter omits the line of the license and
declarations whose comment begins with "Implementation detail", and escapes all markup of Doxygen except `code`.
"""

import re
import sys
from pathlib import Path

COMMENT = re.compile(r"^(\s*)//(?!/| NOLINT)(?: (.*)|)$")
# Code, then a comment that is not in a literal, and no remark to a tool.
TRAILING = re.compile(r'^(\s*(?![/#}])(?:[^"/]|"(?:\\.|[^"\\])*"|/(?!/))*[;,{}]\s*)// (?!NOLINT)(.*)$')
LAST_ENUMERATOR = re.compile(r"^(\s*k\w+(?: = \w+)?\s+)// (.*)$")
CONTINUED = re.compile(r"^\s{8,}// (.*)$")
TITLE = re.compile(r"^([A-Z][A-Z ]+?)  +(.*)$")
NO_FUNCTION = re.compile(r"\s*(?:template <[^;{]*>\s*(?:requires[^;{]*)?)?(?:class|struct|enum|union|namespace|using|typedef|"
                         r"public:|private:|protected:|static_assert|#|\})")
LICENSE = re.compile(r"\A// SPDX-License-Identifier:[^\n]*\n+")
STRAY = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*')


def escaped(text):
    """A line of prose in which only `code` is markup."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([\\@<>&#%*_~|])", r"\\\1", part) for part in parts)


def as_documentation(lines):
    """The text of a comment, as lines of a comment of Doxygen, in which indented lines are code, as in Markdown."""
    shown, kind = [], "prose"  # or "title", in a paragraph that has one, or "code"
    for line in lines:
        indented = line.startswith("    ")
        title = TITLE.match(line)
        if title:
            kind = "title"
            shown += ["@par " + title.group(1).capitalize(), escaped(title.group(2))]
        elif indented and kind != "title":
            if kind == "prose" and shown and shown[-1]:
                shown.append("")
            kind = "code"
            shown.append(line)
        else:
            if kind == "code" and line:
                shown.append("")
            kind = kind if indented or (kind == "code" and not line) else "prose"
            shown.append(escaped(line.strip()))
    return [f"/// {line}".rstrip() for line in shown]


def function_at(source, index):
    """The line after the declaration or definition of a function that begins in a line, or None if none begins there."""
    code = ""
    for end in range(index, len(source)):
        code += STRAY.sub("", source[end]).rstrip() + "\n"
        if NO_FUNCTION.match(code) or not source[end].strip():
            return None
        if code.count("(") == code.count(")") and code.count("{") == code.count("}") and code.rstrip().endswith((";", "}")):
            return end + 1 if re.match(r"[^=]*\(|.*operator", code, re.DOTALL) else None
    return None


NAME = re.compile(r"(operator\S+?|[\w~]+)\(")


def name_of(function):
    """The name of a function, or an empty text for what only looks like one, such as a concept."""
    found = NAME.search(re.sub(r"template <[^\n]*>\n", "", function))
    return found.group(1) if found else ""


def is_shared(comment, first, second):
    """Whether the comment of one function is also about the next: an overload, or one that it names, or it says so."""
    text = " ".join(comment)
    if not name_of(first) or not name_of(second):
        return False
    return (name_of(first) == name_of(second) or re.search(rf"\b{re.escape(name_of(second))}\b", text)
            or re.match(r"(?:Return|Same)\b", text))


def with_documentation(line):
    """A line of code, with the comment at its end as Doxygen reads it."""
    trailing = TRAILING.match(line) or LAST_ENUMERATOR.match(line)
    return f"{trailing.group(1)}///< {escaped(trailing.group(2))}" if trailing else re.sub(r"\s+// NOLINT.*$", "", line)


def filtered(text, name):
    source = LICENSE.sub("", text).split("\n")
    result, index = [], 0
    comment, function = [], None  # those of the lines before, while no empty line has ended them
    hiding = False
    while index < len(source):
        line = source[index]
        block = []
        while index < len(source) and (match := COMMENT.match(source[index])):
            block.append(match.group(2) or "")
            index += 1
        if block:
            following = source[index].strip() if index < len(source) else ""
            comment, function = block, None
            if len(result) == 0:  # of the file
                result += ["/// @file " + name, *as_documentation(block)]
            elif following and not following.startswith("}") and not hiding:  # of what follows
                hiding = block[0].startswith("Implementation detail")
                result += ["/// @cond"] if hiding else as_documentation(block)
            continue
        end = function_at(source, index)
        if hiding and not end and (not line.strip() or NO_FUNCTION.match(line)):
            result.append("/// @endcond")
            hiding = False
        if end:
            this = "\n".join(source[index:end])
            if function and comment and not hiding and is_shared(comment, function, this):
                result += as_documentation(comment)
            function = function or this
            result += source[index:end] if end > index + 1 else [with_documentation(line)]
            index = end
            continue
        if not line.strip():
            comment, function = [], None
        result.append(with_documentation(line))
        index += 1
        if result[-1] != line and "///<" in result[-1]:
            while index < len(source) and (more := CONTINUED.match(source[index])):
                result[-1] += " " + escaped(more.group(1))
                index += 1
    return "\n".join(result)


def main(source, target):
    for header in sorted(Path(source).rglob("*.h")):
        name = header.relative_to(source)
        copy = Path(target, name)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(filtered(header.read_text(encoding="utf-8"), name.as_posix()), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
