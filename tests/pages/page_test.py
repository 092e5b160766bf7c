#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Follows a page from top to bottom: writes its files, runs its commands in their order, and compares what they print.

    page_test.py [--rewrite] docs/PAGE.md BUILD COMPILER

The page is docs/tutorial.md, or one that begins where its installation ends. Of the page,
  - a ```cpp or ```cmake block whose first line is a comment "NAME: ..." is written to the file NAME of the working folder;
  - each line of a ```console block that begins with "$ " is run by one bash, and the lines below it are its output.

Two outputs are equal if they differ only in timestamps, times, ages, columns' widths and the number of waiting cells.
Timestamps are numbered in the order in which the page shows them, so equal ones have to stay equal. --rewrite puts what the
commands have printed into the page; read the difference.

Everything happens in a temporary folder, which is also the home folder. The server picks a free port. All processes
belong to one process group, which is killed at the end.
"""

import glob
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PORT = "7820"  # of the page
COMMAND_TIMEOUT = 300  # seconds; the slowest is a compilation
TOTAL_TIMEOUT = 800

# The tree in which this test runs is set up and built already. Another command shows that the one of the page is right.
INSTEAD = {
    "./setup build": "./setup --help",
    "cmake --preset release": "cmake --list-presets=configure | grep -w release",
    "cmake --build --preset release --target percolator percolator_cli":
        "cmake --build {build} --target percolator percolator_cli -- -n",
    "cmake --install build/release --prefix ~/percolator": "cmake --install {build} --prefix ~/percolator",
}


class Failure(Exception):
    """A difference from the page, readable for people."""


class Step:
    """A command of the page, and the lines of its output on the page: [begin, end)."""

    def __init__(self, command, begin):
        self.command = command
        self.begin = begin
        self.end = begin
        self.printed = []

    def background(self):
        return re.search(r"[^&]&( \w+=\$!)?$", self.command) is not None


def parse(lines):
    """Returns the content of the page, in order: files as (NAME, text), and steps."""
    found = []
    kind, start = None, 0
    for number, line in enumerate(lines):
        if kind is None:
            if line.startswith("```"):
                kind, start = line[3:] or "text", number + 1
            continue
        if line == "```":
            if kind in ("cpp", "cmake"):
                name = re.match(r"(?://|#) ([\w.]+): ", lines[start])
                if name is None:
                    raise Failure(f"line {start + 1}: the first line of a file names it: // NAME: what it is")
                found.append((name.group(1), "\n".join(lines[start:number]) + "\n"))
            kind = None
        elif kind == "console":
            if line.startswith("$ "):
                found.append(Step(line[2:], number + 1))
            elif number == start:
                raise Failure(f"line {number + 1}: output without a command")
            else:
                found[-1].end = number + 1
    return found


class Normalizer:
    """Makes outputs of two runs comparable."""

    def __init__(self):
        self.timestamps = {}

    def number(self, match):
        return "T" + str(self.timestamps.setdefault(match.group(), len(self.timestamps) + 1))

    def __call__(self, lines):
        normal = []
        for line in lines:
            line = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", line)
            line = re.sub(r"\b\d{13,}\b", self.number, line)
            line = re.sub(r"\b\d+(\.\d+)?(us|ms|s|m|h)\b", "AGE", line)
            line = re.sub(r"\b\d+ cells? waits?\b", "N cells wait", line)
            normal.append(re.sub(r" +", " ", line).strip())
        return normal


class Shell:
    """One bash that runs the steps, in a folder of its own."""

    def __init__(self, folder, build):
        self.folder = folder
        self.build = build
        self.port = PORT
        self.count = 0
        self.deadline = time.monotonic() + TOTAL_TIMEOUT
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PERCOLATOR_")}
        environment.update(HOME=folder, LC_ALL="C.UTF-8")
        with open(os.path.join(folder, "bash.log"), "w", encoding="utf-8") as log:
            self.bash = subprocess.Popen(["bash"], stdin=subprocess.PIPE, stdout=log, stderr=log, cwd=ROOT, text=True,
                                         env=environment, start_new_session=True)

    def close(self):
        try:
            os.killpg(self.bash.pid, signal.SIGKILL)  # the bash, and all processes that it has started
        except ProcessLookupError:
            pass
        self.bash.stdin.close()
        self.bash.wait()

    def run(self, step, is_complete):
        """Runs a step. A step in the background is left running once `is_complete` is true for its output."""
        self.count += 1
        output = os.path.join(self.folder, f"output{self.count}")
        done = output + ".done"
        if step.command in INSTEAD:
            command = INSTEAD[step.command].format(build=shlex.quote(self.build))
        else:
            command = step.command.replace(PORT, "0" if "serve" in step.command else self.port)
        self.bash.stdin.write(f"eval {shlex.quote(command)} >{output} 2>&1 </dev/null; echo $? >{done}\n")
        self.bash.stdin.flush()
        deadline = min(time.monotonic() + COMMAND_TIMEOUT, self.deadline)
        while True:
            finished = os.path.exists(done) and os.path.getsize(done) > 0
            lines = self.read(output)
            if finished and (not step.background() or is_complete(lines)):
                if step.command in INSTEAD and self.read(done) != ["0"]:
                    raise Failure(f"$ {command}\nfailed:\n" + "\n".join(lines))
                return lines
            if self.bash.poll() is not None:
                raise Failure(f"the shell ended at: {step.command}")
            if time.monotonic() > deadline:
                raise Failure(f"$ {step.command}\ndid not finish in time, and printed:\n" + "\n".join(lines))
            time.sleep(0.01)

    def working_folder(self):
        return os.readlink(f"/proc/{self.bash.pid}/cwd")

    def read(self, output):
        if not os.path.exists(output):
            return []
        with open(output, encoding="utf-8") as file:
            text = file.read()
        address = re.search(r"ready on percolator://127\.0\.0\.1:(\d+)\n", text)
        if address:
            self.port = address.group(1)
        lines = []
        for line in text.replace(f":{self.port}", f":{PORT}").splitlines():
            # The message of an interactive shell about a program that was killed.
            killed = re.search(r"line \d+: +\d+ Killed +(.*)$", line)
            if killed is None:
                lines.append(line.rstrip())
            elif "$" not in killed.group(1) and "--stay" not in killed.group(1):
                lines.append("Killed")
        return lines


def install(shell):
    """Follows the section "Install" of the tutorial, and changes to an empty folder."""
    for command in [*INSTEAD, "export PATH=~/percolator/bin:$PATH", "mkdir ~/page", "cd ~/page"]:
        shell.run(Step(command, 0), lambda got: True)


def follow(page, found, lines, shell, rewrite):
    """Runs the page. Raises Failure at the first output that differs."""
    shown, printed = Normalizer(), Normalizer()
    for item in found:
        if not isinstance(item, Step):
            name, text = item
            with open(os.path.join(shell.working_folder(), name), "w", encoding="utf-8") as file:
                file.write(text)
            continue
        expected = lines[item.begin:item.end]
        begin = time.monotonic()
        enough = 3 if "serve" in item.command else 1 if "work" in item.command else 0
        item.printed = shell.run(item, lambda got, need=enough: len(got) >= need)
        print(f"{time.monotonic() - begin:6.2f} s  $ {item.command}", flush=True)
        if item.command in INSTEAD:
            item.printed = []
        if not rewrite:
            want, got = shown(expected), printed(item.printed)
            if want != got:
                raise Failure("\n".join([f"{page}:{item.begin}: $ {item.command}", "the page shows:", *expected,
                                         "it printed:", *item.printed, "compared were:", *want, "and:", *got,
                                         f"If the new output is right: tests/pages/page_test.py --rewrite {page} "
                                         "build/release c++"]))


def rewritten(found, lines):
    """Returns the page with the output of the steps."""
    result, position = [], 0
    for item in found:
        if isinstance(item, Step):
            result += lines[position:item.begin] + item.printed
            position = item.end
    return result + lines[position:]


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--rewrite"]
    rewrite = "--rewrite" in sys.argv[1:]
    page, build, os.environ["CXX"] = os.path.abspath(arguments[0]), os.path.abspath(arguments[1]), arguments[2]
    with open(page, encoding="utf-8") as file:
        lines = file.read().splitlines()
    found = parse(lines)
    folder = tempfile.mkdtemp(prefix="page_test-")
    shell = Shell(folder, build)
    try:
        if not any(isinstance(item, Step) and item.command in INSTEAD for item in found):
            install(shell)
        follow(page, found, lines, shell, rewrite)
    except Failure as failure:
        print(failure, file=sys.stderr)
        for path in glob.glob(os.path.join(folder, "*.log")) + glob.glob(os.path.join(folder, "*", "*.log")):
            with open(path, encoding="utf-8") as file:
                print(f"{os.path.basename(path)}:\n{file.read()[-4000:]}", file=sys.stderr)
        return 1
    finally:
        shell.close()
        shutil.rmtree(folder)
    if rewrite:
        with open(page, "w", encoding="utf-8") as file:
            file.write("\n".join(rewritten(found, lines)) + "\n")
    print(f"{sum(isinstance(item, Step) for item in found)} commands of the page do what it shows")
    return 0


if __name__ == "__main__":
    sys.exit(main())
