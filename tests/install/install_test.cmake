# SPDX-License-Identifier: Apache-2.0

# Installs a build into an empty folder, then configures, builds and runs the program of the README against it,
# with the CMakeLists.txt of tests/install/app.
#
#   cmake -D BUILD=<build folder> -D CXX=<compiler> -D CONFIG=<build type> -D APPS=<are they built> -P install_test.cmake

string(RANDOM LENGTH 12 suffix)
set(work ${BUILD}/install_test-${suffix})
set(prefix ${work}/prefix)

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  message("${output}")
  if(NOT result EQUAL 0)
    file(REMOVE_RECURSE ${work})
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "exit code ${result}: ${command}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(READ ${CMAKE_CURRENT_LIST_DIR}/../../README.md program)
string(FIND "${program}" "```cpp\n" begin)
math(EXPR begin "${begin} + 7")
string(SUBSTRING "${program}" ${begin} -1 program)
string(FIND "${program}" "\n```" end)
string(SUBSTRING "${program}" 0 ${end} program)
file(WRITE ${work}/source/main.cc "${program}\n")
file(COPY ${CMAKE_CURRENT_LIST_DIR}/app/CMakeLists.txt DESTINATION ${work}/source)

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
run(${CMAKE_COMMAND} -G Ninja -S ${work}/source -B ${work}/app
  -D CMAKE_PREFIX_PATH=${prefix} -D CMAKE_CXX_COMPILER=${CXX} -D CMAKE_BUILD_TYPE=${CONFIG})
run(${CMAKE_COMMAND} --build ${work}/app)
run(${work}/app/app rocksdb:${work}/data)
set(printed "${output}")
run(${work}/app/app rocksdb:${work}/data)  # a second time, when the table and the accounts exist
set(printed "${printed}${output}")
if(APPS)
  run(${prefix}/bin/percolator --cluster rocksdb:${work}/data get accounts Joe balance)
  if(NOT output STREQUAL "4\n")
    message(FATAL_ERROR "the installed command line printed: ${output}")
  endif()
endif()
file(GLOB_RECURSE headers RELATIVE ${prefix}/include ${prefix}/include/*)
file(REMOVE_RECURSE ${work})

if(NOT printed STREQUAL "Bob has 9\nJoe has 3\nBob has 8\nJoe has 4\n")
  message(FATAL_ERROR "the program of the README printed: ${printed}")
endif()
list(FILTER headers EXCLUDE REGEX "^percolator/(spi/)?[a-z_]+\\.h$")
if(headers)
  message(FATAL_ERROR "installed, but no public headers: ${headers}")
endif()
