# Packages. The core needs three: tl::expected and nlohmann/json (headers) and fmt (headers or a static library). On a machine
# without a package manager TESSERA_DEPS_DIR names a folder that scripts/collect-core-deps filled elsewhere.
find_package(Threads REQUIRED)

find_path(TESSERA_EXPECTED_INCLUDE tl/expected.hpp HINTS ${TESSERA_DEPS_DIR}/include REQUIRED)
find_path(TESSERA_JSON_INCLUDE nlohmann/json.hpp HINTS ${TESSERA_DEPS_DIR}/include REQUIRED)
find_path(TESSERA_FMT_INCLUDE fmt/core.h HINTS ${TESSERA_DEPS_DIR}/include REQUIRED)
find_library(TESSERA_FMT_LIBRARY NAMES libfmt.a fmt HINTS ${TESSERA_DEPS_DIR}/lib REQUIRED)

add_library(tessera_core_deps INTERFACE)
foreach(dir ${TESSERA_EXPECTED_INCLUDE} ${TESSERA_JSON_INCLUDE} ${TESSERA_FMT_INCLUDE})
  if(NOT dir STREQUAL "/usr/include")
    target_include_directories(tessera_core_deps SYSTEM INTERFACE ${dir})
  endif()
endforeach()
target_compile_definitions(tessera_core_deps INTERFACE JSON_NOEXCEPTION)
target_link_libraries(tessera_core_deps INTERFACE ${TESSERA_FMT_LIBRARY} Threads::Threads)

if(TESSERA_TESTS)
  find_path(TESSERA_GTEST_INCLUDE gtest/gtest.h HINTS ${TESSERA_DEPS_DIR}/include REQUIRED)
  find_library(TESSERA_GTEST_LIBRARY NAMES libgtest.a gtest HINTS ${TESSERA_DEPS_DIR}/lib REQUIRED)
  add_library(tessera_gtest INTERFACE)
  if(NOT TESSERA_GTEST_INCLUDE STREQUAL "/usr/include")
    target_include_directories(tessera_gtest SYSTEM INTERFACE ${TESSERA_GTEST_INCLUDE})
  endif()
  target_link_libraries(tessera_gtest INTERFACE ${TESSERA_GTEST_LIBRARY} Threads::Threads)
endif()

if(NOT TESSERA_CORE_ONLY)
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
  pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)
  find_package(CLI11 REQUIRED)
endif()
