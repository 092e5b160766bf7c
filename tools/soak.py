# SPDX-License-Identifier: Apache-2.0
"""./test --soak: the tests that find more the longer they run. The simulator gets a fifth of the time, with new seeds. Two fifths
go to the programs that kill processes and to a server whose clients come and go, and the rest to the fuzz targets.

build/soak/REPORT.md says what ran, what failed, and how to reproduce each failure. build/soak/history.csv has a line for each
part of all runs, and build/soak/failures has the logs of failures."""

import csv
import os
import random
import re
import shutil
import signal
import subprocess
import time

import fuzz

# The programs: the variable that sets the amount of work, the amount that fits into a minute, and the minimum that is useful.
# Together they kill processes at every address that has any: rocksdb:, percolator://, bigtable: with its oracles and etcd.
PROGRAMS = {
    "tests/server/churn_test": ("PERCOLATOR_CHURN_SECONDS", 25, 10),
    "tests/oracle/etcd_oracle_failover_test": ("PERCOLATOR_STRESS_KILLS", 2, 1),
    "tests/stress/fire_test": ("PERCOLATOR_FIRE_SECONDS", 15, 3),
    "tests/store/durability_test": ("PERCOLATOR_KILL_CYCLES", 20, 3),
    "tests/stress/kill_test": ("PERCOLATOR_STRESS_KILLS", 60, 3),
    "tests/stress/observer_kill_test": ("PERCOLATOR_STRESS_KILLS", 60, 3),
    "tests/webindex/kill_webindex_test": ("PERCOLATOR_STRESS_KILLS", 60, 3),
}
TARGETS = ("percsim", *(program.rsplit("/", 1)[1] for program in PROGRAMS))
GRACE_SECONDS = 900  # ends only programs that hang: the amount of work is fixed, and a busy machine takes longer
SHOWN_SEEDS = 20
# The lines in which programs report their amount of work and their result.
FAILING_SEED = r"^seed \d+ fails: .*again: .*$"
DID = r"^\d+ kills.*$"
ENDED = r"^\[  (?:PASSED|FAILED)  \].*$"
COLUMNS = ("time", "commit", "what", "result", "seconds", "how much", "again")


def run_program(name, command, environment, timeout, folder):
    """Returns its output, and whether it ended well. The output also goes to a file of the folder."""
    log = folder / f"{name}.log"
    with open(log, "wb") as file:
        try:
            with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                                  env=environment, start_new_session=True) as process:
                try:
                    code = process.wait(timeout=timeout)
                except BaseException as error:
                    os.killpg(process.pid, signal.SIGKILL)  # with its children
                    if not isinstance(error, subprocess.TimeoutExpired):
                        raise
                    file.write(f"\n{error}\n".encode())
                    code = -1
        except OSError as error:
            file.write(f"\n{error}\n".encode())
            code = -1
    return log.read_text(encoding="utf-8", errors="replace"), code == 0


def last_line(pattern, output):
    lines = re.findall(pattern, output, re.MULTILINE)
    return lines[-1] if lines else "no result"


def run_simulator(root, jobs, minutes, folder):
    """Returns the amount of work, how to reproduce failures, and whether there were none."""
    command = [str(root / "build/release/sim/percsim"), "--fresh", "--minutes", f"{minutes:g}", "--jobs", str(jobs),
               "--record", str(folder / "failing_seeds.txt")]
    output, good = run_program("percsim", command, None, 60 * minutes + GRACE_SECONDS, folder)
    seeds = re.findall(FAILING_SEED, output, re.MULTILINE)
    again = seeds[:SHOWN_SEEDS] or [" ".join(command)]
    return f"{last_line('^first seed .*$', output)}; {last_line('^sim seeds=.*$', output)}", again, good


def run_kills(root, program, minutes, folder, environment):
    """The same of one of the programs."""
    variable, per_minute, least = PROGRAMS[program]
    amount, seed = max(least, round(per_minute * minutes)), random.randrange(1, 10**9)
    settings = {variable: str(amount), "PERCOLATOR_TEST_SEED": str(seed)}
    command = str(root / "build/release" / program)
    output, good = run_program(program.rsplit("/", 1)[1], [command], environment | settings,
                               60 * minutes + GRACE_SECONDS, folder)
    settings = " ".join(f"{name}={value}" for name, value in settings.items())
    did = "; ".join([settings, *re.findall(DID, output, re.MULTILINE), last_line(ENDED, output)])
    return did, [f"{settings} {command}"], good


class Report:
    """The report of the run, written after each part."""

    def __init__(self, root, minutes):
        self.folder = root / "build" / "soak"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.minutes = minutes
        self.began = self.last = time.monotonic()
        described = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=root, capture_output=True, text=True)
        self.commit = described.stdout.strip() or "unknown"
        self.passed, self.failed, self.rows, self.failures = [], [], [], []

    def note(self, name, text, again, good):
        now = time.monotonic()
        seconds, self.last = round(now - self.last), now
        print(f"soak {name}: {'ok' if good else 'FAILED'}; {text}", flush=True)
        (self.passed if good else self.failed).append(name)
        self.rows.append((name, "passed" if good else "**failed**", f"{seconds} s", text))
        if not good:
            self.failures += [f"**{name}**", *self.keep_log(name), "", *(f"    {line}" for line in again), ""]
        self.add_to_history(name, good, seconds, text, again)
        self.write()

    def keep_log(self, name):
        """The next run overwrites the log."""
        log = self.folder / f"{name}.log"
        if not log.exists():
            return []
        kept = self.folder / "failures" / f"{time.strftime('%Y%m%d-%H%M%S')}-{name}.log"
        kept.parent.mkdir(exist_ok=True)
        shutil.copyfile(log, kept)
        return [f"Log: {kept}. To see it again:"]

    def add_to_history(self, name, good, seconds, text, again):
        history = self.folder / "history.csv"
        is_new = not history.exists()
        with open(history, "a", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            if is_new:
                writer.writerow(COLUMNS)
            writer.writerow((time.strftime("%Y-%m-%d %H:%M:%S"), self.commit, name, "passed" if good else "failed", seconds,
                             text, "" if good else "\n".join(again)))

    def write(self):
        took = (self.last - self.began) / 60
        lines = [f"# Soak of {self.minutes:g} minutes", "",
                 f"Of {self.commit}; until {time.strftime('%Y-%m-%d %H:%M:%S')}, {took:.1f} minutes so far. Logs are beside "
                 "this file; history.csv has earlier runs.",
                 f"{len(self.passed)} passed, {len(self.failed)} failed.", "",
                 "| what | result | time | how much |", "| --- | --- | --- | --- |",
                 *(f"| {' | '.join(row)} |" for row in self.rows), "",
                 *(["## What failed", "", *self.failures] if self.failures else [])]
        (self.folder / "REPORT.md").write_text("\n".join(lines), encoding="utf-8")


def run(root, jobs, minutes, environment):
    """The names of the parts that passed and of those that failed."""
    report = Report(root, minutes)
    report.note("percsim", *run_simulator(root, jobs, minutes / 5, report.folder))
    for program in PROGRAMS:
        result = run_kills(root, program, minutes * 2 / 5 / len(PROGRAMS), report.folder, environment)
        report.note(program.rsplit("/", 1)[1], *result)
    left = 60 * minutes - (report.last - report.began)
    each = fuzz.seconds_for_each(root, jobs, left)
    for result in fuzz.run_all(root, jobs, each):
        did = f"{result.executions} executions in {each} s"
        report.note(f"fuzz_{result.name}", did, [result.finding], not result.finding)
    return report.passed, report.failed
