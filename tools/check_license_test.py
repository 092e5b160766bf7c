#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of check_license.py: small trees with and without the line."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path

import check_license

LINE = check_license.LINE
TREE = {
    "src/a.h": f"// {LINE}\n\n// A.\n",
    "src/a.proto": f"// {LINE}\n",
    "web/a.css": f"/* {LINE} */\n",
    "web/a.html": f"<!DOCTYPE html>\n<!-- {LINE} -->\n",
    "web/b.html": f"<!-- {LINE} -->\n",
    "tools/a.py": f"#!/usr/bin/env python3\n# {LINE}\n",
    "tools/b.py": f"# {LINE}\n",
    "CMakeLists.txt": f"# {LINE}\n",
    "run": f"#!/bin/bash\n# {LINE}\n",
    # What is not a source, or not ours.
    "LICENSE": "Apache\n",
    "docs/a.md": "# A\n",
    "sim/a.mutant": "wrong\n",
    "tests/histories/a.txt": "# H1\n",
    "tests/fuzz/corpus/a/b.h": "int a;\n",
    "build/a.h": "int a;\n",
    "tests/node/node_modules/a.js": "a();\n",
}


class CheckLicenseTest(unittest.TestCase):

    def check(self, files):
        with tempfile.TemporaryDirectory() as root:
            for name, content in files.items():
                file = Path(root, name)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(content, encoding="utf-8")
            with contextlib.redirect_stdout(io.StringIO()) as output:
                code = check_license.main(Path(root))
            return code, output.getvalue()

    def test_a_tree_with_all_lines_passes(self):
        code, output = self.check(TREE)
        self.assertEqual((code, output), (0, "license: all 9 sources name it\n"))

    def test_a_source_without_the_line_is_found(self):
        for name, text in (("src/b.cc", "int a;\n"), ("src/b.cc", f"\n// {LINE}\n"), ("src/b.cc", ""),
                           ("src/b.cc", f"int a;\n// {LINE}\n"), ("src/b.cc", f"# {LINE}\n"), ("src/b.cc", f"// {LINE}-or-later\n"),
                           ("x/b.py", f'"""B."""\n# {LINE}\n'), ("y.sh", "#!/bin/bash\n"), ("z.cmake.in", "@A@\n"),
                           ("bench", "#!/bin/bash\n# Builds.\n"), ("apps/web/c.js", "a();\n"), ("d.go", "package d\n")):
            with self.subTest(name=name, text=text):
                code, output = self.check(TREE | {name: text})
                self.assertEqual(code, 1)
                self.assertTrue(output.startswith(f"{name}:1: has no line"), output)

    def test_a_finding_says_which_line(self):
        self.assertIn(f"line 1 must be: // {LINE}\n", self.check(TREE | {"a.cc": "int a;\n"})[1])
        self.assertIn(f"line 2 must be: # {LINE}\n", self.check(TREE | {"test": "#!/bin/bash\n"})[1])

    def test_a_tree_without_sources_is_not_a_success(self):
        self.assertEqual(self.check({"a.md": "# A\n"})[0], 1)


if __name__ == "__main__":
    unittest.main()
