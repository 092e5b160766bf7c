#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of check_links.py: small trees, each with links that resolve or one that does not."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path

import check_links

TREE = {
    "docs/design.md": "# Design\n\n## The `Store`, in short\n\n### Twice\n\n### Twice\n\n```\n# Not a heading\n```\n"
                      "## [Linked](other.md) text\n\n<a id=\"named\"></a>\n## snake_case & more - or less\n",
    "docs/other.md": "# Other\n",
    "docs/decisions/0001-a.md": "# 1. A\n",
    "src/a.h": "// A.\n",
    "docs/a picture.png": "",
}


class CheckLinksTest(unittest.TestCase):

    def check(self, files):
        with tempfile.TemporaryDirectory() as root:
            for name, content in (TREE | files).items():
                file = Path(root, name)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(content, encoding="utf-8")
            with contextlib.redirect_stdout(io.StringIO()) as output:
                code = check_links.main(Path(root))
            return code, output.getvalue()

    def assert_accepted(self, path, text):
        code, output = self.check({path: text})
        self.assertEqual(code, 0, output)

    def assert_refused(self, path, text, *findings):
        code, output = self.check({path: text})
        self.assertEqual((code, output.splitlines()), (1, [f"{path}:{finding}" for finding in findings]))

    def test_files_and_folders_of_the_tree_may_be_linked(self):
        self.assert_accepted("README.md", "[a](docs/design.md) [b](src/a.h) [c](docs/decisions) [d](docs/) [e](/src/a.h)\n")
        self.assert_accepted("docs/x.md", "[a](design.md)\n[c](decisions/0001-a.md) [d](./other.md) ![e](a%20picture.png) "
                             "[f](<design.md>) [g](design.md \"title\") [h](../src/a.h)\n")

    def test_a_missing_file_is_refused_with_its_line(self):
        self.assert_refused("README.md", "# A\n\n[a](docs/gone.md),\n[b](docs/design.md)\n",
                            "3: the link (docs/gone.md) is broken: docs/gone.md does not exist")
        self.assert_refused("docs/x.md", "[a](docs/design.md)\n",
                            "1: the link (docs/design.md) is broken: docs/docs/design.md does not exist")

    def test_a_name_that_differs_in_case_is_refused(self):
        self.assert_refused("README.md", "[a](docs/Design.md)\n",
                            "1: the link (docs/Design.md) is broken: docs/Design.md does not exist")

    def test_headings_may_be_linked(self):
        self.assert_accepted("docs/x.md", "# Here it is\n[a](design.md#the-store-in-short) [b](#here-it-is) [c](design.md#twice)"
                             " [d](design.md#twice-1) [e](design.md#linked-text) [f](design.md#named)"
                             " [g](design.md#snake_case--more---or-less) [h](../src/a.h#L1)\n")

    def test_a_missing_heading_is_refused(self):
        self.assert_refused("docs/x.md", "[a](design.md#twice-2)\n[b](design.md#not-a-heading)\n[c](#gone)\n[d](../src/a.h#a)\n",
                            "1: the link (design.md#twice-2) is broken: docs/design.md has no heading #twice-2",
                            "2: the link (design.md#not-a-heading) is broken: docs/design.md has no heading #not-a-heading",
                            "3: the link (#gone) is broken: docs/x.md has no heading #gone",
                            "4: the link (../src/a.h#a) is broken: src/a.h is not a document, so it has no headings")

    def test_a_link_stays_in_the_tree(self):
        self.assert_refused("README.md", "[a](../else.md)\n[b](build/docs/index.html)\n[c]()\n",
                            "1: the link (../else.md) leads out of the tree",
                            "2: the link (build/docs/index.html) leads into build/, which a clone does not have",
                            "3: the link () names nothing")

    def test_other_forms_of_links_are_read(self):
        self.assert_accepted("README.md", "[a][one] [b][One]\n\n[one]: docs/design.md\n<img src=\"docs/a%20picture.png\">\n")
        self.assert_refused("README.md", "[a][one] [b][two]\n\n[one]: gone.md\n<a href=\"no.html\">\n",
                            "1: the link [two] is not defined",
                            "3: the link (gone.md) is broken: gone.md does not exist",
                            "4: the link (no.html) is broken: no.html does not exist")

    def test_other_sites_and_code_are_not_read(self):
        self.assert_accepted("README.md", "[a](docs/design.md) [b](https://example.com/x#y) [c](mailto:a@example.com)\n"
                             "`[d](gone.md)` ``[e](`gone.md)``\n```\n[f](gone.md)\n```\n- a\n  ~~~\n  [g](gone.md)\n  ~~~\n")

    def test_links_of_a_list_are_read(self):
        self.assert_refused("README.md", "- a\n\n    [b](gone.md)\n",
                            "3: the link (gone.md) is broken: gone.md does not exist")

    def test_what_is_built_or_installed_is_not_read(self):
        self.assert_accepted("README.md", "[a](docs/design.md)\n")
        code, output = self.check({"README.md": "[a](docs/design.md)", "build/a.md": "[a](gone.md)",
                                   "tests/node/node_modules/x/README.md": "[a](gone.md)"})
        self.assertEqual(code, 0, output)

    def test_a_tree_without_links_is_not_a_success(self):
        code, output = self.check({"docs/design.md": "# A\n"})
        self.assertEqual(code, 1)
        self.assertIn("nothing was checked", output)


if __name__ == "__main__":
    unittest.main()
