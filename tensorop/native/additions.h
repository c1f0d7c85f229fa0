/* A core's clock, by a chain of dependent additions, each of which takes a cycle on every known
 * core. */
#ifndef TENSOROP_ADDITIONS_H
#define TENSOROP_ADDITIONS_H

#include <stdint.h>
#include <time.h>

/* Seconds of `rounds` times a hundred additions. */
static double additions(long rounds) {
    struct timespec begin, end;
    uint64_t x = 0, one = 1;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (long i = 0; i < rounds; i++) {
#define TEN(S) S S S S S S S S S S
#if defined(__riscv) || defined(__aarch64__)
        __asm__ volatile(TEN(TEN("add %0, %0, %1\n")) : "+r"(x) : "r"(one));
#else
        __asm__ volatile(TEN(TEN("add %1, %0\n")) : "+r"(x) : "r"(one));
#endif
#undef TEN
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
}

#endif
