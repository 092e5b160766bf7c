#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of check_labels.py: small trees, each with one thing wrong or right."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path

import check_labels

DEFINITIONS = "# Invariants\n\n- **T5** No overlap.\n  - Why: T5 is needed.\n- **O1c** The oracle dies.\n"


class CheckLabelsTest(unittest.TestCase):

    def check(self, path, text, definitions=DEFINITIONS):
        """Runs the check on a tree of the definitions and one more file; returns its exit code and what it printed."""
        with tempfile.TemporaryDirectory() as root:
            for name, content in {check_labels.DEFINITIONS: definitions, path: text}.items():
                file = Path(root, name)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(content, encoding="utf-8")
            with contextlib.redirect_stdout(io.StringIO()) as output:
                code = check_labels.main(Path(root))
            return code, output.getvalue()

    def assert_accepted(self, path, text):
        code, output = self.check(path, text)
        self.assertEqual(code, 0, output)

    def assert_refused(self, path, text, *findings):
        code, output = self.check(path, text)
        self.assertEqual(code, 1, output)
        self.assertEqual([line.split(",")[0] for line in output.splitlines()], list(findings))

    def test_a_label_that_is_defined_may_be_cited(self):
        self.assert_accepted("src/txn/a.cc", "int x;  // T5, and T5: (T5). T5\n/* O1c */\n")
        self.assert_accepted("docs/design.md", "T5 holds (O1c).\n")
        self.assert_accepted("tests/histories/a.txt", "# T5. A script.\nbegin t1\n")

    def test_a_label_that_is_not_defined_is_refused_with_its_line(self):
        self.assert_refused("src/txn/a.cc", "int x;\n// T5, T16\nint y;  // O1\n",
                            "src/txn/a.cc:2: cites T16", "src/txn/a.cc:3: cites O1")
        self.assert_refused("include/percolator/a.h", "/* One\n   N12 */\n", "include/percolator/a.h:2: cites N12")
        self.assert_refused("tests/histories/a.txt", "begin t1\n# H25\n", "tests/histories/a.txt:2: cites H25")
        self.assert_refused("docs/testing.md", "# Testing\n\n| W7 | dies |\n", "docs/testing.md:3: cites W7")

    def test_both_ends_of_a_range_are_citations(self):
        self.assert_refused("docs/a.md", "T5-T16, T5/T17 to T18\n",
                            "docs/a.md:1: cites T16", "docs/a.md:1: cites T17", "docs/a.md:1: cites T18")

    def test_the_lines_of_a_nested_list_are_no_code(self):
        self.assert_refused("docs/a.md", "- One.\n  - Two:\n    T16.\n", "docs/a.md:3: cites T16")

    def test_code_is_not_looked_at(self):
        self.assert_accepted("src/a.h", "template <typename T1, typename T2>\nstruct H1 { T1 a = 0xC3; };\n")
        self.assert_accepted("src/a.cc", "const char* a = \"T16 began\"; char b = 'x'; int c = 1'000; Use(T16);\n")
        self.assert_accepted("docs/a.md", "Ask `H1:7821`.\n\n```\nT16\n```\n\n    C42\n")
        self.assert_accepted("src/CMakeLists.txt", "target_compile_options(a PRIVATE -O1)\n")

    def test_what_looks_like_a_label_is_none(self):
        self.assert_accepted("src/a.cc", "// C++20, -O2, G2-item, H264, W3C, T1000, xT16, P4, K8s, N_1, a/N12\n")

    def test_quotes_in_comments_are_examples(self):
        self.assert_accepted("sim/a.h", '// A line of the trace: "T16 begins". See `T17`.\n')

    def test_the_first_transaction_of_a_history_is_no_label(self):
        self.assert_accepted("sim/history/a.cc", "// It overlooked T0.\n")

    def test_a_literal_that_is_or_names_a_label_is_a_citation(self):
        self.assert_accepted("sim/a.cc", 'Broken("T5", "text"); Add("T5: two writers");\n')
        self.assert_refused("sim/a.cc", 'Broken("T16", "text");\nAdd("N12: lost");\n',
                            "sim/a.cc:1: cites T16", "sim/a.cc:2: cites N12")

    def test_labels_in_names_of_tests_are_citations(self):
        self.assert_accepted("tests/a_test.cc", "TEST_F(ATest, O1c_T5_Dies) {\n")
        self.assert_refused("tests/a_test.cc", "\nTEST_P(ATest, OneStep_C13_Dies) {\n", "tests/a_test.cc:2: cites C13")

    def test_a_label_is_defined_once(self):
        code, output = self.check("docs/a.md", "", DEFINITIONS + "- **T5** Again.\n")
        self.assertEqual(code, 1)
        self.assertEqual(output, "docs/invariants.md:6: defines T5 again; line 3 did\n")

    def test_a_label_is_defined_in_one_document(self):
        self.assert_refused("docs/design.md", "- **T5** No overlap.\n", "docs/design.md:1: sets T5 in bold")

    def test_other_folders_and_files_are_not_looked_at(self):
        self.assert_accepted("apps/web/app.js", "// T16\n")
        self.assert_accepted("tests/rpc/node/package-lock.json", "T16\n")

    def test_a_tree_without_definitions_is_not_a_success(self):
        code, output = self.check("src/a.cc", "", "# Invariants\n")
        self.assertEqual(code, 1)
        self.assertIn("nothing was checked", output)


if __name__ == "__main__":
    unittest.main()
