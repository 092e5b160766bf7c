#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares docs/command-line.md with the --help of every command.

    tools/command_line.py BUILD              exit code 1, and the differences, if the page is out of date
    tools/command_line.py --rewrite BUILD    writes the page

BUILD is a folder with the built programs, such as build/release. The page has the help of percolator, webindex and
percsim with all their subcommands, and of the scripts ./run, ./test, ./bench and ./setup.
"""

import difflib
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = "docs/command-line.md"
TIMEOUT_SECONDS = 60

INTRODUCTION = """\
# The command line

The `--help` of every program and script. This page is generated: `tools/command_line.py --rewrite build/release` writes
it, and a test compares it with the programs. [operating.md](operating.md) says which command of `percolator` to use
when, [webindex.md](webindex.md) explains the web index, and [testing.md](testing.md) the tests and the simulator.
"""


def programs(build):
    """Returns (title, command) of each program and script."""
    return [("percolator", [build / "apps" / "percolator" / "percolator"]),
            ("webindex", [build / "apps" / "webindex" / "webindex"]),
            ("percsim", [build / "sim" / "percsim"]),
            ("./run", [ROOT / "run"]),
            # Not ./test itself, which would install missing packages first.
            ("./test", [sys.executable, "-B", ROOT / "tools" / "run_tests.py"]),
            ("./bench", [ROOT / "bench"]),
            ("./setup", [ROOT / "setup"])]


def help_of(command):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PERCOLATOR_")}
    done = subprocess.run([*command, "--help"], capture_output=True, text=True, timeout=TIMEOUT_SECONDS, cwd=ROOT,
                          env=environment, check=True)
    return "\n".join(line.rstrip() for line in done.stdout.strip().split("\n"))


def subcommands(text):
    """Returns the names in the section "Subcommands:" of a help text."""
    section = re.search(r"^Subcommands:\n((?:  .*\n)*)", text + "\n", re.MULTILINE)
    return re.findall(r"^  (\S+)", section.group(1), re.MULTILINE) if section else []


def sections(title, command, level=2):
    """Yields the sections of the page about a command and its subcommands."""
    text = help_of(command)
    yield f"\n{'#' * level} {title}\n\n```text\n{text}\n```\n"
    for name in subcommands(text):
        yield from sections(f"{title} {name}", [*command, name], level=3)


def page_of(build):
    return INTRODUCTION + "".join(part for title, command in programs(build) for part in sections(title, command))


def main(arguments):
    rewrite = "--rewrite" in arguments
    folders = [argument for argument in arguments if not argument.startswith("-")]
    if len(folders) != 1 or "-h" in arguments or "--help" in arguments:
        print(__doc__.strip())
        return 0 if "-h" in arguments or "--help" in arguments else 2
    wanted = page_of(Path(folders[0]).resolve())
    file = ROOT / PAGE
    if rewrite:
        file.write_text(wanted, encoding="utf-8")
        return 0
    written = file.read_text(encoding="utf-8") if file.exists() else ""
    if written == wanted:
        print(f"command line: {PAGE} is up to date")
        return 0
    sys.stdout.writelines(difflib.unified_diff(written.splitlines(True), wanted.splitlines(True), PAGE, "--help"))
    print(f"command line: {PAGE} is out of date: run tools/command_line.py --rewrite {folders[0]}")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
