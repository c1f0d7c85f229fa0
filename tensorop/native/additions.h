/* A core's clock, by a chain of dependent additions, each of which takes a cycle on every known
 * core. */
#ifndef TENSOROP_ADDITIONS_H
#define TENSOROP_ADDITIONS_H

#include <stdint.h>
#include <time.h>

/* The seconds of `rounds` times a hundred additions. The empty statement keeps the compiler from
 * joining or reordering them, so each is one instruction. */
static double additions(long rounds) {
    struct timespec begin, end;
    uint64_t x = 0, one = 1;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    __asm__ volatile("" : "+r"(one));
    for (long i = 0; i < rounds; i++) {
#define ADD                                                                                        \
    x += one;                                                                                      \
    __asm__ volatile("" : "+r"(x));
#define TEN(S) S S S S S S S S S S
        TEN(TEN(ADD))
#undef TEN
#undef ADD
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
}

#endif
