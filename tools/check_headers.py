#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that each public header compiles alone, and twice, with nothing on its path but what a user has.

    tools/check_headers.py [ROOT]

Prints what the compiler says; exit code 1 if there is anything. The compiler is $CXX, or c++.
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FLAGS = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wshadow", "-Wnon-virtual-dtor",
         "-Woverloaded-virtual", "-Wno-missing-field-initializers"]


def check_header(root, header):
    """What the compiler says about a header, a path below include/; empty if it compiles."""
    run = subprocess.run([os.environ.get("CXX", "c++"), *FLAGS, "-I", root / "include", "-x", "c++", "-"],
                         input=f'#include "{header}"\n#include "{header}"\n', capture_output=True, text=True, check=False)
    return "" if run.returncode == 0 else f"include/{header}:1: does not compile alone:\n{run.stderr}"


def main(root):
    headers = sorted(file.relative_to(root / "include").as_posix() for file in (root / "include").rglob("*.h"))
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        findings = [text for text in threads.map(lambda header: check_header(root, header), headers) if text]
    if not headers:
        findings = [f"{root}: no public headers there, nothing was checked"]
    print("\n".join(findings) if findings else f"headers: each of {len(headers)} compiles alone")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent)))
