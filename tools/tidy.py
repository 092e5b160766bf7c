#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy, and with it clang's check that locks are held, over all sources that a build folder compiles.

    tools/tidy.py BUILD_FOLDER [PATH...]

A file that was clean is checked again only after it, a header that it includes, its flags or .clang-tidy have changed.
build/tidy-cache has a hash of all these for each clean file.

Most of the time goes into the headers that every file includes. So several files are checked together, as one source
that includes them all. If that has a finding, perhaps only because two files use a name for different things, the files
are checked in halves, down to single files. The printed findings are always those of a single file.
"""

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path

from check_includes import SOURCE_FOLDERS

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / "build" / "tidy-cache"
EXTRA_FLAGS = ["-Wthread-safety", "-Wno-unknown-warning-option"]
FILE_TIMEOUT_SECONDS = 300
FILES_TOGETHER = 8
PROGRAM = re.compile(r"^int main\(", re.MULTILINE)
UNITY = re.compile(r"/Unity/unity_\d+_cxx\.cxx$")


def sources(build, parts=()):
    """The compile commands of our own sources: {path from the root: (folder, flags)}."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        for path in compiled_by(entry):
            if path.split("/")[0] in SOURCE_FOLDERS and (not parts or path.startswith(tuple(parts))):
                found.setdefault(path, (entry["directory"], flags_of(shlex.split(entry["command"]))))
    return found


def compiled_by(entry):
    """The sources of a compile command: paths from the root. CMake writes files that include several of them."""
    file = Path(entry["directory"], entry["file"])
    together = re.findall(r'^#include "(.*)"$', file.read_text(), re.MULTILINE) if UNITY.search(str(file)) else [file]
    return [os.path.relpath(path, ROOT) for path in together]


def flags_of(arguments):
    """The flags of a compile command, without those for precompiled headers, which are GCC's."""
    flags = arguments[1 if os.path.basename(arguments[0]) != "ccache" else 2:arguments.index("-o")]
    for at in reversed([index for index, flag in enumerate(flags) if flag == "-include"]):
        del flags[at:at + 2]
    return [flag for flag in flags if flag not in ("-fpch-preprocess", "-Winvalid-pch")]


def fingerprint(path, folder, flags, common):
    """A hash of everything that decides what clang-tidy says; None if preprocessing fails."""
    command = ["clang++", *flags, "-w", "-E", "-C", ROOT / path]  # -C: comments stay, because of NOLINT
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=FILE_TIMEOUT_SECONDS)
    if done.returncode != 0:
        return None
    return hashlib.sha256(b"\0".join([common, " ".join(flags).encode(), done.stdout])).hexdigest()


def run_clang_tidy(source, folder, flags):
    """What clang-tidy finds in a source; an empty text if it is clean."""
    command = ["clang-tidy", "--quiet", f"--config-file={ROOT}/.clang-tidy", source, "--", *flags, *EXTRA_FLAGS]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=FILE_TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired as error:
        return f"{source}: {error}"
    if done.returncode == 0:
        return ""
    return re.sub(r"^\d+ warnings? generated\.\n", "", done.stdout + done.stderr, flags=re.MULTILINE)


def check(paths, folder, flags):
    """What clang-tidy finds in files that are compiled alike: {path: findings}, without those that are clean."""
    if len(paths) == 1:
        findings = run_clang_tidy(ROOT / paths[0], folder, flags)
        return {paths[0]: findings} if findings else {}
    with tempfile.NamedTemporaryFile("w", suffix=".cc", dir=CACHE) as together:
        together.writelines(f'#include "{ROOT / path}"\n' for path in paths)
        together.flush()
        if not run_clang_tidy(together.name, folder, flags):
            return {}
    middle = len(paths) // 2
    return check(paths[:middle], folder, flags) | check(paths[middle:], folder, flags)


def batches(found, paths, jobs):
    """Divides files into lists that are checked together: with the same flags, not too many, and each program alone."""
    size = max(1, min(FILES_TOGETHER, len(paths) // (2 * jobs)))
    programs = sorted(path for path in paths if PROGRAM.search((ROOT / path).read_text()))
    yield from ([path] for path in programs)
    rest = sorted(set(paths) - set(programs), key=lambda path: (found[path], path))
    for _, group in groupby(rest, key=found.get):
        group = list(group)
        yield from (group[start:start + size] for start in range(0, len(group), size))


def tidy(build, jobs, parts=()):
    """Checks all sources and prints what is found; returns the paths that are clean and those that are not."""
    CACHE.mkdir(parents=True, exist_ok=True)
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout
    common = b"\0".join([version, (ROOT / ".clang-tidy").read_bytes(), " ".join(EXTRA_FLAGS).encode()])
    found = sources(build, parts)
    dirty = {}
    with ThreadPoolExecutor(jobs) as pool:
        keys = dict(zip(found, pool.map(lambda path: fingerprint(path, *found[path], common), found)))
        changed = [path for path in found if not keys[path] or not (CACHE / keys[path]).exists()]
        for findings in pool.map(lambda paths: check(paths, *found[paths[0]]), batches(found, changed, jobs)):
            dirty |= findings
            for text in findings.values():
                print(text.strip(), flush=True)
    for path in changed:
        if keys[path] and path not in dirty:
            (CACHE / keys[path]).touch()
    return sorted(set(found) - set(dirty)), sorted(dirty)


def main():
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    clean, dirty = tidy(Path(sys.argv[1]).resolve(), os.cpu_count(), sys.argv[2:])
    print(f"tidy: {len(clean)} files clean, {len(dirty)} not")
    return 1 if dirty or not clean else 0


if __name__ == "__main__":
    sys.exit(main())
