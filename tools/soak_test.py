#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of soak.py: that what fails can be seen again, and that nothing of earlier runs is lost."""

import contextlib
import csv
import io
import os
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

import fuzz
import soak

SIMULATOR = """#!/bin/sh
echo first seed 70
echo 'seed 71 fails: T10; workload once; again: percsim --seed 71'
echo sim seeds=2 failures=1
exit 1
"""
PROGRAM = """#!/bin/sh
echo 3 kills, 4 events
echo '[  PASSED  ] 1 test.'
"""


class SoakTest(unittest.TestCase):

    def setUp(self):
        quiet = contextlib.redirect_stdout(io.StringIO())
        quiet.__enter__()
        self.addCleanup(quiet.__exit__, None, None, None)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.make("sim/percsim", SIMULATOR)
        for program in soak.PROGRAMS:
            self.make(program, PROGRAM)
        self.fuzzed = mock.Mock(return_value=[fuzz.Result("good", 5), fuzz.Result("bad", 6, "to see it again: fuzz_bad x")])
        patched = mock.patch.object(fuzz, "run_all", self.fuzzed)
        patched.start()
        self.addCleanup(patched.stop)

    def make(self, program, text):
        file = self.root / "build" / "release" / program
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        file.chmod(0o700)

    def run_soak(self, minutes=2.0):
        return soak.run(self.root, 2, minutes, dict(os.environ))

    def text(self, name):
        return (self.root / "build" / "soak" / name).read_text(encoding="utf-8")

    def test_what_passed_and_what_failed_is_in_the_report(self):
        passed, failed = self.run_soak()
        self.assertEqual(failed, ["percsim", "fuzz_bad"])
        self.assertEqual(len(passed), len(soak.PROGRAMS) + 1)
        report = self.text("REPORT.md")
        for expected in ("| percsim | **failed** |", "first seed 70; sim seeds=2", "3 kills, 4 events", "5 executions"):
            self.assertIn(expected, report)

    def test_the_report_says_how_to_see_a_failure_again(self):
        self.make("tests/stress/kill_test", "#!/bin/sh\nexit 1\n")
        self.run_soak()
        failures = self.text("REPORT.md").split("## What failed")[1]
        self.assertIn("again: percsim --seed 71", failures)
        self.assertIn("fuzz_bad x", failures)
        self.assertRegex(failures, r"PERCOLATOR_STRESS_KILLS=\d+ PERCOLATOR_TEST_SEED=\d+ \S+/tests/stress/kill_test\n")
        kept = sorted(path.name.split("-", 2)[2] for path in (self.root / "build/soak/failures").iterdir())
        self.assertEqual(kept, ["kill_test.log", "percsim.log"])

    def test_the_history_keeps_what_ran_before(self):
        self.run_soak()
        self.run_soak()
        with open(self.root / "build/soak/history.csv", encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), 2 * (len(soak.PROGRAMS) + 3))
        simulated = [row for row in rows if row["what"] == "percsim"]
        self.assertEqual([row["result"] for row in simulated], ["failed", "failed"])
        self.assertIn("--seed 71", simulated[0]["again"])
        seeds = {row["how much"] for row in rows if row["what"] == "kill_test"}
        self.assertEqual(len(seeds), 2, seeds)

    def test_fuzzers_get_the_time_that_is_left(self):
        targets = mock.patch.object(fuzz, "target_names", return_value=["bad", "good"])
        with targets, mock.patch.object(soak, "run_simulator", side_effect=lambda *_: (time.sleep(2), ("", [], True))[1]):
            self.run_soak(minutes=1)
        self.assertLessEqual(self.fuzzed.call_args.args[2], 58)
        self.assertGreaterEqual(self.fuzzed.call_args.args[2], 1)

    def test_a_program_that_hangs_is_ended_with_its_children(self):
        child = self.root / "child"
        self.make("sim/percsim", f"#!/bin/sh\nsleep 600 & echo $! > {child}\nwait\n")
        with mock.patch.object(soak, "GRACE_SECONDS", 1):
            did, again, good = soak.run_simulator(self.root, 1, 0, self.root)
        self.assertFalse(good)
        self.assertIn("percsim", again[0])
        self.assertIn("no result", did)
        pid = int(child.read_text(encoding="utf-8"))
        deadline = time.monotonic() + 60
        while is_running(pid) and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertFalse(is_running(pid))

    def test_a_program_that_is_missing_fails(self):
        (self.root / "build/release/sim/percsim").unlink()
        self.assertFalse(soak.run_simulator(self.root, 1, 0, self.root)[2])


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


if __name__ == "__main__":
    unittest.main()
