# cmake -DARCHIVE=... -DDESTINATION=... -DSTAMP=... -P UnpackGoldens.cmake
# Unpacks ARCHIVE into DESTINATION unless the copy there came from the same archive, then touches STAMP. Several builds may ask at
# once: a lock lets one work and the others wait; the folder appears whole, by a rename. A DESTINATION that is a link is somebody's
# own folder of goldens and is left alone.
cmake_minimum_required(VERSION 3.25)
foreach(variable ARCHIVE DESTINATION STAMP)
  if(NOT DEFINED ${variable})
    message(FATAL_ERROR "UnpackGoldens.cmake: -D${variable}=... is missing")
  endif()
endforeach()

if(IS_SYMLINK ${DESTINATION})
  message(STATUS "${DESTINATION} is a link: left as it is")
  file(TOUCH ${STAMP})
  return()
endif()

set(lock ${DESTINATION}.lock)
file(LOCK ${lock} GUARD PROCESS TIMEOUT 300)
file(SHA256 ${ARCHIVE} wanted)
set(found "")
if(EXISTS ${DESTINATION}/.archive-sha256)
  file(READ ${DESTINATION}/.archive-sha256 found)
endif()
if(NOT found STREQUAL wanted)
  set(fresh ${DESTINATION}.unpacking)
  file(REMOVE_RECURSE ${fresh})
  file(MAKE_DIRECTORY ${fresh})
  file(ARCHIVE_EXTRACT INPUT ${ARCHIVE} DESTINATION ${fresh})
  file(WRITE ${fresh}/.archive-sha256 ${wanted})
  file(REMOVE_RECURSE ${DESTINATION})
  file(RENAME ${fresh} ${DESTINATION})
endif()
file(TOUCH ${STAMP})
