#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of check_includes.py: small trees, each with one thing wrong or right."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path

import check_includes


class CheckIncludesTest(unittest.TestCase):

    def check(self, files):
        """Runs the check on a tree of {path: text}; returns its exit code and what it printed."""
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                file = Path(root, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            with contextlib.redirect_stdout(io.StringIO()) as output:
                code = check_includes.main(Path(root))
            return code, output.getvalue()

    def assert_refused(self, path, text, *parts):
        code, output = self.check({path: text})
        self.assertEqual(code, 1, output)
        self.assertTrue(output.startswith(path + ":"), output)
        for part in parts:
            self.assertIn(part, output)

    def assert_accepted(self, path, text):
        code, output = self.check({path: text})
        self.assertEqual(code, 0, output)

    def test_an_edge_against_the_direction_names_line_edge_and_what_is_allowed(self):
        self.assert_refused("src/store/model.cc", '#include "src/base/coding.h"\n\n#include "src/txn/lock.h"\n',
                            "src/store/model.cc:3: ", "src/store -> src/txn", "allowed from src/store: include/percolator, include/percolator/spi, src/base")

    def test_edges_along_the_direction_are_accepted(self):
        self.assert_accepted("src/txn/commit.cc", '#include "percolator/spi/store.h"\n#include "src/base/coding.h"\n'
                             '#include "src/coord/row_claims.h"\n#include "src/txn/lock.h"\n')

    def test_base_uses_nothing_else(self):
        self.assert_refused("src/base/clock.cc", '#include "src/store/model.h"\n', "src/base -> src/store")

    def test_the_oracle_does_not_know_the_store(self):
        self.assert_refused("src/oracle/oracle.cc", '#include "src/store/validate.h"\n', "src/oracle -> src/store")

    def test_a_store_does_not_know_another_store(self):
        self.assert_refused("src/store/memory/memory_store.cc", '#include "src/store/rocks/rocks_store.h"\n',
                            "src/store/memory -> src/store/rocks")

    def test_the_common_part_of_the_stores_does_not_know_them(self):
        self.assert_refused("src/store/model.cc", '#include "src/store/rocks/rocks_store.h"\n',
                            "src/store -> src/store/rocks")

    def test_transactions_do_not_know_which_store(self):
        self.assert_refused("src/txn/get.cc", '#include "src/store/memory/x.h"\n', "src/txn -> src/store/memory")

    def test_the_cluster_may_use_every_kind_of_part(self):
        self.assert_accepted("src/cluster/remote.cc", '#include "src/store/bigtable/bigtable_store.h"\n'
                             '#include "src/oracle/remote/remote_oracle.h"\n#include "src/coord/etcd/etcd_coordinator.h"\n')

    def test_an_implementation_does_not_know_the_server(self):
        self.assert_refused("src/store/remote/remote_store.cc", '#include "src/server/calls.h"\n',
                            "src/store/remote -> src/server")

    def test_only_the_rocks_store_tests_and_benchmarks_include_rocksdb(self):
        self.assert_refused("src/store/model.cc", "#include <rocksdb/db.h>\n", "RocksDB (rocksdb/db.h)", "src/store/rocks")
        self.assert_refused("src/txn/get.cc", '#include "rocksdb/db.h"\n', "RocksDB")
        for path in "src/store/rocks/rocks_store.cc", "tests/crash_test.cc", "benchmarks/store_bench.cc":
            self.assert_accepted(path, "#include <rocksdb/db.h>\n")

    def test_few_folders_include_grpc(self):
        for name in "<grpcpp/grpcpp.h>", "<google/protobuf/message.h>", '"bigtable.pb.h"':
            self.assert_refused("src/txn/get.cc", f"#include {name}\n", "gRPC and protobuf", "allowed in: src/wire, src/etcd")
        self.assert_accepted("src/server/server.cc", '#include <grpcpp/grpcpp.h>\n#include "proto/bigtable.pb.h"\n')

    def test_public_headers_use_only_public_headers_abseil_and_the_standard_library(self):
        header = "include/percolator/spi/store.h"
        self.assert_refused(header, '#include "src/base/coding.h"\n', "include/percolator/spi -> src/base")
        self.assert_refused(header, "#include <boost/context/fiber.hpp>\n", "allowed: Abseil, the standard library")
        self.assert_accepted(header, '#include <string>\n#include "absl/status/status.h"\n#include "percolator/timestamp.h"\n')

    def test_user_headers_include_no_header_of_implementers(self):
        self.assert_refused("include/percolator/cluster.h", '#include "percolator/spi/store.h"\n',
                            "include/percolator -> include/percolator/spi")
        self.assert_refused("apps/webindex/main.cc", '#include "percolator/spi/store.h"\n', "apps -> include/percolator/spi")

    def test_a_type_is_defined_once(self):
        one = "namespace percolator {\n\nclass Catalog final : public Base {\n};\n\n}  // namespace percolator\n"
        hidden = one.replace("class", "namespace {\nclass").replace("};\n", "};\n}  // namespace\n")
        code, output = self.check({"src/store/catalog.h": one, "src/txn/catalog.h": one})
        self.assertEqual(code, 1, output)
        self.assertIn("src/txn/catalog.h:3: defines percolator::Catalog, as src/store/catalog.h does", output)
        code, output = self.check({"src/store/catalog.h": one, "src/txn/a.cc": hidden, "src/txn/b.cc": hidden})
        self.assertEqual(code, 0, output)

    def test_a_program_does_not_define_a_type_of_the_library_again(self):
        one = "namespace percolator {\n\nclass Catalog {\n};\n\n}  // namespace percolator\n"
        hidden = one.replace("class", "namespace {\nvoid F() {\n}\nclass").replace("};\n", "};\n}  // namespace\n")
        for path in ("apps/percolator/catalog.h", "benchmarks/catalog.h", "examples/catalog.h", "sim/catalog.h",
                     "src/store/catalog_test.cc", "tests/catalog.h"):
            code, output = self.check({path: one, "src/store/catalog.h": one})
            self.assertEqual(code, 1, output)
            self.assertIn(f"{path}:3: defines percolator::Catalog, as src/store/catalog.h does", output)
            code, output = self.check({path: hidden, "src/store/catalog.h": one})
            self.assertEqual(code, 0, output)
        code, output = self.check({"benchmarks/catalog.h": one, "tests/catalog.h": one})
        self.assertEqual(code, 0, output)

    def test_an_edge_that_no_file_uses_is_refused(self):
        code, output = self.check({"src/oracle/CMakeLists.txt": "percolator_module(oracle SOURCES a.cc DEPS absl::status)\n",
                                   "src/oracle/a.cc": '#include "percolator/status.h"\n#include "percolator/spi/oracle.h"\n',
                                   "src/oracle/a_test.cc": '#include "src/base/coding.h"\n'})
        self.assertEqual(code, 1, output)
        self.assertEqual(output, "src/oracle/CMakeLists.txt:1: no file of src/oracle includes a header of src/base: take the "
                         "edge out of tools/check_includes.py\n")

    def test_a_module_is_linked_with_exactly_what_it_includes(self):
        base_user = ('#include "percolator/status.h"\n#include "percolator/spi/oracle.h"\n'
                     '#include "src/base/coding.h"\n')
        base = {"src/base/CMakeLists.txt": "percolator_module(base\n  SOURCES a.cc\n  DEPS absl::status)\n",
                "src/base/a.cc": '#include "percolator/status.h"\n#include "percolator/spi/runtime.h"\n',
                "src/oracle/a.cc": base_user}
        code, output = self.check(base | {"src/oracle/CMakeLists.txt": "percolator_module(oracle DEPS percolator_base)\n"})
        self.assertEqual(code, 0, output)
        code, output = self.check(base | {"src/oracle/CMakeLists.txt": "percolator_module(oracle DEPS ZLIB::ZLIB)\n"})
        self.assertEqual(code, 1, output)
        self.assertIn("DEPS does not name src/base, though a file of src/oracle uses it", output)
        coord = {"src/coord/CMakeLists.txt": "percolator_module(coord DEPS percolator_oracle percolator_base)\n",
                 "src/coord/a.cc": base_user,
                 "src/oracle/CMakeLists.txt": "percolator_module(oracle DEPS percolator_base)\n"}
        code, output = self.check(base | coord)
        self.assertEqual(code, 1, output)
        self.assertEqual(output, "src/coord/CMakeLists.txt:1: DEPS names src/oracle, which no file of src/coord uses\n")

    def test_the_build_adds_the_modules_in_the_order_of_their_dependencies(self):
        file = {"src/base/a.cc": "int x;\n"}
        order = [f"add_subdirectory({folder})\n" for folder in check_includes.EDGES if folder.startswith("src/")]
        code, output = self.check(file | {"CMakeLists.txt": "".join(order)})
        self.assertEqual(code, 0, output)
        code, output = self.check(file | {"CMakeLists.txt": "".join(reversed(order))})
        self.assertEqual(code, 1, output)
        self.assertIn("CMakeLists.txt:1: the modules are not in the order of EDGES", output)

    def test_each_edge_leads_to_what_stands_above(self):
        folders = list(check_includes.EDGES)
        for folder, edges in check_includes.EDGES.items():
            for edge in edges:
                if edges != check_includes.ANYTHING:
                    self.assertLess(folders.index(edge), folders.index(folder), f"{folder} -> {edge}")

    def test_the_header_of_every_user_stays_small(self):
        big = "int x;\n" * 400
        code, output = self.check({"include/percolator/cluster.h": '#include "percolator/big.h"\n' + big,
                                   "include/percolator/big.h": big})
        self.assertEqual(code, 1, output)
        self.assertIn("brings in 800 lines of our own headers; the limit is 600", output)

    def test_transactions_do_not_speak_of_bigtable(self):
        self.assert_refused("src/txn/gc.cc", "int a;  // of Bigtable's clients\n", "gc.cc:1: ", "bigtable")
        self.assert_accepted("src/base/x.cc", "int a;  // of Bigtable's clients\n")

    def test_a_public_header_has_at_most_100_columns(self):
        self.assert_refused("include/percolator/x.h", "int a;\n//" + "x" * 99 + "\n", "x.h:2: ", "101 columns", "100")
        self.assert_accepted("include/percolator/x.h", "//" + "x" * 98 + "\n")
        self.assert_accepted("src/base/x.h", "//" + "x" * 118 + "\n")

    def test_examples_use_only_the_public_headers_and_their_own(self):
        self.assert_refused("examples/bank.cc", '#include "src/base/coding.h"\n', "examples -> src/base")
        self.assert_accepted("examples/bank.cc", '#include "percolator/spi/store.h"\n#include "examples/table.h"\n')

    def test_an_app_does_not_include_another_app(self):
        self.assert_refused("apps/webindex/main.cc", '#include "apps/percolator/serve.h"\n', "apps/ stands alone")
        self.assert_accepted("apps/webindex/main.cc", '#include "apps/webindex/parse.h"\n')

    def test_tests_may_include_anything_of_ours(self):
        self.assert_accepted("tests/x_test.cc", '#include "src/store/rocks/rocks_store.h"\n#include <gtest/gtest.h>\n')

    def test_gtest_is_for_tests_only(self):
        self.assert_refused("src/base/coding.cc", '#include "gtest/gtest.h"\n', "GoogleTest")
        self.assert_accepted("src/base/coding_test.cc", '#include "gtest/gtest.h"\n#include "tests/temp_dir.h"\n')

    def test_a_unit_test_keeps_the_edges_of_its_module(self):
        self.assert_refused("src/base/coding_test.cc", '#include "src/store/validate.h"\n', "src/base -> src/store")

    def test_an_include_without_its_folder_is_refused(self):
        self.assert_refused("src/base/coding.cc", '#include "coding.h"\n', "from the root of the tree")

    def test_a_file_outside_of_every_module_is_refused(self):
        self.assert_refused("src/new/thing.cc", "int x;\n", "in no known folder")

    def test_an_include_of_an_unknown_folder_is_refused(self):
        self.assert_refused("tests/x_test.cc", '#include "src/new/thing.h"\n', "in no known folder")

    def test_absl_mutex_is_refused_even_in_tests(self):
        self.assert_refused("tests/x_test.cc", "absl::Mutex mutex;\n", "uses absl::Mutex", "percolator/spi/mutex.h")
        self.assert_refused("tests/x_test.cc", '#include "absl/synchronization/mutex.h"\n', "Abseil's Mutex")

    def test_time_chance_and_waiting_come_through_the_seams(self):
        for text, reason in (("std::this_thread::sleep_for(x);", "waiting seam"),
                             ("std::this_thread::sleep_until(x);", "waiting seam"),
                             ("usleep(5);", "waiting seam"),
                             ("thread_local int x;", "fibers"),
                             ("std::random_device device;", "Random seam"),
                             ("auto t = std::chrono::system_clock::now();", "Clock seam"),
                             ("auto t = std::chrono::steady_clock::now();", "Clock seam"),
                             ("auto t = absl::Now();", "Clock seam")):
            with self.subTest(text=text):
                self.assert_refused("src/txn/get.cc", f"\n{text}\n", "src/txn/get.cc:2: ", reason)
                self.assert_refused("sim/sim.cc", text, reason)
                for path in ("src/base/clock.cc", "tests/x_test.cc", "benchmarks/x_bench.cc", "examples/bank.cc",
                             "apps/webindex/main.cc", "src/txn/get_test.cc"):
                    self.assert_accepted(path, text + "\n")

    def test_comments_and_strings_are_not_code(self):
        self.assert_accepted("src/txn/get.cc", '// no thread_local\n/* #include "src/observe/x.h"\nthread_local */\n'
                             'const char* a = "thread_local \\" thread_local";\n'
                             'const char* b = R"x(thread_local " )" thread_local)x";\n')

    def test_code_after_a_digit_separator_or_a_quote_is_still_seen(self):
        self.assert_refused("src/txn/get.cc", "int x = 100'000; thread_local int y; int z = 1'000;\n", "thread_local")
        self.assert_refused("src/txn/get.cc", "char x = '\"'; thread_local int y; char z = '\"';\n", "thread_local")

    def test_every_finding_is_reported(self):
        code, output = self.check({"src/base/a.cc": '#include "src/txn/x.h"\n#include "b.h"\n',
                                   "src/txn/c.h": "thread_local int x;\n"})
        self.assertEqual(code, 1)
        self.assertEqual([line.split(": ")[0] for line in output.splitlines()],
                         ["src/base/a.cc:1", "src/base/a.cc:2", "src/txn/c.h:1"])

    def test_an_empty_tree_is_not_a_success(self):
        code, output = self.check({})
        self.assertEqual(code, 1)
        self.assertIn("nothing was checked", output)


if __name__ == "__main__":
    unittest.main()
