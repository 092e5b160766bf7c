# SPDX-License-Identifier: Apache-2.0
"""Runs the libFuzzer targets of build/fuzz. Each starts from its seeds in tests/fuzz/corpus and from the inputs that earlier runs
have put into build/fuzz/corpus. An input that fails is kept in build/fuzz/findings/NAME, with the command that reproduces it."""

import concurrent.futures
import os
import re
import subprocess
from dataclasses import dataclass

LONGEST_INPUT_SECONDS = 20
MEMORY_MB = 2048
GRACE_SECONDS = 120  # to start, to read the corpus, and to write a finding


@dataclass
class Result:
    name: str
    executions: int = 0
    finding: str = ""  # how to reproduce it, or empty if there is none

    def line(self):
        return f"fuzz {self.name} executions={self.executions}" + (f" FAILED: {self.finding}" if self.finding else "")


def target_names(root):
    return sorted(path.stem for path in (root / "tests" / "fuzz").glob("*.cc"))


def seconds_for_each(root, jobs, total_seconds):
    return max(1, int(total_seconds * jobs / max(1, len(target_names(root)))))


def run_one(root, name, seconds, seed):
    folder = root / "build" / "fuzz"
    program = folder / "tests" / "fuzz" / f"fuzz_{name}"
    findings, found = folder / "findings" / name, folder / "corpus" / name
    for needed in findings, found:
        needed.mkdir(parents=True, exist_ok=True)
    command = [str(program), f"-seed={seed}", f"-max_total_time={seconds}", f"-timeout={LONGEST_INPUT_SECONDS}",
               f"-rss_limit_mb={MEMORY_MB}", "-max_len=4096", "-print_final_stats=1", f"-artifact_prefix={findings}/",
               str(found), str(root / "tests" / "fuzz" / "corpus" / name)]
    environment = os.environ | {"UBSAN_OPTIONS": "print_stacktrace=1"}
    result = Result(name)
    try:
        done = subprocess.run(command, capture_output=True, env=environment, timeout=seconds + GRACE_SECONDS)
        output = done.stderr.decode(errors="replace")
    except (OSError, subprocess.TimeoutExpired) as error:
        result.finding = str(error)
        return result
    executions = re.findall(r"stat::number_of_executed_units:\s*(\d+)", output)
    result.executions = int(executions[-1]) if executions else 0
    if done.returncode != 0:
        (findings / "log").write_text(output, encoding="utf-8")
        inputs = re.findall(r"Test unit written to (\S+)", output)
        replay = f"{program} {inputs[-1]}" if inputs else " ".join(command)
        result.finding = f"to see it again: {replay} (log: {findings / 'log'})"
        (findings / "replay").write_text(replay + "\n", encoding="utf-8")
    return result


def run_all(root, jobs, seconds, seed=0):
    """Yields the result of each target, in the order of their names. With seed 0, each run has another seed."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(lambda name: run_one(root, name, seconds, seed), target_names(root))
