# SPDX-License-Identifier: Apache-2.0

# percolator_mutants(NAME FOLDER path [SOURCES ...])
#
# A program whose library has all bugs of FOLDER/*.mutant, each behind a switch (sim/mutate.py). The sources that they edit
# are compiled once more, from copies: being linked first, those take the place of the ones in the libraries. So none of the
# latter may be in an object with another source.
function(percolator_mutants name)
  cmake_parse_arguments(ARG "" "FOLDER" "SOURCES" ${ARGN})
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  file(GLOB mutants CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${ARG_FOLDER}/*.mutant)
  set(script ${PROJECT_SOURCE_DIR}/sim/mutate.py)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${mutants} ${script})  # because they say which sources
  set(mutate ${Python3_EXECUTABLE} -B ${script} ${PROJECT_SOURCE_DIR} ${ARG_FOLDER})
  execute_process(COMMAND ${mutate} OUTPUT_VARIABLE mutated COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]+" mutated "${mutated}")
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${name}.mutated)
  list(TRANSFORM mutated PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE originals)
  list(TRANSFORM mutated PREPEND ${folder}/ OUTPUT_VARIABLE copies)
  set(here ${originals})
  list(FILTER here INCLUDE REGEX "^${CMAKE_CURRENT_SOURCE_DIR}/")  # elsewhere, each file is compiled by itself anyway
  set_source_files_properties(${here} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  list(APPEND copies ${folder}/list.cc)
  add_custom_command(OUTPUT ${copies} COMMAND ${mutate} ${folder}
    DEPENDS ${script} ${mutants} ${originals} VERBATIM COMMENT "Writing mutants into copies of the sources")
  add_executable(${name} ${copies} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  # The tests must catch a mutant. A failed assertion would end the process first.
  target_compile_options(${name} PRIVATE -UPERCOLATOR_DCHECKS)
endfunction()

# percolator_test_each_mutant(NAME FOLDER [ARGUMENT...])
#
# NAME, a program of percolator_mutants made of GoogleTest's tests, must fail with each of the mutants on.
function(percolator_test_each_mutant name folder)
  target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/testing/switch_mutant.cc ${PROJECT_SOURCE_DIR}/sim/mutants.cc)
  percolator_test_code(${name})
  file(GLOB mutants CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.mutant)
  foreach(mutant ${mutants})
    cmake_path(GET mutant STEM mutant)
    add_test(NAME ${name}.${mutant} COMMAND ${name} --gtest_fail_fast ${ARGN})
    set_tests_properties(${name}.${mutant} PROPERTIES
      WILL_FAIL ON TIMEOUT 600 LABELS slow ENVIRONMENT PERCOLATOR_MUTANT=${mutant})
  endforeach()
endfunction()
