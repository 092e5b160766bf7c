# SPDX-License-Identifier: Apache-2.0

# What can be chosen, and the flags that every target of ours is compiled with.

include(CMakeDependentOption)
option(PERCOLATOR_SERVER "Build servers and what talks to servers, Bigtable or etcd: needs gRPC, Protobuf and RE2" ON)
option(PERCOLATOR_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(PERCOLATOR_BUILD_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
cmake_dependent_option(PERCOLATOR_BUILD_APPS "Build the applications" ${PROJECT_IS_TOP_LEVEL} PERCOLATOR_SERVER OFF)
cmake_dependent_option(PERCOLATOR_BUILD_BENCH "Build the benchmarks" OFF PERCOLATOR_SERVER OFF)
cmake_dependent_option(PERCOLATOR_BUILD_FUZZ "Build the libFuzzer targets: needs clang" OFF PERCOLATOR_SERVER OFF)
option(PERCOLATOR_PRECOMPILE "Precompile the headers that most tests include" OFF)
set(PERCOLATOR_SANITIZE "" CACHE STRING "Sanitizers to build with: address,undefined or thread")

set(PERCOLATOR_DCHECKS_DEFAULT OFF)
if(PERCOLATOR_SANITIZE OR CMAKE_BUILD_TYPE STREQUAL "Debug")
  set(PERCOLATOR_DCHECKS_DEFAULT ON)
endif()
option(PERCOLATOR_DCHECKS "Abort if a precondition or an invariant of the code does not hold (src/base/check.h)"
       ${PERCOLATOR_DCHECKS_DEFAULT})

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

# ccache makes a second build, or one in a fresh clone, take seconds.
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

# Of a target or of all in a folder: its sources are not what is tested.
define_property(TARGET PROPERTY PERCOLATOR_TEST_CODE INHERITED)
add_library(percolator_flags INTERFACE)
target_compile_options(percolator_flags INTERFACE
  -pthread  # in all or in none: what is precompiled must be compiled alike
  -Wall -Wextra -Werror -Wno-missing-field-initializers -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wimplicit-fallthrough
  # At -O3, GCC 12 warns about impossible overlaps in std::string (its bug 105651), and about the inside of an empty
  # std::optional.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict -Wno-maybe-uninitialized>
  # GCC regards sources that are compiled together as headers, and warns about their types with internal linkage.
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>>:-Wno-subobject-linkage>
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>)
if(PERCOLATOR_DCHECKS)
  target_compile_definitions(percolator_flags INTERFACE PERCOLATOR_DCHECKS)
endif()
if(PERCOLATOR_SANITIZE)
  target_compile_options(percolator_flags INTERFACE
    -fsanitize=${PERCOLATOR_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all
    # Checks of UndefinedBehaviorSanitizer more than double the time to compile: they are for what is tested.
    $<$<BOOL:$<TARGET_PROPERTY:PERCOLATOR_TEST_CODE>>:-fno-sanitize=undefined>)
  target_link_options(percolator_flags INTERFACE -fsanitize=${PERCOLATOR_SANITIZE})
endif()

if(PERCOLATOR_BUILD_FUZZ)  # the warnings of clang are for the lint stage
  target_compile_options(percolator_flags INTERFACE -fsanitize=fuzzer-no-link -Wno-error)
endif()

# Test code is most of the code and runs only once: it is compiled to be compiled quickly, what it tests as always.
set(PERCOLATOR_TEST_OPTIONS)
if(PERCOLATOR_SANITIZE)
  set(PERCOLATOR_TEST_OPTIONS -O0)
elseif(CMAKE_BUILD_TYPE STREQUAL "Release")
  set(PERCOLATOR_TEST_OPTIONS -O1)
endif()
