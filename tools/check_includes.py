#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks which folders include which, that the build has the same dependencies, that waiting, time and chance come only through
their seams, that names are unique, and that public headers are narrow.

    tools/check_includes.py [ROOT]

Prints one message per finding, as file:line, with the reason and what is allowed; exit code 1 if there is any.
The tables below are the rules. Changing one is a design decision: say why in the commit.
"""

import re
import sys
from pathlib import Path

ANYTHING = ["*"]
API = "include/percolator"
SPI = "include/percolator/spi"

# Folder -> the folders whose headers it includes besides its own. It may include no others, and must include each of these. A
# folder that is not named here belongs to the nearest one above it. The order is that of the dependencies and of the build
# (CMakeLists.txt): each folder uses only folders above it.
EDGES = {
    "include/percolator": [],
    "include/percolator/spi": [API],
    "src/base": [API, SPI],
    "src/store": [API, SPI, "src/base"],
    "src/store/memory": [API, SPI, "src/store"],
    "src/store/rocks": [API, SPI, "src/base", "src/store"],
    "src/oracle": [API, SPI, "src/base"],
    "src/coord": [API, SPI, "src/base"],
    "src/txn": [API, SPI, "src/base", "src/coord"],
    "src/observe": [API, SPI, "src/base", "src/txn"],
    "src/inspect": [API, SPI, "src/base", "src/txn", "src/observe"],
    "src/recipes": [API, SPI, "src/base", "src/txn", "src/observe"],
    "src/wire": [API, SPI, "src/base"],
    "src/etcd": [API, SPI, "src/base", "src/wire"],
    "src/store/remote": [API, SPI, "src/base", "src/store", "src/wire"],
    "src/store/bigtable": [API, SPI, "src/base", "src/store", "src/wire"],
    "src/oracle/remote": [API, SPI, "src/base", "src/wire"],
    "src/oracle/etcd": [API, SPI, "src/base", "src/oracle", "src/etcd"],
    "src/coord/remote": [API, SPI, "src/base", "src/coord", "src/wire"],
    "src/coord/etcd": [API, SPI, "src/base", "src/coord", "src/etcd"],
    "src/cluster": [API, SPI, "src/base", "src/store", "src/oracle", "src/coord", "src/txn", "src/observe", "src/wire",
                    "src/store/remote", "src/store/bigtable", "src/oracle/remote", "src/coord/remote", "src/coord/etcd"],
    "src/server": [API, SPI, "src/base", "src/store", "src/coord", "src/wire", "src/oracle/etcd", "src/cluster"],
    "apps": [API],
    "examples": [API, SPI],
    "sim": ANYTHING,
    "tests": ANYTHING,
    "benchmarks": ANYTHING,
}

# Folder -> the modules that it links but whose headers it does not include: percolator/spi/store.h declares what they define.
LINKED_ONLY = {"src/txn": ["src/store"], "src/cluster": ["src/store/memory", "src/store/rocks"]}

# Library -> (the includes that belong to it, the folders that may use it, why). Libraries not named here are free,
# except in the public headers, which may use only Abseil and the standard library.
LIBRARIES = {
    "RocksDB": (r"rocksdb/", ["src/store/rocks", "tests", "benchmarks"],
                "one folder knows RocksDB, so that the store behind the Store interface can be another"),
    "gRPC and protobuf": (r"grpc|google/protobuf/|.*\.pb\.h$",
                          ["src/wire", "src/etcd", "src/store/remote", "src/store/bigtable", "src/oracle/remote",
                           "src/coord/remote", "src/server", "apps", "tests", "benchmarks"],
                          "few folders know the wire, so that the rest of the library runs without a network"),
    "GoogleTest": (r"gtest/|gmock/", ["tests"], "test code does not belong into the library"),
    "CLI11": (r"CLI/", ["apps", "examples", "benchmarks", "sim", "tests"], "a library does not read a command line"),
    "Abseil's Mutex": (r"absl/synchronization/", [],
                       "ThreadSanitizer does not see Debian's prebuilt one: use percolator/spi/mutex.h"),
}

# Words -> (where they are allowed, why they are not elsewhere). Unit tests beside the code count as tests.
SEAM = ["src/base", "tests", "benchmarks", "examples", "apps"]
BANNED = {
    r"absl::(Mutex|CondVar|Notification)\b":
        ([], "ThreadSanitizer does not see Debian's prebuilt one: use percolator/spi/mutex.h"),
    r"\bthis_thread::sleep_(for|until)\b|\babsl::SleepFor\b|\b(usleep|nanosleep)\s*\(":
        (SEAM, "a wait must go through the waiting seam of src/base, or the simulator cannot control it"),
    r"\bthread_local\b":
        (SEAM, "the code also runs on fibers and in the simulator, where many tasks share one thread"),
    r"\brandom_device\b":
        (SEAM, "chance must come from the Random seam of src/base, or a seed does not replay"),
    r"\b(system|steady|high_resolution)_clock::now\b|\babsl::Now\s*\(":
        (SEAM, "time must come from the Clock seam of src/base, or the simulator cannot control it"),
}

# Folder -> (a word that no file in it contains, comments included, why). Case does not count.
STRANGERS = {folder: ("bigtable", "transactions do not know who else keeps tables in the store: src/txn/tables.h leaves those out")
             for folder in ("src/txn", "src/observe", "src/inspect", "src/recipes")}

# The header that every user includes stays small: it and the headers of ours that it includes have fewer lines of code than this.
SMALL_HEADER = ("include/percolator/cluster.h", 600)

# Columns of a public header, comments included. include/.clang-format says the same of code.
HEADER_COLUMNS = 100

SOURCE_FOLDERS = ["include", "src", "apps", "examples", "sim", "tests", "benchmarks"]
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)
# Comments and literals, and numbers because of their separators: 100'000 is not a character literal.
NOT_CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|\bR"(?P<tag>[^()\\\s]*)\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|\b\d[\w']*|'(?:\\.|[^'\\\n])+'""",
    re.DOTALL)


def module_of(path):
    """The folder of EDGES that a path belongs to, or None."""
    inside = [folder for folder in EDGES if path.startswith(folder + "/")]
    return max(inside, key=len, default=None)


def target_of(name):
    """The path in the tree that an include means; None for an include of a library."""
    if name.startswith("percolator/"):
        return "include/" + name
    return name if name.split("/")[0] in SOURCE_FOLDERS and "/" in name else None


def without(text, keep_strings):
    """The text with comments, and literals unless they are kept, blanked out; every line keeps its number."""
    def blank(match):
        found = match.group()
        if found[0].isdigit() or (keep_strings and found[0] in "\"'R"):
            return found
        return re.sub(r"[^\n]", " ", found)
    return NOT_CODE.sub(blank, text)


def is_test(path):
    return path.endswith("_test.cc")


def check_own_include(path, module, name):
    """What is wrong with including `name`, a header of this project, from `path`."""
    target = module_of(target_of(name))
    allowed = EDGES[module]
    if target is None:
        return f"includes {name}, which is in no known folder; the table in tools/check_includes.py names them"
    if module in ("apps", "examples") and target == module:
        folder = "/".join(path.split("/")[:2]) if path.count("/") > 1 else module
        if not name.startswith(folder + "/"):
            return f"includes {name}: each of {module}/ stands alone; allowed: {API} and {folder}"
        return None
    if allowed == ANYTHING or target == module or target in allowed or (is_test(path) and target == "tests"):
        return None
    return (f"{module} -> {target} ({name}): dependencies point one way, and {module} does not stand above {target}; "
            f"allowed from {module}: {', '.join(allowed) or 'nothing but itself'}")


def check_library_include(path, module, mark, name):
    """What is wrong with including `name`, a header from outside, from `path`."""
    for library, (pattern, allowed, reason) in LIBRARIES.items():
        if re.match(pattern, name) and module not in allowed and not (is_test(path) and "tests" in allowed):
            return f"{module} -> {library} ({name}): {reason}; allowed in: {', '.join(allowed) or 'no folder'}"
    if module in (API, SPI) and "/" in name and not name.startswith("absl/"):
        return f"{module} -> {name}: a public header asks nothing of its user; allowed: Abseil, the standard library"
    if mark == '"' and "/" not in name:
        return f'includes "{name}": write it from the root of the tree, so that it is clear which one is meant'
    return None


def check_text(path, text):
    """All findings in one file, as (line, message)."""
    module = module_of(path)
    if module is None:
        return [(1, f"is in no known folder; the table in tools/check_includes.py names them: {', '.join(EDGES)}")]
    findings = []
    with_strings = without(text, keep_strings=True)
    for match in INCLUDE.finditer(with_strings):
        mark, name = match.groups()
        if target_of(name):
            message = check_own_include(path, module, name)
        else:
            message = check_library_include(path, module, mark, name)
        if message:
            findings.append((with_strings.count("\n", 0, match.start(1)) + 1, message))
    code = without(text, keep_strings=False)
    for pattern, (allowed, reason) in BANNED.items():
        if module in allowed or (is_test(path) and "tests" in allowed):
            continue
        for match in re.finditer(pattern, code):
            line = code.count("\n", 0, match.start()) + 1
            where = ", ".join(allowed) or "no folder"
            findings.append((line, f"uses {match.group().rstrip('( ')}: {reason}; allowed in: {where}"))
    if module in STRANGERS:
        word, reason = STRANGERS[module]
        findings += [(number, f"says {word}: {reason}") for number, line in enumerate(text.split("\n"), 1)
                     if word in line.lower()]
    if module in (API, SPI):
        findings += [(number, f"has {len(line)} columns; the limit for a public header is {HEADER_COLUMNS}")
                     for number, line in enumerate(text.split("\n"), 1) if len(line) > HEADER_COLUMNS]
    return sorted(findings)


def source_files(root):
    return sorted(file for folder in SOURCE_FOLDERS for file in (root / folder).rglob("*")
                  if file.suffix in (".h", ".cc"))


NAMESPACE = re.compile(r"(?:inline )?namespace ([\w:]*) ?\{")
TYPE = re.compile(r"(?:class|struct|enum class)(?: \[\[\w+\]\])?(?: ABSL_\w+)* (\w+)(?: final)?(?: :[^:].*)?\s*\{")


def types_of(text):
    """The types that a file defines at namespace level, as (line, full name); not those in an unnamed namespace."""
    blocks, found = [], []  # the names of the namespaces that are open; None: another block
    for number, line in enumerate(without(text, keep_strings=False).split("\n"), 1):
        space = NAMESPACE.match(line)
        if (match := TYPE.match(line)) and "" not in blocks and None not in blocks:
            found.append((number, "::".join([*blocks, match.group(1)])))
        for brace in re.findall("[{}]", line):
            if brace == "{":
                blocks.append(space and space.group(1))
                space = None
            elif blocks:
                blocks.pop()
    return found


def check_names(texts):
    """Findings where a type of the library is defined a second time: in the library, or in a program that links it. The
    linker would use one of them for both. Programs are not compared with each other, because no two are linked together."""
    def is_library(path):
        return path.startswith(("src/", "include/")) and not is_test(path)

    first, lines = {}, []
    for path, text in sorted(texts, key=lambda file: not is_library(file[0])):
        for number, name in types_of(text):
            if is_library(path):
                first.setdefault(name, path)
            if first.get(name, path) != path:
                lines.append(f"{path}:{number}: defines {name}, as {first[name]} does: two types of one name in one "
                             "program break the one-definition rule; rename one")
    return lines


def included_by(texts):
    """Folder -> the other folders whose headers its files include; tests need not include all of them."""
    used = {folder: set() for folder in EDGES}
    for path, text in texts:
        if is_test(path) or module_of(path) is None:
            continue
        names = (name for _, name in INCLUDE.findall(without(text, keep_strings=True)) if target_of(name))
        used[module_of(path)] |= {module_of(target_of(name)) for name in names} - {module_of(path)}
    return used


def check_unused_edges(root, used):
    """Findings where EDGES has an edge that no file uses. A folder without a CMakeLists.txt is not a whole one."""
    return [f"{folder}/CMakeLists.txt:1: no file of {folder} includes a header of {edge}: take the edge out of "
            "tools/check_includes.py"
            for folder, edges in EDGES.items() if edges != ANYTHING and (root / folder / "CMakeLists.txt").exists()
            for edge in edges if edge not in used[folder]]


MODULE = re.compile(r"percolator_module\((\w+)(.*)", re.DOTALL)


def check_build(root, used):
    """Findings where the build differs: in the modules that a module is linked with, or in their order."""
    builds = {folder: MODULE.search(file.read_text(encoding="utf-8")) for folder in EDGES
              if folder.startswith("src/") and (file := root / folder / "CMakeLists.txt").exists()}
    folders = {build.group(1): folder for folder, build in builds.items()}
    lines = []
    for folder, build in builds.items():
        named = {folders[name] for name in re.findall(r"\bpercolator_(\w+)", build.group(2)) if name in folders} - {folder}
        needed = {module for module in used[folder] if module in builds} | set(LINKED_ONLY.get(folder, []))
        lines += [f"{folder}/CMakeLists.txt:1: DEPS names {module}, which no file of {folder} uses"
                  for module in sorted(named - needed)]
        lines += [f"{folder}/CMakeLists.txt:1: DEPS does not name {module}, though a file of {folder} uses it"
                  for module in sorted(needed - named)]
    if (root / "CMakeLists.txt").exists():
        added = re.findall(r"add_subdirectory\((src/[\w/]+)\)", (root / "CMakeLists.txt").read_text(encoding="utf-8"))
        if added != [folder for folder in EDGES if folder.startswith("src/")]:
            lines.append("CMakeLists.txt:1: the modules are not in the order of EDGES in tools/check_includes.py")
    return lines


def own_lines(root, header, seen=None):
    """How many lines of code a header and all headers of ours that it includes have."""
    seen = set() if seen is None else seen
    if header in seen or not (root / header).exists():
        return 0
    seen.add(header)
    text = without((root / header).read_text(encoding="utf-8"), keep_strings=True)
    lines = sum(1 for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#"))
    return lines + sum(own_lines(root, target_of(name), seen) for _, name in INCLUDE.findall(text) if target_of(name))


def check_small_header(root):
    header, limit = SMALL_HEADER
    lines = own_lines(root, header)
    if lines < limit:
        return []
    return [f"{header}:1: brings in {lines} lines of our own headers; the limit is {limit}, because every user compiles them"]


def check_tree(root):
    """All findings in a tree, as lines of text, and the number of files looked at."""
    texts = [(file.relative_to(root).as_posix(), file.read_text(encoding="utf-8", errors="replace"))
             for file in source_files(root)]
    used = included_by(texts)
    lines = check_small_header(root) + check_names(texts) + check_unused_edges(root, used) + check_build(root, used)
    for path, text in texts:
        lines += [f"{path}:{line}: {message}" for line, message in check_text(path, text)]
    return lines, len(texts)


def main(root):
    lines, count = check_tree(root)
    if count == 0:
        lines = [f"{root}: no sources there, nothing was checked"]
    print("\n".join(lines) if lines else f"includes: {count} files follow the rules")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent)))
