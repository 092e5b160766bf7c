# SPDX-License-Identifier: Apache-2.0

# Percolator::percolator, the library users link: the objects of all modules in one archive, and its installation as a
# CMake package, so that find_package(Percolator) works against the installed tree.

include(CMakePackageConfigHelpers)

get_property(modules GLOBAL PROPERTY PERCOLATOR_MODULES)
set(objects)
foreach(module IN LISTS modules)
  list(APPEND objects $<TARGET_OBJECTS:${module}>)
endforeach()

add_library(percolator STATIC ${objects})
add_library(Percolator::percolator ALIAS percolator)
set_target_properties(percolator PROPERTIES LINKER_LANGUAGE CXX)
target_include_directories(percolator PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(percolator PUBLIC cxx_std_20)
get_property(libraries GLOBAL PROPERTY PERCOLATOR_LIBRARIES)
list(FILTER libraries EXCLUDE REGEX "^percolator_")
list(REMOVE_DUPLICATES libraries)
target_link_libraries(percolator PUBLIC ${libraries})

install(TARGETS percolator EXPORT PercolatorTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
set(not_built)
if(NOT PERCOLATOR_SERVER)
  set(not_built PATTERN server.h EXCLUDE)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/percolator DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} ${not_built})
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Percolator)
install(EXPORT PercolatorTargets NAMESPACE Percolator:: DESTINATION ${package_dir})
configure_package_config_file(cmake/PercolatorConfig.cmake.in
  ${PROJECT_BINARY_DIR}/PercolatorConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/PercolatorConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/PercolatorConfig.cmake ${PROJECT_BINARY_DIR}/PercolatorConfigVersion.cmake
  DESTINATION ${package_dir})
