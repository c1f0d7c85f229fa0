# cmake --toolchain cmake/aarch64.cmake: for aarch64 Linux, without a sysroot.
set(CMAKE_SYSTEM_PROCESSOR aarch64)
include("${CMAKE_CURRENT_LIST_DIR}/zig.cmake")
