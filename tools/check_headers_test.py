#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of check_headers.py: small trees of headers."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path

import check_headers

GUARD = "#ifndef X_H_\n#define X_H_\n%s\n#endif\n"


class CheckHeadersTest(unittest.TestCase):

    def check(self, files):
        """Runs the check on a tree of {path: text}; returns its exit code and what it printed."""
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                file = Path(root, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            with contextlib.redirect_stdout(io.StringIO()) as output:
                code = check_headers.main(Path(root))
            return code, output.getvalue()

    def test_a_header_with_all_that_it_needs(self):
        code, output = self.check({"include/percolator/x.h": GUARD % "#include <string>\nstd::string Name();",
                                   "include/percolator/spi/y.h": '#include "percolator/x.h"\n'})
        self.assertEqual((code, output), (0, "headers: each of 2 compiles alone\n"))

    def test_a_header_that_needs_another_one(self):
        code, output = self.check({"include/percolator/x.h": GUARD % "#include <string>",
                                   "include/percolator/spi/y.h": "std::string Name();\n"})
        self.assertEqual(code, 1, output)
        self.assertTrue(output.startswith("include/percolator/spi/y.h:1: does not compile alone:\n"), output)

    def test_a_header_without_a_guard(self):
        code, output = self.check({"include/percolator/x.h": "struct X {};\n"})
        self.assertEqual(code, 1, output)
        self.assertIn("redefinition", output)

    def test_a_header_that_needs_more_than_a_user_has(self):
        code, output = self.check({"include/percolator/x.h": '#include "src/x.h"\n', "src/x.h": GUARD % ""})
        self.assertEqual(code, 1, output)

    def test_an_empty_tree_is_not_a_success(self):
        code, output = self.check({})
        self.assertEqual(code, 1)
        self.assertIn("nothing was checked", output)


if __name__ == "__main__":
    unittest.main()
