#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes copies of the sources that contain all mutants: deliberate bugs, each behind a switch (docs/testing.md).

    mutate.py ROOT FOLDER        prints the sources that the mutants in ROOT/FOLDER edit, one per line
    mutate.py ROOT FOLDER OUT    writes OUT/SOURCE for each of them, and OUT/list.cc, the list of mutants (sim/mutants.h)

ROOT/FOLDER/NAME.mutant is a mutant:

    a read does not look at the safe point when it is done

    src/txn/row_view.cc
       if (!safe_point.ok()) return safe_point.status();
    -  if (ts >= *safe_point) return absl::OkStatus();
    +  if (ts >= *safe_point || MUTANT) return absl::OkStatus();

The first line describes the bug. Then follows the path of a source, with its edits: patches without line numbers,
whose lines begin with ' ' (stays), '-' (is removed) or '+' (is added). An empty line separates edits. MUTANT is true
while the mutant is on. While no mutant is on, the copies must behave as the sources.

How edits combine: the lines of an edit that stay or are removed must occur exactly once in the source, as it is without
any mutant. So the order of mutants does not matter. No two edits may remove the same line, or add lines between lines
that another one removes. Lines that several mutants add at the same place are in the order of the mutants' names. So an
added `if (...)` must be followed by a line that the same edit adds.
"""

import re
import sys
from pathlib import Path
from typing import NamedTuple

NAME = re.compile(r"[A-Z][A-Za-z0-9]*")
SWITCH = re.compile(r"\bMUTANT\b")


class Edit(NamedTuple):
    """Replaces lines [begin, end) of a source, or inserts before `begin` if there are none."""
    begin: int
    end: int
    mutant: str
    added: list  # of (line number in the .mutant file, text)


class Mutant(NamedTuple):
    name: str
    what: str
    path: Path
    hunks: list  # of (source, [(line number, mark, text)])


class Malformed(Exception):
    """A .mutant file is wrong, or does not fit the sources."""


def parse(path):
    """Reads one .mutant file."""
    name = path.stem
    if not NAME.fullmatch(name):
        raise Malformed(f"{path}: the name of a mutant is made of words like NoWriteCheck")
    lines = path.read_text(encoding="utf-8").splitlines()
    if not lines or not lines[0].strip():
        raise Malformed(f"{path}:1: says what is wrong when the mutant is on")
    hunks = []
    source = None
    hunk = None
    for number, line in enumerate(lines[1:], start=2):
        if not line:
            hunk = None
        elif line[0] not in " +-":
            source, hunk = line, None
            if not source.endswith(".cc"):
                raise Malformed(f"{path}:{number}: {source}: only .cc files can be edited")
        elif source is None:
            raise Malformed(f"{path}:{number}: an edit begins with the path of the source")
        else:
            if hunk is None:
                hunk = []
                hunks.append((source, hunk))
            hunk.append((number, line[0], line[1:]))
    if not any(SWITCH.search(text) for _, hunk in hunks for _, mark, text in hunk if mark == "+"):
        raise Malformed(f"{path}: no line that is added asks for MUTANT, so the mutant would always be on")
    return Mutant(name, lines[0], path, hunks)


def place(mutant, source, hunk, lines):
    """The edits of a hunk in the lines of its source."""
    at = f"{mutant.path}:{hunk[0][0]}"
    old = [text for _, mark, text in hunk if mark != "+"]
    if not old:
        raise Malformed(f"{at}: an edit needs a line of {source} to tell its place")
    found = [i for i in range(len(lines) - len(old) + 1) if lines[i:i + len(old)] == old]
    if len(found) != 1:
        times = f"{len(found)} times" if found else "nowhere"
        raise Malformed(f"{at}: must be in {source} exactly once and is there {times}:\n" + "\n".join(old))
    edits = []
    position = found[0]
    edit = None
    for number, mark, text in hunk:
        if mark == " ":
            edit = None
            position += 1
            continue
        if edit is None:
            edit = Edit(position, position, mutant.name, [])
            edits.append(edit)
        if mark == "+":
            edit.added.append((number, text))
        else:
            position += 1
            edit = edits[-1] = edit._replace(end=position)
    if not edits:
        raise Malformed(f"{at}: changes nothing")
    for edit in edits:
        if edit.added and edit.added[-1][1].endswith((")", "else")):
            raise Malformed(f"{mutant.path}:{edit.added[-1][0]}: the line that this guards must be part of the edit")
    return edits


def check_overlaps(source, edits):
    """Refuses edits that overlap. They are in the order of their places."""
    for one, other in zip(edits, edits[1:]):
        if other.begin < one.end:
            raise Malformed(f"{one.mutant} and {other.mutant} both change line {other.begin + 1} of {source}")


def mutated(root, folder, source, lines, edits):
    """The text of the copy. Errors of the compiler name the source or the .mutant file of a line."""
    names = sorted({edit.mutant for edit in edits})
    out = [f"namespace percolator::mutants {{ extern bool {', '.join(names)}; }}", f'#line 1 "{root / source}"']
    position = 0
    for edit in edits:
        out += lines[position:edit.begin]
        for number, text in edit.added:
            out.append(f'#line {number} "{folder / edit.mutant}.mutant"')
            out.append(SWITCH.sub(f"::percolator::mutants::{edit.mutant}", text))
        position = edit.end
        out.append(f'#line {position + 1} "{root / source}"')
    return "\n".join(out + lines[position:]) + "\n"


def list_of(mutants):
    """The text of list.cc."""
    def quoted(text):
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    out = ['#include "sim/mutants.h"', "", "namespace percolator::mutants {"]
    out += [f"bool {m.name} = false;" for m in mutants]
    out += ["}", "", "namespace percolator::sim {", "std::span<const Mutant> AllMutants() {",
            "  static constexpr Mutant kAll[] = {"]
    out += [f"      {{{quoted(m.name)}, {quoted(m.what)}, &mutants::{m.name}}}," for m in mutants]
    return "\n".join(out + ["  };", "  return kAll;", "}", "}", ""])


def write(path, text):
    """Writes a file, unless it has the text already, so that it is not compiled again."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def texts_of(root, folder):
    """The texts of all files to write, by path."""
    mutants = sorted((parse(path) for path in folder.glob("*.mutant")), key=lambda m: m.name)
    lines = {}
    edits = {}
    for mutant in mutants:
        for source, hunk in mutant.hunks:
            if source not in lines:
                if not (root / source).is_file():
                    raise Malformed(f"{mutant.path}: there is no {source}")
                lines[source] = (root / source).read_text(encoding="utf-8").splitlines()
            edits.setdefault(source, []).extend(place(mutant, source, hunk, lines[source]))
    texts = {}
    for source in sorted(edits):
        in_order = sorted(edits[source], key=lambda edit: edit[:3])
        check_overlaps(source, in_order)
        texts[source] = mutated(root, folder, source, lines[source], in_order)
    return texts | {"list.cc": list_of(mutants)}


def main(arguments):
    root = Path(arguments[0]).resolve()
    try:
        texts = texts_of(root, root / arguments[1])
    except Malformed as error:
        print(f"mutate.py: {error}", file=sys.stderr)
        return 1
    for path, text in texts.items():
        if len(arguments) > 2:
            write(Path(arguments[2], path), text)
        elif path != "list.cc":
            print(path)
    return 0


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
