#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of check_words.py: sentences that must be found, sentences that must pass, and what is read of each file."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path

import check_words

# What a rule finds, by the name of the rule.
FOUND = {
    "whoever": ["The lock is settled by whoever meets it.", "Whoever reads at R waits."],
    "somebody": ["There nobody else writes.", "Somebody took it.", "Anybody may connect."],
    "who for a component": ["A process who died keeps its locks.", "Threads who wait share a request.",
                            "Processes who wait share a request."],
    "clause as subject": ["What exceeds it is refused.", "It is small. What came first is taken first.",
                          "Who observes is kept in a table.", "- What pages say is shown as text, never as markup.",
                          "| limit | What exceeds it is refused. |"],
    "so many": ["Runs the fuzzers for so many minutes.", "Fuzz targets, for so long in all."],
    "else for otherwise": ["All locks are gone: else the run is stuck.", "A number, else text.",
                           "Verify it. Else an older run could overwrite it."],
    "is none": ["Marks a record that is none."],
    "is no ...": ["Bytes that are no record are refused.", "A text which is no whole number fails."],
    "of which": ["Cancels calls of which nothing was taken.", "The column of which it is a copy."],
    "tell of": ["A hint tells of a change.", "Listeners are told of it."],
    "said so": ["A bad record is said to be so.", "It is said so."],
    "begins so": ["Only rows that begin so."],
    "contraction": ["The address can't be read.", "It doesn’t wait."],
    "that cannot be": ["With options that cannot be, nothing runs."],
    "at most": ["How often the function is run at most.", "How many bytes a request\nhas at most."],
    "is there twice": ["The setting is there twice."],
    "taken for dead": ["It took the owner for dead.", "A session that was taken for dead revives."],
    "begins with nothing": ["It begins with nothing that is known."],
    "for ever": ["It is retried for ever."],
    "marketing": ["A blazing fast store.", "Scales seamlessly.", "It leverages RocksDB.", "State-of-the-art locks."],
}

CORRECT = """\
Returns the lock of the cell, or nullopt if there is none. Otherwise waits until the timeout.

What happens when a server is restarted? What if the disk is damaged? What is a lock made of?

What matters is the order. What follows is described in two steps. Who may connect is a question of the network.

## What clients are told

| What old clients are told | Who may connect |

1. What a store is told
2. What is stored, and where

The reader who wants to know more continues with the design. An operator who restarts a server loses nothing.
Everything else is unchanged; nothing else runs, and anything else is an error, or else a warning. The else branch returns.
There are so many rows that a scan takes minutes. It has waited for so long. After so many years it fails.
It waits so long that leases expire, as long as it can, not so much for safety
as for speed. So much for speed. As many as possible, so long as the lease holds.
It is no longer than the limit and no slower than before. This is no accident. There is no record of it. There are no locks.
It has three oracles, one of which leads, and two servers, both of which are idle. Because of which reason? Some of which.
The rules, of which there are three, hold.
It tells the coordinator. He was told that it failed. Is it done? They said so. It does so. It begins, so a reader waits.
A value that cannot be read is DataLoss. A lock cannot be refused. At most one runs. It runs at most twice, 8 at most.
How many rows are read? It depends on how many rows are read. The lock is held forever. It took the lock for reading.
There is a table of which observer runs where, a page that says who leads, and a list: who holds what, since when; who
links to a page, and with which words. Two parts: who leads, the bound, and clocks. The parts: what snapshots are made of.
It is left for dead code. The server is therefore started twice. It is there. It is a simple, powerful, robust rule.
Whatever it holds, whichever comes first, and whether it leads: no thread waits. Someone has to look at it. Everybody waits.
"""


def clean_file(scope):
    """The name and the content of a file without findings in a scope."""
    path, kind = scope
    name = {"text": "a.md", "comments": "a.h", "messages": "b.cc", "scripts": "a.py", "histories": "a.txt",
            "mutants": "a.mutant"}[kind]
    is_file = path.endswith((".md", ".txt")) or path in ("bench", "reference", "run", "setup", "test")
    return path if is_file else f"{path}/{name}", "#!/bin/bash\n// A lock.\nF(\"a message of words\");\n"


class CheckWordsTest(unittest.TestCase):

    def names(self, text, kind="text", suffix=".cc"):
        return [message.split("(")[1].split(")")[0] for _, message in check_words.check_text(text, kind, suffix)[0]]

    def test_each_construction_is_found(self):
        for name, texts in FOUND.items():
            for text in texts:
                with self.subTest(text):
                    self.assertEqual(set(self.names(text)), {name})

    def test_each_rule_has_an_example(self):
        self.assertEqual(list(dict.fromkeys(name for name, _, _ in check_words.RULES)), list(FOUND))

    def test_correct_english_passes(self):
        for paragraph in CORRECT.split("\n\n"):
            with self.subTest(paragraph):
                self.assertEqual(self.names(paragraph), [])
        self.assertEqual(self.names(CORRECT), [])

    def test_a_message_names_the_replacement(self):
        (line, message), = check_words.check_text("One.\n\nTwo. The name\ncan't be read.\n", "text")[0]
        self.assertEqual(line, 4)
        self.assertEqual(message, '"can\'t" (contraction): write the full form: "cannot", "does not"')

    def test_a_construction_over_two_lines_is_found_where_it_begins(self):
        findings, _ = check_words.check_text("// A text that\n//     is\n// none.\n", "comments")
        self.assertEqual([line for line, _ in findings], [1])

    def test_paragraphs_headings_cells_and_items_end_a_sentence(self):
        self.assertEqual(self.names("# The store that\n\nis none\n"), [])
        self.assertEqual(self.names("- Locks of\n- which\n"), [])
        self.assertEqual(self.names("| that | is none |\n"), [])

    def test_code_of_documents_is_not_read(self):
        self.assertEqual(self.names("```\n# whoever\n```\n\n    can't\n\nSee `nobody`, \"whoever\", [x](docs/whoever.md).\n"), [])
        self.assertEqual(self.names("1. One:\n   whoever\n"), ["whoever"])

    def test_of_a_source_file_comments_or_messages_are_read(self):
        text = '// See "whoever" and `whoever`.\nint whoever;  // nobody\nF("the name can\'t be read");\n/* for ever */\n'
        self.assertEqual(self.names(text, "comments"), ["somebody", "for ever"])
        self.assertEqual(self.names(text, "messages"), ["contraction"])

    def test_code_in_comments_is_not_read(self):
        self.assertEqual(self.names("// Use:\n//     if (a) return; else b();\n//     } else {\n", "comments"), [])

    def test_short_literals_are_names_and_adjacent_ones_are_one(self):
        self.assertEqual(self.names('F("whoever"); F("nobody", 1);\n', "messages"), [])
        self.assertEqual(self.names('F("the text that is "\n  "none at all");\n', "messages"), ["is none"])
        self.assertEqual(self.names('F("one, two, three that is", "none at all, so");\n', "messages"), [])
        self.assertEqual(self.names('F("can\'t open");\n', "messages"), ["contraction"])

    def test_status_codes_in_documents_are_words(self):
        text = "Fails with kNotFound, or\nwith `kDataLoss`. Modes: `kSync`.\n\n```\nkAborted\n```\nWrite Aborted, not `kAborted`.\n"
        self.assertEqual([(line, message.split(":")[0]) for line, message in check_words.check_text(text, "text")[0]],
                         [(1, '"kNotFound" (status code)'), (2, '"kDataLoss" (status code)')])
        self.assertEqual(self.names("// kNotFound  there is no such table\n", "comments"), [])

    def test_quotes_in_messages_are_not_read(self):
        self.assertEqual(self.names('F("see `nobody` or \\"for ever\\" there");\n', "messages"), [])
        self.assertEqual(self.names("f(`see ${nobody.here} there`);\n", "messages", ".js"), [])

    def test_literals_of_javascript(self):
        text = "const s = 'the page that is none', t = `${a} of\nnobody`, u = \"can't read\";  // whoever\n"
        self.assertEqual(self.names(text, "messages", ".js"), ["is none", "contraction", "somebody"])
        self.assertEqual(self.names(text, "comments", ".js"), ["whoever"])

    def test_comments_and_docstrings_of_scripts_are_read(self):
        python = ('#!/usr/bin/env python3\n"""For ever, "nobody".\n\n    x.py  for whoever\n"""\n\nNAME = "nobody at all"  # It can\'t.\n'
                  'def f():\n    """Tells of\n    it."""\n    return "that is none"\n')
        findings, _ = check_words.check_text(python, "scripts", ".py")
        self.assertEqual([(line, message.split("(")[1].split(")")[0]) for line, message in findings],
                         [(2, "for ever"), (4, "whoever"), (7, "contraction"), (9, "tell of")])
        shell = '#!/bin/bash\n# For\n#   ever.\nx=${a#nobody} $#  # whoever\necho "nobody is there"\n'
        self.assertEqual(self.names(shell, "scripts", ""), ["for ever", "whoever"])

    def test_of_a_mutant_the_first_line_is_read_and_of_a_history_the_comments(self):
        self.assertEqual(self.names("whoever reads waits\n\nsrc/a.cc\n  // nobody\n", "mutants"), ["whoever"])
        self.assertEqual(self.names("# H1. For ever.\n\nget t1 x  # nobody\n----\nwhoever: x\n", "histories"),
                         ["for ever", "somebody"])

    def test_the_line_of_the_license_is_no_sentence(self):
        text = "// SPDX-License-Identifier: Apache-2.0\n// Who reads waits.\n"
        self.assertEqual(check_words.check_text(text, "comments")[0][0][0], 2)
        self.assertEqual(self.names("#!/bin/bash\n# SPDX-License-Identifier: Apache-2.0\n# Who reads waits.\n", "scripts"),
                         ["clause as subject"])

    def test_the_comment_of_a_field_stands_alone(self):
        text = "int a;  // cells prefetched\nint b;  // and used\n// and a comment of its own\n"
        (line, message), = check_words.check_text(text, "comments")[0]
        self.assertEqual(line, 2)
        self.assertIn("continues the one above", message)
        self.assertEqual(self.names("int a;  // cells prefetched,\n        // and used\n", "comments"), [])

    def run_on(self, files, function):
        with tempfile.TemporaryDirectory() as root:
            for name, content in files.items():
                file = Path(root, name)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(content, encoding="utf-8")
            with contextlib.redirect_stdout(io.StringIO()) as output:
                code = function(Path(root))
            return code, output.getvalue()

    CLEAN = dict(map(clean_file, check_words.CHECKED))

    def test_a_clean_tree_passes_and_says_what_was_checked(self):
        code, output = self.run_on(self.CLEAN, check_words.main)
        self.assertEqual(code, 0, output)
        self.assertIn(f"text of {sum(kind == 'text' for _, kind in check_words.CHECKED)} files, ", output)

    def test_a_finding_fails_with_its_file_and_line(self):
        code, output = self.run_on(self.CLEAN | {"README.md": "# A\n\nWhoever reads.\n"}, check_words.main)
        self.assertEqual(code, 1)
        self.assertTrue(output.startswith('README.md:3: "Whoever" (whoever): write'), output)

    def test_a_tree_without_texts_is_not_a_success(self):
        code, output = self.run_on({}, check_words.main)
        self.assertEqual(code, 1)
        self.assertIn("nothing was checked", output)

    def test_counting_informs_per_folder(self):
        files = {"README.md": "One two three.\n", "src/txn/a.cc": "// whoever and nobody\n", "src/txn/a_test.cc": ""}
        code, output = self.run_on(files, check_words.count)
        self.assertEqual(code, 0)
        self.assertRegex(output, r"\n +2 +3 +666\.7  src/txn \(comments\)\n")
        self.assertRegex(output, r"\n +2 +6 +333\.3  in all\n")

    def test_what_is_read_by_name(self):
        files = {"a/b.txt": "# nobody\n", "a/CMakeLists.txt": "# whoever\n", "a/b_test.cc": 'F("nobody at all");\n',
                 "a/run": "#!/bin/bash\n# for ever\n", "a/LICENSE": "# nobody\n", "a/build/b.h": "// nobody\n"}
        def found(kind):
            return lambda root: print(*check_words.check_scope(root, "a", kind)[0], sep="\n")
        self.assertEqual(self.run_on(files, found("histories"))[1].split(" ")[0], "a/b.txt:1:")
        self.assertEqual([line.split(" ")[0] for line in self.run_on(files, found("scripts"))[1].splitlines()],
                         ["a/CMakeLists.txt:1:", "a/run:2:"])
        self.assertEqual(self.run_on(files, found("messages"))[1], "\n")
        self.assertEqual(self.run_on(files, found("comments"))[1], "\n")

    def test_the_command_line(self):
        for arguments, code, text in ((["--help"], 0, "Checks that texts"), (["-h"], 0, "Checks that texts"),
                                      (["--hepl"], 2, "unknown option --hepl"), (["no/folder"], 2, "not a folder"),
                                      (["--show"], 2, "needs a file"), (["--show", "/"], 2, "no such file")):
            with self.subTest(arguments), contextlib.redirect_stdout(io.StringIO()) as output, \
                    contextlib.redirect_stderr(output):
                self.assertEqual(check_words.run(arguments), code)
                self.assertIn(text, output.getvalue())


if __name__ == "__main__":
    unittest.main()
