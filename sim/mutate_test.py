#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of mutate.py: small trees with a source and mutants of it."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path

import mutate

SOURCE = "int f() {\n  one();\n  two();\n  two();\n  three();\n}\n"
AT_ONE = "something is wrong\n\nsrc/f.cc\n   one();\n+  if (MUTANT) return;\n   two();\n"


class MutateTest(unittest.TestCase):

    def run_on(self, mutants, source=SOURCE):
        """Runs it on src/f.cc and these mutants; returns the exit code, what it wrote by path, and the error."""
        with tempfile.TemporaryDirectory() as root, contextlib.redirect_stderr(io.StringIO()) as error:
            Path(root, "src").mkdir()
            Path(root, "src/f.cc").write_text(source, encoding="utf-8")
            Path(root, "sim/mutants").mkdir(parents=True)
            for name, text in mutants.items():
                Path(root, f"sim/mutants/{name}.mutant").write_text(text, encoding="utf-8")
            code = mutate.main([root, "sim/mutants", root + "/out"])
            out = Path(root, "out")
            files = {str(p.relative_to(out)): p.read_text(encoding="utf-8").replace(str(Path(root).resolve()), "ROOT")
                     for p in out.rglob("*.cc")}
            return code, files, error.getvalue()

    def assert_refused(self, mutants, *parts):
        code, files, error = self.run_on(mutants)
        self.assertEqual((code, files), (1, {}), error)
        for part in parts:
            self.assertIn(part, error)

    def test_an_edit_is_made_behind_its_switch_and_lines_keep_their_numbers(self):
        code, files, error = self.run_on({"Wrong": AT_ONE})
        self.assertEqual(code, 0, error)
        self.assertEqual(files["src/f.cc"],
                         'namespace percolator::mutants { extern bool Wrong; }\n'
                         '#line 1 "ROOT/src/f.cc"\n'
                         'int f() {\n  one();\n'
                         '#line 5 "ROOT/sim/mutants/Wrong.mutant"\n'
                         '  if (::percolator::mutants::Wrong) return;\n'
                         '#line 3 "ROOT/src/f.cc"\n'
                         '  two();\n  two();\n  three();\n}\n')

    def test_the_list_has_the_names_in_order_and_what_is_wrong(self):
        code, files, error = self.run_on({"Wrong": AT_ONE, "Bad": AT_ONE.replace("some", 'a "quoted" ')})
        self.assertEqual(code, 0, error)
        self.assertIn('      {"Bad", "a \\"quoted\\" thing is wrong", &mutants::Bad},\n'
                      '      {"Wrong", "something is wrong", &mutants::Wrong},\n', files["list.cc"])

    def test_what_several_add_at_one_place_comes_in_the_order_of_names(self):
        _, files, _ = self.run_on({"B": AT_ONE, "A": AT_ONE})
        self.assertLess(files["src/f.cc"].index("mutants::A)"), files["src/f.cc"].index("mutants::B)"))

    def test_lines_that_stay_may_be_those_of_another_edit(self):
        replace = "w\n\nsrc/f.cc\n int f() {\n-  one();\n+  if (MUTANT) one();\n   two();\n"
        code, files, error = self.run_on({"A": AT_ONE, "B": replace})
        self.assertEqual(code, 0, error)
        self.assertIn("if (::percolator::mutants::B) one();", files["src/f.cc"])

    def test_a_line_that_two_mutants_remove_is_refused(self):
        replace = "w\n\nsrc/f.cc\n-  one();\n+  if (MUTANT) one();\n"
        self.assert_refused({"A": replace, "B": replace}, "A and B both change line 2 of src/f.cc")

    def test_a_guard_without_what_it_guards_is_refused(self):
        self.assert_refused({"A": AT_ONE.replace("(MUTANT) return;", "(MUTANT)")}, "A.mutant:5", "must be part")

    def test_a_text_that_is_not_there_exactly_once_is_refused(self):
        self.assert_refused({"A": "w\n\nsrc/f.cc\n+  MUTANT;\n   four();\n"}, "A.mutant:4", "nowhere", "four();")
        self.assert_refused({"A": "w\n\nsrc/f.cc\n+  MUTANT;\n   two();\n"}, "A.mutant:4", "2 times")
        self.assert_refused({"A": "w\n\nsrc/f.cc\n+  MUTANT;\n"}, "needs a line of src/f.cc")

    def test_a_mutant_that_can_not_be_switched_is_refused(self):
        self.assert_refused({"A": "w\n\nsrc/f.cc\n-  one();\n"}, "always be on")

    def test_a_file_that_can_not_be_edited_is_refused(self):
        self.assert_refused({"A": AT_ONE.replace("f.cc", "g.cc")}, "there is no src/g.cc")
        self.assert_refused({"A": AT_ONE.replace("f.cc", "f.h")}, "only .cc files")

    def test_what_has_not_changed_is_not_written_again(self):
        with tempfile.TemporaryDirectory() as root:
            path = Path(root, "x.cc")
            mutate.write(path, "text")
            written = path.stat().st_mtime_ns
            mutate.write(path, "text")
            self.assertEqual(path.stat().st_mtime_ns, written)


if __name__ == "__main__":
    unittest.main()
