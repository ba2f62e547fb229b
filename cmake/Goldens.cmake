# The reference checkpoints and outputs of the tests travel as one archive (tests/goldens.tar.xz, made by scripts/pack-goldens) and
# are unpacked into tests/goldens/ when a test that needs them is built. Every build folder shares that one copy; it is unpacked
# again only when the archive's hash changes. Needs nothing but CMake.
set(goldens_archive ${CMAKE_SOURCE_DIR}/tests/goldens.tar.xz)
set(goldens_stamp ${CMAKE_BINARY_DIR}/goldens.stamp)
add_custom_command(
  OUTPUT ${goldens_stamp}
  COMMAND ${CMAKE_COMMAND} -DARCHIVE=${goldens_archive} -DDESTINATION=${CMAKE_SOURCE_DIR}/tests/goldens -DSTAMP=${goldens_stamp}
          -P ${CMAKE_SOURCE_DIR}/cmake/UnpackGoldens.cmake
  DEPENDS ${goldens_archive} ${CMAKE_SOURCE_DIR}/cmake/UnpackGoldens.cmake
  COMMENT "Unpacking tests/goldens.tar.xz"
  VERBATIM)
# ALL: a build without a test program named still leaves the goldens ready for ctest.
add_custom_target(tessera_goldens ALL DEPENDS ${goldens_stamp})
