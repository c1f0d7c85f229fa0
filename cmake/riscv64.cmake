# cmake --toolchain cmake/riscv64.cmake: for riscv64 Linux, without a sysroot.
set(CMAKE_SYSTEM_PROCESSOR riscv64)
include("${CMAKE_CURRENT_LIST_DIR}/zig.cmake")
