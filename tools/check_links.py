#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every link of the documents leads somewhere: to a file or folder of this tree, and to a heading in it.

    tools/check_links.py [ROOT]

Prints one message per finding, as file:line; the exit code is 1 if there is any.

It reads all .md files of the tree, except in build/ and node_modules/. It looks at [text](target), [text]: target, and
href="target" and src="target". Code is not read. Links to other sites are not followed, because a check must not depend
on the network. An #anchor names a heading as GitHub writes it: lower case, "-" for spaces, without other punctuation,
and with -1, -2 if the heading occurs again. A file is found only under its exact name, also where the file system
ignores case.
"""

import re
import sys
from pathlib import Path
from urllib.parse import unquote

from check_labels import blanked, line_of

# Not the indented code of Markdown: an indented line may also belong to a list, and code has no links.
CODE = re.compile(r"^[ \t]*(```|~~~).*?^[ \t]*\1|(?P<ticks>`+)[^\n]*?(?P=ticks)", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(\s*<?(?P<inline>[^)>\s]*)>?(?:\s+\"[^\"]*\")?\s*\)|^ {0,3}\[[^\]]+\]:\s+(?P<named>\S+)|"
                  r"\b(?:href|src)=\"(?P<html>[^\"]*)\"", re.MULTILINE)
REFERENCE = re.compile(r"\[[^\]\n]+\]\[(?P<label>[^\]\n]+)\]")
DEFINITION = re.compile(r"^ {0,3}\[(?P<label>[^\]]+)\]:\s", re.MULTILINE)
HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t]*#*[ \t]*$", re.MULTILINE)
NAMED_ANCHOR = re.compile(r"<a\s+(?:id|name)=\"([^\"]+)\"")
ELSEWHERE = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:|//")
SKIPPED_FOLDERS = {"build", "node_modules", ".git"}


def anchors_of(text):
    """The anchors of a document."""
    found, counts = set(NAMED_ANCHOR.findall(text)), {}
    fences = re.compile(r"^[ \t]*(```|~~~).*?^[ \t]*\1", re.DOTALL | re.MULTILINE)
    for title in HEADING.findall(blanked(fences, text)):
        shown = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", title)  # of a link, its text
        name = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        found.add(name if name not in counts else f"{name}-{counts[name]}")
        counts[name] = counts.get(name, 0) + 1
    return found


def exists(root, path):
    """Whether the tree has a file or folder under exactly this name; `path` is relative to the root."""
    here = root
    for part in path.parts:
        if not here.is_dir() or part not in {entry.name for entry in here.iterdir()}:
            return False
        here = here / part
    return True


def resolved(document, target):
    """The path of a link's target, relative to the root, or None if it leaves the tree."""
    parts = [] if target.startswith("/") else list(document.parent.parts)
    for part in target.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return Path(*parts)


def what_is_wrong(root, document, target, texts):
    """What is wrong with a link in a document, or None. Both paths are relative to the root."""
    if ELSEWHERE.match(target):
        return None
    file, _, anchor = target.partition("#")
    path = resolved(document, unquote(file)) if file else document
    if path is None:
        return "leads out of the tree"
    if path.parts[:1] == ("build",):
        return "leads into build/, which a clone does not have"
    if not exists(root, path):
        return f"{path} does not exist"
    if anchor and path.suffix == ".md":
        if path not in texts:
            texts[path] = (root / path).read_text(encoding="utf-8")
        if unquote(anchor) not in anchors_of(texts[path]):
            return f"{path} has no heading #{anchor}"
    elif anchor and not re.fullmatch(r"L\d+(-L\d+)?", anchor):
        return f"{path} is not a document, so it has no headings"
    return None


def check_document(root, document, texts):
    """All findings in one document, as (line, message), and the number of links to this tree."""
    text = (root / document).read_text(encoding="utf-8")
    texts[document] = text
    prose = blanked(CODE, text)
    findings, count = [], 0
    for match in LINK.finditer(prose):
        target = match.group("inline") or match.group("named") or match.group("html") or ""
        count += not ELSEWHERE.match(target)
        wrong = what_is_wrong(root, document, target, texts) if target else "names nothing"
        if wrong:
            findings.append((line_of(text, match.start()), f"the link ({target}) {wrong}" if wrong.startswith(
                ("leads", "names")) else f"the link ({target}) is broken: {wrong}"))
    defined = {label.lower() for label in DEFINITION.findall(prose)}
    for match in REFERENCE.finditer(prose):
        if match.group("label").lower() not in defined:
            findings.append((line_of(text, match.start()), f"the link [{match.group('label')}] is not defined"))
    return sorted(findings), count


def documents(root):
    return sorted(file.relative_to(root) for file in root.rglob("*.md")
                  if not SKIPPED_FOLDERS & set(file.relative_to(root).parts))


def main(root):
    lines, links, texts = [], 0, {}
    files = documents(root)
    for document in files:
        findings, count = check_document(root, document, texts)
        links += count
        lines += [f"{document.as_posix()}:{line}: {message}" for line, message in findings]
    if links == 0:
        lines.append(f"{root}: no document has a link, nothing was checked")
    print("\n".join(lines) if lines else f"links: all {links} links of {len(files)} documents resolve")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent)))
