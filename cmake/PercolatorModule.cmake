# SPDX-License-Identifier: Apache-2.0

# percolator_module(NAME SOURCES ... [TESTS ...] [DEPS ...] [TEST_DEPS ...])
#
# Defines the module percolator_NAME of the sources beside the calling file. DEPS are all it may use: the modules it
# names and libraries from outside. The module's own unit tests are linked with that and nothing else, so a dependency
# that is not declared here does not link. (tools/check_includes.py does the same for headers.) TEST_DEPS are libraries for
# tests, themselves linked with nothing but percolator_base.
function(percolator_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;TESTS;DEPS;TEST_DEPS" ${ARGN})
  set(target percolator_${name})
  add_library(${target} STATIC ${ARG_SOURCES})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR})
  target_link_libraries(${target} PUBLIC ${ARG_DEPS} PRIVATE $<BUILD_INTERFACE:percolator_flags>)
  # File by file, also where the rest is compiled together: so that a missing #include fails, and because percsim_mutants, which
  # compiles some of these sources again, must not get the same from an object with others in it.
  if(NOT PERCOLATOR_SANITIZE)
    set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
  endif()
  set_property(GLOBAL APPEND PROPERTY PERCOLATOR_MODULES ${target})
  set_property(GLOBAL APPEND PROPERTY PERCOLATOR_LIBRARIES ${ARG_DEPS})
  if(PERCOLATOR_BUILD_TESTS AND ARG_TESTS)
    percolator_test(${name}_test SOURCES ${ARG_TESTS} DEPS ${target} ${ARG_TEST_DEPS})
  endif()
endfunction()

# percolator_test(NAME SOURCES ... DEPS ... [LABELS ...] [TIMEOUT seconds])
#
# A GoogleTest program. CTest has its tests twice, and a run excludes one of the two forms (tools/run_tests.py):
# - each of its tests by itself, as NAME.Suite.Case with the label "case": to run chosen tests
# - in five parts, each a process that runs every fifth of the tests, as NAME.part1 and so on with the label "part": to run
#   all of them, because a process takes longer to start and to end than most tests do, above all with a sanitizer
function(percolator_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)  # ends what hangs; no test takes a minute on a quick machine
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} percolator_flags GTest::gmock GTest::gtest_main)
  percolator_test_code(${name})
  string(JOIN "-" case_label case ${ARG_LABELS})  # one label, such as case-slow: gtest_discover_tests takes no list
  gtest_discover_tests(${name} TEST_PREFIX ${name}. DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120 PROPERTIES
    TIMEOUT ${ARG_TIMEOUT} SKIP_REGULAR_EXPRESSION "\\[  SKIPPED \\]" LABELS ${case_label})
  set(cost 0)
  if("slow" IN_LIST ARG_LABELS)
    set(cost 1)  # begins first, so that no core waits for it at the end
  endif()
  math(EXPR timeout "2 * ${ARG_TIMEOUT}")
  foreach(part RANGE 1 5)  # five, because the slow ones among tests with parameters are often every second or fourth
    math(EXPR index "${part} - 1")
    add_test(NAME ${name}.part${part} COMMAND ${name})
    set_tests_properties(${name}.part${part} PROPERTIES TIMEOUT ${timeout} LABELS "part;${ARG_LABELS}" COST ${cost}
      ENVIRONMENT "GTEST_TOTAL_SHARDS=5;GTEST_SHARD_INDEX=${index}")
  endforeach()
endfunction()

# percolator_generated(TARGET): compiles a target whose sources are made by protoc: not held to our warnings, and of the
# sanitizers only with those that have to know of all memory.
function(percolator_generated target)
  if(PERCOLATOR_SANITIZE)
    string(REPLACE ",undefined" "" sanitize ${PERCOLATOR_SANITIZE})
    target_compile_options(${target} PRIVATE -fsanitize=${sanitize})
  endif()
endfunction()

# percolator_test_code(TARGET): compiles a target that includes GoogleTest as test code is. What is precompiled is there
# for every source, included or not; the dev build is without, so that a missing #include does not go unnoticed.
function(percolator_test_code target)
  target_compile_options(${target} PRIVATE ${PERCOLATOR_TEST_OPTIONS})
  set_target_properties(${target} PROPERTIES PERCOLATOR_TEST_CODE ON)
  if(NOT PERCOLATOR_PRECOMPILE)
    return()
  endif()
  if(NOT TARGET percolator_precompiled)
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled.cc CONTENT "")
    add_library(percolator_precompiled OBJECT ${PROJECT_BINARY_DIR}/precompiled.cc)
    set_target_properties(percolator_precompiled PROPERTIES PERCOLATOR_TEST_CODE ON)
    target_link_libraries(percolator_precompiled PRIVATE percolator_flags GTest::gmock)
    target_compile_options(percolator_precompiled PRIVATE ${PERCOLATOR_TEST_OPTIONS} -fpch-preprocess)
    target_precompile_headers(percolator_precompiled PRIVATE
      <gmock/gmock.h> <gtest/gtest.h> <functional> <map> <memory> <string> <thread> <vector>
      <absl/status/status.h> <absl/status/statusor.h>)
  endif()
  target_compile_options(${target} PRIVATE -fpch-preprocess)  # without it ccache does not take part
  target_precompile_headers(${target} REUSE_FROM percolator_precompiled)
endfunction()
