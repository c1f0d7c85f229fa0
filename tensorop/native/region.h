/* Marks of the measured region: instructions that do nothing on any core and that the board model
 * recognises by their encoding. A region must begin and end on one thread; regions do not nest. */
#ifndef TENSOROP_REGION_H
#define TENSOROP_REGION_H

#if defined(__riscv) && __riscv_xlen == 64
/* slti with rd = x0 is a HINT of the base ISA. */
#define TENSOROP_REGION_BEGIN() __asm__ volatile("slti x0, x0, 1041" ::: "memory")
#define TENSOROP_REGION_END() __asm__ volatile("slti x0, x0, 1042" ::: "memory")
#elif defined(__aarch64__)
/* Unallocated hints execute as nop. */
#define TENSOROP_REGION_BEGIN() __asm__ volatile("hint #100" ::: "memory")
#define TENSOROP_REGION_END() __asm__ volatile("hint #101" ::: "memory")
#else
#define TENSOROP_REGION_BEGIN() __asm__ volatile("" ::: "memory")
#define TENSOROP_REGION_END() __asm__ volatile("" ::: "memory")
#endif

#endif
