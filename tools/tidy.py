#!/usr/bin/env python3
"""clang-tidy, and with it clang's check that locks are held, over all sources that a build folder compiles.

    tools/tidy.py BUILD_FOLDER [PART_OF_A_PATH...]

A file that was clean is not looked at again until it, a header it includes, its flags or .clang-tidy change:
build/tidy-cache remembers by a hash of all that.
"""

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from check_includes import SOURCE_FOLDERS

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / "build" / "tidy-cache"
EXTRA_FLAGS = ["-Wthread-safety", "-Wno-unknown-warning-option"]
FILE_TIMEOUT_SECONDS = 300


def sources(build, parts=()):
    """The compile commands of our own sources: {path from the root: (folder, arguments without the compiler)}."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = os.path.relpath(os.path.join(entry["directory"], entry["file"]), ROOT)
        if path.split("/")[0] in SOURCE_FOLDERS and (not parts or any(part in path for part in parts)):
            arguments = shlex.split(entry["command"])
            compiler = 1 if os.path.basename(arguments[0]) == "ccache" else 0
            # Sources of the mutants are compiled twice: first as they are.
            found.setdefault(path, (entry["directory"], arguments[compiler + 1:]))
    return found


def fingerprint(folder, arguments, common):
    """A hash of everything that decides what clang-tidy says; None if the file does not even preprocess."""
    # Comments stay, because of NOLINT.
    output = arguments.index("-o")
    command = ["clang++", *arguments[:output], *arguments[output + 2:], "-w", "-E", "-C"]
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=FILE_TIMEOUT_SECONDS)
    if done.returncode != 0:
        return None
    return hashlib.sha256(b"\0".join([common, " ".join(arguments).encode(), done.stdout])).hexdigest()


def check(build, path, folder, arguments, common):
    """What clang-tidy finds in one file; an empty text if it is clean."""
    key = fingerprint(folder, arguments, common)
    if key and (CACHE / key).exists():
        return ""
    command = ["clang-tidy", "-p", str(build), "--quiet", *[f"--extra-arg={flag}" for flag in EXTRA_FLAGS], path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=FILE_TIMEOUT_SECONDS)
    if done.returncode == 0:
        if key:
            (CACHE / key).touch()
        return ""
    return re.sub(r"^\d+ warnings? generated\.\n", "", done.stdout + done.stderr, flags=re.MULTILINE)


def tidy(build, jobs, parts=()):
    """Checks all sources and prints what is found; returns the paths that are clean and those that are not."""
    CACHE.mkdir(parents=True, exist_ok=True)
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout
    common = b"\0".join([version, (ROOT / ".clang-tidy").read_bytes(), " ".join(EXTRA_FLAGS).encode()])
    clean, dirty = [], []

    def check_one(item):
        path, (folder, arguments) = item
        try:
            return path, check(build, path, folder, arguments, common)
        except subprocess.TimeoutExpired as error:
            return path, f"{path}: {error}"

    with ThreadPoolExecutor(jobs) as pool:
        for path, findings in pool.map(check_one, sorted(sources(build, parts).items())):
            (dirty if findings else clean).append(path)
            if findings:
                print(findings.strip(), flush=True)
    return clean, dirty


def main():
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    clean, dirty = tidy(Path(sys.argv[1]).resolve(), os.cpu_count(), sys.argv[2:])
    print(f"tidy: {len(clean)} files clean, {len(dirty)} not")
    return 1 if dirty or not clean else 0


if __name__ == "__main__":
    sys.exit(main())
