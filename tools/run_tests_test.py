#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of run_tests.py: that it counts right and that no failure is lost."""

import contextlib
import io
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import run_tests
from run_tests import BuildFailed, Stage

# One test for each way a test can end.
PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(ends NONE)
enable_testing()
add_test(NAME passes COMMAND true)
add_test(NAME fails COMMAND false)
add_test(NAME skips COMMAND echo SKIPPED)
set_tests_properties(skips PROPERTIES SKIP_REGULAR_EXPRESSION SKIPPED)
add_test(NAME disabled COMMAND true)
set_tests_properties(disabled PROPERTIES DISABLED ON)
add_test(NAME hangs COMMAND sleep 60)
set_tests_properties(hangs PROPERTIES TIMEOUT 1)
add_test(NAME crashes COMMAND sh -c "kill -SEGV $$")
add_test(NAME missing COMMAND /no/such/program)
"""

# A process of several GoogleTest cases, in each of the ways it can end.
PARTS = """
cmake_minimum_required(VERSION 3.25)
project(parts NONE)
enable_testing()
function(part name code)
  string(REPLACE "!" "\\\\n" text "${ARGN}")
  string(REPLACE ";" "" text "${text}")
  add_test(NAME ${name} COMMAND sh -c "printf '${text}'; exit ${code}")
endfunction()
part(good.part1 0 "[ RUN      ] S.A!noise[       OK ] S.A (3 ms)!"
                  "[ RUN      ] S.B![  SKIPPED ] S.B (0 ms)!1 test![  SKIPPED ] S.B!")
part(bad.part1 1 "[ RUN      ] S.A![  FAILED  ] S.A, where GetParam() = 7 (3 ms)!"
                 "[ RUN      ] S.B![       OK ] S.B (0 ms)![  FAILED  ] S.A!")
part(dies.part2 139 "[ RUN      ] S.A![       OK ] S.A (3 ms)![ RUN      ] S.B!")
part(leaks.part3 1 "[ RUN      ] S.A![       OK ] S.A (3 ms)!")
part(empty.part4 0 "")
"""


def options(*arguments):
    return run_tests.parse_arguments(arguments)


class RunTestsTest(unittest.TestCase):

    def setUp(self):
        quiet = contextlib.redirect_stdout(io.StringIO())
        self.output = quiet.__enter__()
        self.addCleanup(quiet.__exit__, None, None, None)

    def run_ctest(self, project):
        """Runs the tests of a CMake project as the stage "release"; returns the stage."""
        with tempfile.TemporaryDirectory() as root:
            Path(root, "CMakeLists.txt").write_text(project, encoding="utf-8")
            subprocess.run(["cmake", "-S", root, "-B", f"{root}/build/release"], check=True, capture_output=True)
            stage = Stage("release")
            with mock.patch.object(run_tests, "ROOT", Path(root)), mock.patch.object(run_tests, "build"):
                run_tests.run_ctest(stage, "release", [])
            return stage

    def test_every_end_of_a_test_is_counted_as_what_it_is(self):
        stage = self.run_ctest(PROJECT)
        self.assertEqual(stage.passed, ["passes"])
        self.assertEqual(stage.failed, ["fails", "hangs", "crashes", "missing"])
        self.assertEqual(stage.skipped, ["skips", "disabled"])

    def test_the_cases_of_a_process_are_counted_one_by_one(self):
        stage = self.run_ctest(PARTS)
        self.assertEqual(stage.passed, ["good.S.A", "bad.S.B", "dies.S.A", "leaks.S.A"])
        self.assertEqual(stage.failed, ["bad.S.A", "dies.S.B", "leaks"])
        self.assertEqual(stage.skipped, ["good.S.B"])

    def test_no_case_is_lost_if_the_output_is_long(self):
        long = "seq -f 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa %.0f' 20000"
        text = "echo '[ RUN      ] S.A'; {}; echo '[       OK ] S.A (1 ms)'; {}".format(long, long)
        project = PARTS + f'add_test(NAME long.part1 COMMAND sh -c "{text}")\n'
        self.assertIn("long.S.A", self.run_ctest(project).passed)

    def test_no_tests_at_all_is_a_failure(self):
        self.assertEqual(len(self.run_ctest("cmake_minimum_required(VERSION 3.25)\nproject(none NONE)\n").failed), 1)

    def test_a_stage_that_takes_too_long_is_stopped_and_fails(self):
        with mock.patch.object(run_tests, "STAGE_TIMEOUT_SECONDS", 0.5):
            stage = self.run_ctest(PROJECT.replace("TIMEOUT 1", "TIMEOUT 60"))
        self.assertTrue(stage.failed)
        self.assertIn("stopped after", self.output.getvalue())

    def test_passing_tests_are_not_printed_and_failing_ones_are(self):
        self.run_ctest(PROJECT)
        self.assertNotIn("passes", self.output.getvalue())
        self.assertIn("fails", self.output.getvalue())

    def test_what_the_simulator_did_is_printed(self):
        self.run_ctest(PROJECT + 'add_test(NAME sim COMMAND echo "sim seeds=7 failures=0")\n')
        self.assertIn("\nsim seeds=7 failures=0\n", self.output.getvalue())

    def test_the_simulator_fails_with_its_program(self):
        for code, failed in ((0, 0), (1, 1)):
            stage = Stage("sim")
            with mock.patch.object(run_tests, "build"), mock.patch.object(run_tests.subprocess, "run") as run:
                run.return_value.returncode = code
                run_tests.run_simulator(stage, 5)
            self.assertEqual((len(stage.passed), len(stage.failed)), (1 - failed, failed))
            self.assertIn("--seeds", run.call_args[0][0])

    def test_the_summary_ends_with_the_sums_and_lists_what_was_skipped(self):
        text, good = run_tests.summary([Stage("a", passed=["x", "y"], skipped=["s"]), Stage("b", passed=["z"])])
        self.assertTrue(good)
        self.assertEqual(text.splitlines()[-1], "3 passed, 0 failed, 1 skipped")
        self.assertIn("skipped:\n  a: s\n", text)

    def test_one_failure_makes_the_run_fail(self):
        text, good = run_tests.summary([Stage("a", passed=["x"]), Stage("b", failed=["z"])])
        self.assertFalse(good)
        self.assertEqual(text.splitlines()[-1], "1 passed, 1 failed, 0 skipped")
        self.assertIn("failed:\n  b: z\n", text)

    def test_nothing_run_is_not_a_success(self):
        self.assertFalse(run_tests.summary([Stage("a")])[1])

    def test_a_failed_stage_does_not_stop_the_next(self):
        stages = [("a", lambda stage: stage.failed.append("x")), ("b", lambda stage: stage.passed.append("y"))]
        self.assertEqual([stage.passed for stage in run_tests.run_stages(stages)], [[], ["y"]])

    def test_stages_after_a_failed_build_count_as_failed(self):
        def fails_to_build(stage):
            raise BuildFailed
        results = run_tests.run_stages([("a", fails_to_build), ("b", lambda stage: stage.passed.append("y"))])
        self.assertEqual([len(stage.failed) for stage in results], [1, 1])
        self.assertEqual(results[1].passed, [])

    def test_the_options_choose_the_stages(self):
        for arguments, expected in (
                ([], ["format", "includes", "labels", "words", "links", "license", "headers", "release", "tidy", "asan", "tsan",
                      "fuzz"]),
                (["--quick"], ["format", "includes", "labels", "words", "links", "license", "dev"]),
                (["--lint"], ["format", "includes", "labels", "words", "links", "license", "headers", "tidy"]),
                (["--asan"], ["asan"]),
                (["--sim", "100"], ["sim"]),
                (["--tsan", "--filter", "Store"], ["tsan"]),
                (["--filter", "Store"], ["dev"])):
            with self.subTest(arguments=arguments):
                self.assertEqual([name for name, _ in run_tests.choose_stages(options(*arguments))], expected)


if __name__ == "__main__":
    unittest.main()
