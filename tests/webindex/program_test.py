# SPDX-License-Identifier: Apache-2.0
"""The program webindex as a user runs it: bad options, bad files and shortages end with a message and a code.

    program_test.py WEBINDEX FOLDER
"""

import os
import resource
import shutil
import subprocess
import sys
import unittest

FAILED = 1
FOUND_NOTHING = 3

program, folder = sys.argv[1], sys.argv[2]


def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (600 << 20, 600 << 20))


class ProgramTest(unittest.TestCase):
    def setUp(self):
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder + "/docs")
        with open(folder + "/docs/a.html", "w") as page:
            page.write("<title>Apples</title><p>An apple a day.")

    def run_it(self, *words, **more):
        more.setdefault("stdout", subprocess.PIPE)
        return subprocess.run([program, *words], stderr=subprocess.PIPE, text=True, timeout=300, cwd=folder, **more)

    def index(self, *words, **more):
        return self.run_it("run", "--docs", "docs", "--data", "data", "--once", "--port", "0", *words, **more)

    def expect_error(self, ran, code, text):
        self.assertEqual(ran.returncode, code, ran.stderr)
        self.assertTrue(ran.stderr.startswith("webindex: "), ran.stderr)
        self.assertIn(text, ran.stderr)

    def test_a_bad_list_leaves_the_index_alone(self):
        self.assertEqual(self.index().returncode, 0)
        with open(folder + "/empty", "w") as empty:
            empty.write("\n\r\n")
        self.expect_error(self.index("--list", "/"), FAILED, "folder")
        self.expect_error(self.index("--list", "/dev/zero"), FAILED, "device")
        self.expect_error(self.index("--list", "nowhere"), FAILED, "nowhere")
        self.expect_error(self.index("--list", "empty"), FAILED, "is empty")
        with open(folder + "/other", "w") as other:
            other.write("b.html\nc.html\n")
        self.expect_error(self.index("--list", "other"), FOUND_NOTHING, "none of the 2 entries")
        self.assertEqual(self.run_it("query", "apple", "--data", "data").returncode, 0)

    def test_names_that_are_too_long(self):
        name = "a" * 5000
        self.expect_error(self.run_it("run", "--docs", name, "--once"), FOUND_NOTHING, "no folder")
        self.expect_error(self.run_it("query", "x", "--data", name), FOUND_NOTHING, "no index")

    def test_output_that_cant_be_written(self):
        self.assertEqual(self.index().returncode, 0)
        with open("/dev/full", "w") as full:
            ran = self.run_it("query", "apple", "--data", "data", stdout=full)
        self.expect_error(ran, FAILED, "cannot write the output")

    def test_too_little_memory(self):
        self.expect_error(self.index(preexec_fn=limit_memory), FAILED, "memory")


unittest.main(argv=sys.argv[:1])
