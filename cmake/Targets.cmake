# tessera_layer(name DEPS layers... [SOURCES files...] [LIBRARIES packages...]): one library per folder of src/. Layers are compiled
# without exceptions: errors travel as Result (see src/base/result.h).
function(tessera_layer name)
  cmake_parse_arguments(arg "EXCEPTIONS" "" "DEPS;SOURCES;LIBRARIES" ${ARGN})
  add_library(tessera_${name} STATIC ${arg_SOURCES})
  set_property(GLOBAL APPEND PROPERTY TESSERA_LAYERS ${name})  # for cmake/Install.cmake
  target_include_directories(tessera_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(tessera_${name} PUBLIC tessera_core_deps)
  foreach(dep ${arg_DEPS})
    target_link_libraries(tessera_${name} PUBLIC tessera_${dep})
  endforeach()
  target_link_libraries(tessera_${name} PRIVATE ${arg_LIBRARIES})
  if(NOT arg_EXCEPTIONS)
    target_compile_options(tessera_${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions>)
  endif()
endfunction()

# tessera_test(name SOURCES files... LAYERS layers... [LABELS labels...]): one gtest program, one ctest entry per program.
# Tests run in the source folder, so that they find tests/... and ../shared/... by relative path.
function(tessera_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;LAYERS;LIBRARIES;LABELS" ${ARGN})
  add_executable(${name} ${arg_SOURCES} ${CMAKE_SOURCE_DIR}/tests/test_main.cpp)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests ${CMAKE_SOURCE_DIR}/include)
  target_link_libraries(${name} PRIVATE tessera_gtest ${arg_LIBRARIES})
  foreach(layer ${arg_LAYERS})
    target_link_libraries(${name} PRIVATE tessera_${layer})
  endforeach()
  add_dependencies(${name} tessera_goldens)
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 600)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}")
endfunction()
