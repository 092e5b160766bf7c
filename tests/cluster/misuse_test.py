#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that misuse the public API must not compile, and say why where we choose the words.

    misuse_test.py COMPILER INCLUDE_FOLDER
"""

import subprocess
import sys
import unittest

COMPILER, INCLUDE = sys.argv[1:3]

PROGRAM = """
#include "percolator/cluster.h"
#include "percolator/observer.h"
using namespace percolator;
constexpr Column<int64_t> kBalance("accounts", "balance");
constexpr NotifyColumn kAudit("accounts", "audit");
absl::Status Use([[maybe_unused]] const Cluster& bank, [[maybe_unused]] ReadWrite& t,
                 [[maybe_unused]] const Snapshot& now, [[maybe_unused]] std::string_view name) {
  %s
  return absl::OkStatus();
}
"""


class MisuseTest(unittest.TestCase):
    def compile(self, line):
        run = subprocess.run([COMPILER, "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", INCLUDE,
                              "-x", "c++", "-"], input=PROGRAM % line, capture_output=True, text=True, check=False)
        return run.returncode, run.stderr

    def assert_refused(self, line, *texts):
        code, errors = self.compile(line)
        self.assertNotEqual(code, 0, f"compiles, but should not: {line}")
        for text in texts:
            self.assertIn(text, errors)

    def test_what_is_right_compiles(self):
        code, errors = self.compile("t.Set(kBalance, name, 7); t.Notify(kAudit, name); return bank.Transact([](ReadWrite&) {});")
        self.assertEqual(code, 0, errors)

    def test_a_table_name_that_is_malformed(self):
        self.assert_refused('constexpr Column<int64_t> bad("my accounts", "balance");', "ATableNameMustMatchLettersDigitsUnderscoreDashUpTo64")

    def test_a_table_name_that_is_known_only_at_run_time(self):
        self.assert_refused('const Column<int64_t> bad(name, "balance");')

    def test_a_value_in_a_column_that_holds_none(self):
        self.assert_refused('t.Set(kAudit, name, 7);')

    def test_a_notification_of_a_column_that_holds_values(self):
        self.assert_refused('t.Notify(kBalance, name);')

    def test_row_and_column_swapped(self):
        self.assert_refused('t.Set(name, kBalance, 7);')

    def test_a_write_to_a_snapshot(self):
        self.assert_refused('now.Set(kBalance, name, 7);')

    def test_a_value_of_another_type(self):
        self.assert_refused('t.Set(kBalance, name, "seven");')

    def test_a_text_in_a_column_of_bools(self):
        self.assert_refused('constexpr Column<bool> flag("accounts", "flag"); t.Set(flag, name, "false");')

    def test_a_fraction_in_a_column_of_integers(self):
        self.assert_refused('t.Set(kBalance, name, 3.9);')

    def test_a_transaction_function_that_returns_something_else(self):
        self.assert_refused('return bank.Transact([](ReadWrite&) { return 7; }).status();',
                            "a transaction function returns void, absl::Status or absl::StatusOr<T>")

    def test_a_commit_result_that_is_ignored(self):
        self.assert_refused('Transaction by_hand(bank); by_hand.Commit();', "nodiscard")

    def test_a_scan_whose_elements_are_not_looked_at(self):
        self.assert_refused('for (const auto& row : now.Scan(kBalance)) {}', "unused variable")

    def test_a_scan_whose_elements_are_copied(self):
        for table in "kBalance", '"accounts"':
            self.assert_refused(f"for (auto row : now.Scan({table})) {{}}", "deleted function")
            self.assert_refused(f"for (const auto row : now.Scan({table})) {{}}", "deleted function")
            for element in "auto& row", "const auto& row", "auto&& row":
                code, errors = self.compile(f"for ({element} : now.Scan({table})) if (!row.ok()) return row.status();")
                self.assertEqual(code, 0, errors)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
