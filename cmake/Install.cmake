# What 'cmake --install' puts into a prefix: the public headers (include/tessera), one static library with every layer that they need
# (lib/libtessera.a), the program, the licence, and the files by which others find them: find_package(tessera) gives the target
# tessera::tessera, pkg-config the module tessera. The layers stay separate in the build tree; here their objects are put together.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(layers GLOBAL PROPERTY TESSERA_LAYERS)
list(REMOVE_ITEM layers tools server cli)
set(objects $<TARGET_OBJECTS:tessera>)
foreach(layer ${layers})
  list(APPEND objects $<TARGET_OBJECTS:tessera_${layer}>)
  # Objects that a layer takes in from elsewhere: kernels compiled per instruction set.
  get_target_property(sources tessera_${layer} SOURCES)
  list(FILTER sources INCLUDE REGEX "^\\$<TARGET_OBJECTS:")
  list(APPEND objects ${sources})
endforeach()
add_library(tessera_installed STATIC ${objects})
set_target_properties(tessera_installed PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME tessera EXPORT_NAME tessera)
target_include_directories(tessera_installed INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(tessera_installed INTERFACE cxx_std_20)
target_link_libraries(tessera_installed INTERFACE Threads::Threads $<INSTALL_INTERFACE:PkgConfig::FMT> PkgConfig::PCRE2
                                                  PkgConfig::UTF8PROC PkgConfig::SIMDJSON)

install(TARGETS tessera_installed EXPORT tessera-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT tessera-targets NAMESPACE tessera:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tessera)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/tessera DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/licenses/tessera)
if(TARGET tessera_program)
  install(TARGETS tessera_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/tessera-config.cmake.in ${CMAKE_BINARY_DIR}/tessera-config.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tessera)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/tessera-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/tessera-config.cmake ${CMAKE_BINARY_DIR}/tessera-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tessera)
file(RELATIVE_PATH prefix_from_pc /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(${CMAKE_SOURCE_DIR}/cmake/tessera.pc.in ${CMAKE_BINARY_DIR}/tessera.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/tessera.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

if(TESSERA_TESTS)
  add_test(NAME install COMMAND ${CMAKE_COMMAND} -DBUILD=${CMAKE_BINARY_DIR} -DSOURCE=${CMAKE_SOURCE_DIR}
           -DCOMPILER=${CMAKE_CXX_COMPILER} -DSANITIZE=${TESSERA_SANITIZE} -P ${CMAKE_SOURCE_DIR}/tests/install/test_install.cmake)
  set_tests_properties(install PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77)
endif()
