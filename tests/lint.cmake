# SPDX-License-Identifier: Apache-2.0

# Tests that look at the sources and the package, not at the code as it runs. They would find the same in a build with
# sanitizers (and a sanitized library cannot be linked by a program that is not), so they are left out there.
if(PERCOLATOR_SANITIZE)
  return()
endif()

find_package(Python3 REQUIRED COMPONENTS Interpreter)

# percolator_lint_test(NAME TIMEOUT COMMAND...)
function(percolator_lint_test name timeout)
  add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS lint TIMEOUT ${timeout})
endfunction()

percolator_lint_test(check_includes 300 ${Python3_EXECUTABLE} -B tools/check_includes.py)
percolator_lint_test(check_includes_test 300 ${Python3_EXECUTABLE} -B tools/check_includes_test.py)
percolator_lint_test(check_headers 600 ${CMAKE_COMMAND} -E env CXX=${CMAKE_CXX_COMPILER}
  ${Python3_EXECUTABLE} -B tools/check_headers.py)
percolator_lint_test(check_headers_test 300 ${Python3_EXECUTABLE} -B tools/check_headers_test.py)
percolator_lint_test(check_labels 300 ${Python3_EXECUTABLE} -B tools/check_labels.py)
percolator_lint_test(check_labels_test 300 ${Python3_EXECUTABLE} -B tools/check_labels_test.py)
percolator_lint_test(check_words 300 ${Python3_EXECUTABLE} -B tools/check_words.py)
percolator_lint_test(check_words_test 300 ${Python3_EXECUTABLE} -B tools/check_words_test.py)
percolator_lint_test(check_links 300 ${Python3_EXECUTABLE} -B tools/check_links.py)
percolator_lint_test(check_links_test 300 ${Python3_EXECUTABLE} -B tools/check_links_test.py)
percolator_lint_test(check_license 300 ${Python3_EXECUTABLE} -B tools/check_license.py)
percolator_lint_test(check_license_test 300 ${Python3_EXECUTABLE} -B tools/check_license_test.py)
percolator_lint_test(command_line_test 300 ${Python3_EXECUTABLE} -B tools/command_line_test.py)
percolator_lint_test(doxygen_filter_test 300 ${Python3_EXECUTABLE} -B tools/reference/doxygen_filter_test.py)
percolator_lint_test(run_tests_test 300 ${Python3_EXECUTABLE} -B tools/run_tests_test.py)
percolator_lint_test(mutate_test 300 ${Python3_EXECUTABLE} -B sim/mutate_test.py)
percolator_lint_test(soak_test 300 ${Python3_EXECUTABLE} -B tools/soak_test.py)

# The reference of the public headers can be built without a warning; skipped where Doxygen is not installed.
percolator_lint_test(reference_test 300 ./reference --if-installed)
set_tests_properties(reference_test PROPERTIES SKIP_RETURN_CODE 77)

# What must not compile does not.
percolator_lint_test(misuse_test 300
  ${Python3_EXECUTABLE} -B tests/cluster/misuse_test.py ${CMAKE_CXX_COMPILER} ${PROJECT_SOURCE_DIR}/include)

# What is installed is enough to build a program outside of this tree.
percolator_lint_test(install_test 900
  ${CMAKE_COMMAND} -D BUILD=${PROJECT_BINARY_DIR} -D CXX=${CMAKE_CXX_COMPILER} -D CONFIG=${CMAKE_BUILD_TYPE}
  -D APPS=${PERCOLATOR_BUILD_APPS} -P ${PROJECT_SOURCE_DIR}/tests/install/install_test.cmake)

# And so it is without gRPC, with PERCOLATOR_SERVER=OFF.
if(PERCOLATOR_SERVER AND CMAKE_BUILD_TYPE STREQUAL "Release")
  percolator_lint_test(embedded_only_test 1800
    ${CMAKE_COMMAND} -D SOURCE=${PROJECT_SOURCE_DIR} -D CXX=${CMAKE_CXX_COMPILER}
    -P ${PROJECT_SOURCE_DIR}/tests/install/embedded_only_test.cmake)
  set_tests_properties(embedded_only_test PROPERTIES LABELS slow)
endif()

# docs/command-line.md has the --help of every command.
if(PERCOLATOR_BUILD_APPS)
  percolator_lint_test(command_line_page_test 120
    ${Python3_EXECUTABLE} -B tools/command_line.py ${PROJECT_BINARY_DIR})
endif()

# Every program and command of these pages, against what is installed.
if(PERCOLATOR_BUILD_APPS AND CMAKE_BUILD_TYPE STREQUAL "Release")
  foreach(page tutorial why-it-is-correct)
    percolator_lint_test(${page}_page_test 900 ${Python3_EXECUTABLE} -B
      tests/pages/page_test.py docs/${page}.md ${PROJECT_BINARY_DIR} ${CMAKE_CXX_COMPILER})
    set_tests_properties(${page}_page_test PROPERTIES LABELS slow)
  endforeach()
endif()
