#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every source says under which license it is, in a line that tools read (https://spdx.dev).

    tools/check_license.py [ROOT]

Prints one message per finding; exit code 1 if there is any. The line is the first of the file, or the second after "#!" or
"<!doctype". Sources are C++, protocol buffers, Python, shell scripts, CMake, JavaScript, CSS, HTML and Go. Documents, mutants,
histories and other data do not have the line.
"""

import sys
from pathlib import Path

LINE = "SPDX-License-Identifier: Apache-2.0"
# The beginning of a comment -> the names of the files that have such comments. A script without a suffix begins with "#!".
COMMENTS = {
    "//": (".h", ".cc", ".proto", ".js", ".go"),
    "#": (".py", ".sh", ".cmake", ".cmake.in", "CMakeLists.txt"),
    "/*": (".css",),
    "<!--": (".html",),
}
ENDS = {"/*": " */", "<!--": " -->"}
# Folders that are not read: at any depth, and in the root.
OTHERS = {".git", "__pycache__", "corpus", "node_modules"}
BUILD = "build"


def line_of(comment):
    """The line of the license as a comment of this kind."""
    return f"{comment} {LINE}{ENDS.get(comment, '')}"


def comment_of(name, text):
    """How a comment begins in a file, or None if the file is not a source."""
    for comment, names in COMMENTS.items():
        if name.endswith(names):
            return comment
    return "#" if "." not in name.rsplit("/", 1)[-1] and text.startswith("#!") else None


def sources(root):
    """The names of the sources, relative to the root."""
    names = []
    for file in sorted(root.rglob("*")):
        name = file.relative_to(root)
        if name.parts[0] == BUILD or OTHERS & set(name.parts) or file.is_symlink() or not file.is_file():
            continue
        text = "" if file.suffix else file.read_bytes()[:2].decode("latin-1")
        if comment_of(name.as_posix(), text):
            names.append(name.as_posix())
    return names


def finding(name, text):
    """What is wrong with a source, or None."""
    lines = text.split("\n", 2)
    line = line_of(comment_of(name, text))
    may_be_second = lines[0].lower().startswith(("#!", "<!doctype"))
    if line in (lines[:2] if may_be_second else lines[:1]):
        return None
    return f"{name}:1: has no line with its license; line {2 if may_be_second else 1} must be: {line}"


def main(root):
    names = sources(root)
    findings = [finding(name, (root / name).read_text(encoding="utf-8", errors="replace")) for name in names]
    findings = [text for text in findings if text] or ([] if names else [f"{root}: there are no sources"])
    print("\n".join(findings) if findings else f"license: all {len(names)} sources name it")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent)))
