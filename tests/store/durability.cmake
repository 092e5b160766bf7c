# SPDX-License-Identifier: Apache-2.0

# Tests of durability: after a kill, a loss of power, and errors of the disk.

add_library(percolator_fault_fs STATIC fault_fs.cc)
target_include_directories(percolator_fault_fs PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(percolator_fault_fs
  PUBLIC percolator_base RocksDB::rocksdb-shared PRIVATE percolator_flags)
percolator_test(fault_fs_test SOURCES fault_fs_test.cc DEPS percolator_fault_fs percolator_testing)

add_library(percolator_crash_workload STATIC crash_workload.cc crash_ledger.cc)
target_include_directories(percolator_crash_workload PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(percolator_crash_workload PUBLIC percolator_store PRIVATE percolator_flags)
percolator_test(crash_ledger_test SOURCES crash_ledger_test.cc
  DEPS percolator_crash_workload percolator_store_memory percolator_testing)

add_executable(crash_child crash_child.cc)
target_link_libraries(crash_child PRIVATE percolator_crash_workload percolator_store_rocks percolator_flags)
percolator_test(durability_test SOURCES durability_test.cc crash_process.cc LABELS slow
  DEPS percolator_crash_workload percolator_store_rocks percolator_testing)
target_compile_definitions(durability_test PRIVATE CRASH_CHILD="$<TARGET_FILE:crash_child>")
add_dependencies(durability_test crash_child)

# Not with ThreadSanitizer: RocksDB, which is not instrumented, hands the files of FaultFs between its threads.
if(NOT PERCOLATOR_SANITIZE STREQUAL "thread")
  percolator_test(fault_test SOURCES fault_test.cc LABELS slow
    DEPS percolator_fault_fs percolator_crash_workload percolator_store_rocks percolator_testing)
endif()
