/* Marks: instructions that do nothing on any core; QEMU's plug-ins recognise them by their
 * encoding. REGION: the board model measures it. It must begin and end on one thread and does
 * not nest; one that begins with WARM fills the modelled caches and takes no time. FORGET: the
 * modelled caches and branch predictors become as at the start. JAIL: untrusted code runs from
 * here on (see qemu_jail.c). */
#ifndef TENSOROP_REGION_H
#define TENSOROP_REGION_H

#if defined(__riscv) && __riscv_xlen == 64
/* slti with rd = x0 is a HINT of the base ISA. */
#define TENSOROP_REGION_BEGIN() __asm__ volatile("slti x0, x0, 1041" ::: "memory")
#define TENSOROP_REGION_END() __asm__ volatile("slti x0, x0, 1042" ::: "memory")
#define TENSOROP_JAIL() __asm__ volatile("slti x0, x0, 1043" ::: "memory")
#define TENSOROP_REGION_WARM() __asm__ volatile("slti x0, x0, 1044" ::: "memory")
#define TENSOROP_REGION_FORGET() __asm__ volatile("slti x0, x0, 1045" ::: "memory")
#elif defined(__aarch64__)
/* Unallocated hints execute as nop. */
#define TENSOROP_REGION_BEGIN() __asm__ volatile("hint #100" ::: "memory")
#define TENSOROP_REGION_END() __asm__ volatile("hint #101" ::: "memory")
#define TENSOROP_JAIL() __asm__ volatile("hint #102" ::: "memory")
#define TENSOROP_REGION_WARM() __asm__ volatile("hint #103" ::: "memory")
#define TENSOROP_REGION_FORGET() __asm__ volatile("hint #104" ::: "memory")
#elif defined(__x86_64__)
#define TENSOROP_REGION_BEGIN() __asm__ volatile("" ::: "memory")
#define TENSOROP_REGION_END() __asm__ volatile("" ::: "memory")
#define TENSOROP_JAIL() __asm__ volatile("nopl 1043(%%rax)" ::: "memory")
#define TENSOROP_REGION_WARM() __asm__ volatile("" ::: "memory")
#define TENSOROP_REGION_FORGET() __asm__ volatile("" ::: "memory")
#endif

#endif
