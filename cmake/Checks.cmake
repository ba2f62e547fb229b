# The checks of the sources that run among the tests: those that need nothing but Python, which scripts/setup installs.
find_program(TESSERA_PYTHON python3)
if(TESSERA_PYTHON)
  add_test(NAME check_layers COMMAND ${TESSERA_PYTHON} ${CMAKE_SOURCE_DIR}/scripts/check-layers)
  set_tests_properties(check_layers PROPERTIES LABELS fast TIMEOUT 60)
else()
  message(STATUS "python3 is missing: the layer check is not among the tests")
endif()
