#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every label that is cited, such as T5 or W3, is defined in docs/invariants.md, and only there.

    tools/check_labels.py [ROOT]

Prints one message per finding, as file:line; exit code 1 if there is any.

A definition is a line of docs/invariants.md that begins with "- **T5** ". A citation is a label

    - in a comment, but not in "quotes" or `backquotes` there: comments quote examples and code;
    - in a document, but not in code;
    - that is a whole string literal, or begins one and is followed by a colon, as in findings of checkers;
    - in the name of a test, between underscores.

Other code is not read, so template parameters, options of compilers and bytes in hexadecimal are not citations.
"""

import re
import sys
from pathlib import Path

from check_includes import NOT_CODE

DEFINITIONS = "docs/invariants.md"
FOLDERS = ["src", "include", "sim", "tests", "benchmarks", "docs"]

# The letters of labels. Another letter with a number is not a label: P4 is an anomaly, M0 a command in a drawing.
LETTERS = "TGNOCKWLH"
LABEL = rf"[{LETTERS}]\d{{1,2}}[abc]?"
# As a word of a text. Not in C++20, -O1, G2-item, H264 or W3C; but in T1-T6 and T1/T6.
CITATION = re.compile(rf"(?<![\w+./-]){LABEL}(?![\w+]|-[a-z])|(?<=\d[-/]){LABEL}(?!\w)")
DEFINITION = re.compile(rf"- \*\*({LABEL})\*\* ")
BOLD = re.compile(rf"\*\*({LABEL})\*\*")
# Words that look like labels -> what they are.
NOT_LABELS = {"T0": "the first transaction of a history (sim/history/history.h)"}

QUOTED = re.compile(r'"[^"\n]*"|`[^`\n]*`')
CODE_BLOCK = re.compile(r"^```.*?^```|(?<=\n\n)(?: {4}[^\n]*\n)+|`[^`\n]*`", re.DOTALL | re.MULTILINE)
HASH_COMMENT = re.compile(r"(?:^|(?<=\s))#[^\n]*", re.MULTILINE)
LITERAL = re.compile(rf'"({LABEL})(?:"$|: )')
TEST_NAME = re.compile(r"^TEST(?:_[FP])?\(\w+,\s*(\w+)\)", re.MULTILINE)


def blanked(pattern, text):
    """The text without what matches; every line keeps its number."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def words(text, start):
    """The citations in a text that begins at the position `start`, as (position, label)."""
    return [(start + match.start(), match.group()) for match in CITATION.finditer(text)]


def citations_in_code(text):
    found = []
    for match in NOT_CODE.finditer(text):
        piece = match.group()
        literal = LITERAL.match(piece)
        if piece.startswith(("//", "/*")):
            found += words(blanked(QUOTED, piece), match.start())
        elif literal:
            found.append((match.start(), literal.group(1)))
    for match in TEST_NAME.finditer(text):
        found += [(match.start(), part) for part in match.group(1).split("_") if re.fullmatch(LABEL, part)]
    return found


def citations_in_script(text):
    return [found for match in HASH_COMMENT.finditer(text)
            for found in words(blanked(QUOTED, match.group()), match.start())]


def citations_in_document(text):
    return words(blanked(CODE_BLOCK, text), 0)


READERS = {".h": citations_in_code, ".cc": citations_in_code, ".proto": citations_in_code,
           ".py": citations_in_script, ".txt": citations_in_script, ".cmake": citations_in_script,
           ".md": citations_in_document}


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def read_definitions(text):
    """The labels that docs/invariants.md defines, and findings where it defines one twice, as (line, message)."""
    lines, findings = {}, []
    for number, line in enumerate(text.split("\n"), 1):
        match = DEFINITION.match(line)
        if match and lines.setdefault(match.group(1), number) != number:
            findings.append((number, f"defines {match.group(1)} again; line {lines[match.group(1)]} did"))
    return set(lines), findings


def check_text(path, text, defined):
    """All findings in one file, as (line, message)."""
    findings = []
    for position, label in READERS[Path(path).suffix](text):
        if label not in defined and label not in NOT_LABELS:
            findings.append((line_of(text, position), f"cites {label}, which {DEFINITIONS} does not define; if it is "
                             "no label, write it in quotes, or add it to NOT_LABELS of tools/check_labels.py"))
    if path.endswith(".md") and path != DEFINITIONS:
        for match in BOLD.finditer(text):
            findings.append((line_of(text, match.start()), f"sets {match.group(1)} in bold, as a definition is; "
                             f"only {DEFINITIONS} defines labels"))
    return sorted(findings)


def source_files(root):
    return sorted(file for folder in FOLDERS for file in (root / folder).rglob("*")
                  if file.suffix in READERS and "node_modules" not in file.parts)


def check_tree(root):
    """All findings in a tree, as lines of text, and the number of labels."""
    definitions = root / DEFINITIONS
    defined, twice = read_definitions(definitions.read_text(encoding="utf-8") if definitions.exists() else "")
    lines = [f"{DEFINITIONS}:{line}: {message}" for line, message in twice]
    for file in source_files(root):
        path = file.relative_to(root).as_posix()
        for line, message in check_text(path, file.read_text(encoding="utf-8", errors="replace"), defined):
            lines.append(f"{path}:{line}: {message}")
    return lines, len(defined)


def main(root):
    lines, count = check_tree(root)
    if count == 0:
        lines.append(f"{root}: {DEFINITIONS} defines no labels, nothing was checked")
    print("\n".join(lines) if lines else f"labels: every citation of the {count} labels has its definition")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent)))
