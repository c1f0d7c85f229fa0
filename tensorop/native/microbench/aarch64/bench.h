/* Common parts of the micro-benchmarks. Loops are assembly, so a board and the model run the same
 * instructions.
 *
 *   function 0  the clock: dim[4] iterations of 64 dependent additions, a cycle each
 *   function 1  flag[0] the benchmark, by its place in BENCHES (bench.yaml); dim[0] iterations,
 *               dim[1] bytes of buffer 0, dim[2] and dim[3] as the benchmark says */
#ifndef TENSOROP_BENCH_H
#define TENSOROP_BENCH_H

#include "call.h"

#define X2(S) S S
#define X4(S) X2(S) X2(S)
#define X8(S) X4(S) X4(S)
#define X16(S) X8(S) X8(S)
#define X64(S) X16(X4(S))

#define SCRATCH                                                                                    \
    "x9", "x10", "x11", "x12", "cc", "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7",     \
        "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20",   \
        "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31"

#define ZERO(V) "movi v" #V ".2d, #0\n"
// clang-format off
#define CLEAR \
    ZERO(0) ZERO(1) ZERO(2) ZERO(3) ZERO(4) ZERO(5) ZERO(6) ZERO(7) \
    ZERO(8) ZERO(9) ZERO(10) ZERO(11) ZERO(12) ZERO(13) ZERO(14) ZERO(15) \
    ZERO(16) ZERO(17) ZERO(18) ZERO(19) ZERO(20) ZERO(21) ZERO(22) ZERO(23) \
    ZERO(24) ZERO(25) ZERO(26) ZERO(27) ZERO(28) ZERO(29) ZERO(30) ZERO(31)
// clang-format on

/* Runs BODY dim[0] times; %[p] is the buffer, x11 begins with 0. */
#define LOOP(NAME, BODY)                                                                           \
    static void NAME(const struct tensorop_call *call) {                                           \
        int64_t n = call->dim[0];                                                                  \
        __asm__ volatile(CLEAR "mov x11, #0\n1:\n" BODY "subs %[n], %[n], #1\nb.ne 1b\n"           \
                         : [n] "+&r"(n)                                                            \
                         : [p] "r"(call->buffer[0])                                                \
                         : SCRATCH);                                                               \
    }

#define TABLE                                                                                      \
    void tensorop_candidate_0(const struct tensorop_call *call) {                                  \
        int64_t n = call->dim[4];                                                                  \
        __asm__ volatile("mov x9, #0\nmov x10, #1\n"                                               \
                         "1:\n" X64("add x9, x9, x10\n") "subs %[n], %[n], #1\nb.ne 1b\n"          \
                         : [n] "+&r"(n)                                                            \
                         :                                                                         \
                         : "x9", "x10", "cc");                                                     \
    }                                                                                              \
    void tensorop_candidate_1(const struct tensorop_call *call) {                                  \
        static const tensorop_entry bench[] = {BENCHES};                                           \
        bench[call->flag[0]](call);                                                                \
    }

#endif
