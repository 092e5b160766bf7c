# SPDX-License-Identifier: Apache-2.0

# Builds the library with PERCOLATOR_SERVER=OFF where neither gRPC nor Protobuf can be found, runs the tests of what such a build
# refuses, installs it, and builds and runs an example against the installed library.
#
#   cmake -D SOURCE=<root> -D CXX=<compiler> -P embedded_only_test.cmake

# ccache has most of it: the preset and the settings of ccache are those of tools/build, and the folder is as deep as
# build/release, because paths are relative to it.
set(ENV{CCACHE_BASEDIR} ${SOURCE})
set(ENV{CCACHE_NOHASHDIR} 1)
set(ENV{CCACHE_SLOPPINESS} pch_defines,time_macros)
string(RANDOM LENGTH 12 suffix)
set(work ${SOURCE}/build/embedded-${suffix})
set(settings -G Ninja -D CMAKE_CXX_COMPILER=${CXX} -D CMAKE_BUILD_TYPE=Release
  -D CMAKE_DISABLE_FIND_PACKAGE_gRPC=ON -D CMAKE_DISABLE_FIND_PACKAGE_Protobuf=ON)

# run(CODE COMMAND...): fails if it ends with another exit code. Sets `output`.
function(run code)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  message("${output}")
  if(NOT result EQUAL code)
    file(REMOVE_RECURSE ${work})
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "exit code ${result}: ${command}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run(0 ${CMAKE_COMMAND} --preset release ${settings} -S ${SOURCE} -B ${work} -D PERCOLATOR_SERVER=OFF)
run(0 ${CMAKE_COMMAND} --build ${work} --target percolator cluster_test --parallel 2)
run(0 ${work}/tests/cluster/cluster_test --gtest_filter=OpenTest.*)
if(NOT output MATCHES "PASSED  . [1-9]")
  message(FATAL_ERROR "no test of an embedded-only build ran")
endif()
run(0 ${CMAKE_COMMAND} --install ${work} --prefix ${work}/prefix)

file(COPY ${CMAKE_CURRENT_LIST_DIR}/app/CMakeLists.txt DESTINATION ${work}/source)
file(COPY_FILE ${SOURCE}/examples/bank.cc ${work}/source/main.cc)
run(0 ${CMAKE_COMMAND} ${settings} -S ${work}/source -B ${work}/app -D CMAKE_PREFIX_PATH=${work}/prefix)
run(0 ${CMAKE_COMMAND} --build ${work}/app)
run(0 ${work}/app/app rocksdb:${work}/data)
run(1 ${work}/app/app percolator://127.0.0.1:1)
file(REMOVE_RECURSE ${work})
if(NOT output MATCHES "percolator:// is not available in this build \\(it was built with PERCOLATOR_SERVER=OFF\\)")
  message(FATAL_ERROR "an address of a server: ${output}")
endif()
