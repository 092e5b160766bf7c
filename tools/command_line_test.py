#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of command_line.py: programs that are scripts of a few lines."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import command_line

PROGRAM = """#!/bin/sh
case "$1" in
  get) echo 'Prints a value   '; exit ;;
esac
printf 'A program\\n\\nSubcommands:\\n  get                  Prints a value\\n\\nExit codes: 0 done\\n'
"""


class CommandLineTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        (self.root / "docs").mkdir()
        program = self.root / "program"
        program.write_text(PROGRAM, encoding="utf-8")
        program.chmod(0o700)
        for name, value in (("ROOT", self.root), ("programs", lambda build: [("program", [program])])):
            patch = mock.patch.object(command_line, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def run_it(self, *arguments):
        with contextlib.redirect_stdout(io.StringIO()) as output:
            code = command_line.main([*arguments, str(self.root)])
        return code, output.getvalue()

    def page(self):
        return (self.root / command_line.PAGE).read_text(encoding="utf-8")

    def test_the_page_has_every_command(self):
        self.assertEqual(self.run_it("--rewrite"), (0, ""))
        self.assertTrue(self.page().startswith(command_line.INTRODUCTION))
        self.assertIn("\n## program\n\n```text\nA program\n", self.page())
        self.assertIn("\n### program get\n\n```text\nPrints a value\n```\n", self.page())
        self.assertEqual(self.run_it()[0], 0)

    def test_a_difference_is_shown_with_the_command_that_repairs_it(self):
        self.run_it("--rewrite")
        (self.root / command_line.PAGE).write_text(self.page().replace("A program", "An old program"), encoding="utf-8")
        code, output = self.run_it()
        self.assertEqual(code, 1)
        self.assertIn("\n-An old program\n+A program\n", output)
        self.assertIn("tools/command_line.py --rewrite", output)

    def test_a_page_that_is_missing_is_out_of_date(self):
        self.assertEqual(self.run_it()[0], 1)

    def test_only_the_section_of_subcommands_names_them(self):
        self.assertEqual(command_line.subcommands("Options:\n  --json   JSON\n"), [])
        self.assertEqual(command_line.subcommands("Subcommands:\n  a   A\n  b-c   B\n\nExamples:\n  d\n"), ["a", "b-c"])


if __name__ == "__main__":
    unittest.main()
