# The cross compiler of PyPI's `ziglang` as a CMake toolchain; a file that includes this one sets CMAKE_SYSTEM_PROCESSOR.
# TENSOROP_PYTHON: the Python that has ziglang (default: python3). TENSOROP_GLIBC: the least glibc of what is built.
# What is built runs in QEMU, as CMAKE_CROSSCOMPILING_EMULATOR says, where tensorop's cache has it; this fetches it:
#   python3 -m tensorop.provision emulator riscv64

set(CMAKE_SYSTEM_NAME Linux)
if(NOT TENSOROP_PYTHON)
  set(TENSOROP_PYTHON python3)
endif()
if(NOT TENSOROP_GLIBC)
  set(TENSOROP_GLIBC 2.31)
endif()
# Projects that CMake tries out configure anew, in folders of their own: they use what was made here.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TENSOROP_PYTHON TENSOROP_GLIBC TENSOROP_TOOLS)

if(NOT TENSOROP_TOOLS)
  execute_process(
    COMMAND "${TENSOROP_PYTHON}" -c "import os, ziglang; print(os.path.join(os.path.dirname(ziglang.__file__), 'zig'))"
    OUTPUT_VARIABLE _zig OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT EXISTS "${_zig}")
    message(FATAL_ERROR "${TENSOROP_PYTHON} has no package ziglang: ${TENSOROP_PYTHON} -m pip install ziglang==0.17.0, "
      "or name another Python with -DTENSOROP_PYTHON=")
  endif()
  set(TENSOROP_TOOLS "${CMAKE_BINARY_DIR}/tensorop-tools")
  set(_target "${CMAKE_SYSTEM_PROCESSOR}-linux-gnu.${TENSOROP_GLIBC}")
  # zig adds a sanitizer to programs that are not optimised, and builds its library for each target.
  # -fsanitize=undefined asks for it.
  set(_words_cc "-target ${_target} -fno-sanitize=undefined")
  # CMake wants one program for each tool.
  foreach(_tool IN ITEMS "cc|cc ${_words_cc}" "c++|c++ ${_words_cc}" "ar|ar" "ranlib|ranlib")
    string(REPLACE "|" ";" _tool "${_tool}")
    list(GET _tool 0 _name)
    list(GET _tool 1 _words)
    file(WRITE "${TENSOROP_TOOLS}/text/${_name}" "#!/bin/sh\nexec \"${_zig}\" ${_words} \"$@\"\n")
    file(COPY "${TENSOROP_TOOLS}/text/${_name}" DESTINATION "${TENSOROP_TOOLS}"
      FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  endforeach()
endif()

set(CMAKE_C_COMPILER "${TENSOROP_TOOLS}/cc")
set(CMAKE_CXX_COMPILER "${TENSOROP_TOOLS}/c++")
set(CMAKE_AR "${TENSOROP_TOOLS}/ar")
set(CMAKE_RANLIB "${TENSOROP_TOOLS}/ranlib")

get_property(_trying GLOBAL PROPERTY IN_TRY_COMPILE)
if(NOT _trying AND NOT DEFINED CMAKE_CROSSCOMPILING_EMULATOR
    AND NOT CMAKE_SYSTEM_PROCESSOR STREQUAL CMAKE_HOST_SYSTEM_PROCESSOR)
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -E env TENSOROP_OFFLINE=1
      "${TENSOROP_PYTHON}" -m tensorop.provision emulator ${CMAKE_SYSTEM_PROCESSOR}
    OUTPUT_VARIABLE _emulator OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE _status)
  if(NOT _status EQUAL 0)
    set(_emulator "")
    message(STATUS "No emulator runs what is built; this fetches one: "
      "${TENSOROP_PYTHON} -m tensorop.provision emulator ${CMAKE_SYSTEM_PROCESSOR}")
  endif()
  set(CMAKE_CROSSCOMPILING_EMULATOR "${_emulator}" CACHE STRING "what runs the programs of this build")
endif()
