/* What the micro-benchmarks share. Loops are assembly, so that a board runs what the model counts.
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

#define CLEAR                                                                                      \
    "movi v0.2d, #0\nmovi v1.2d, #0\nmovi v2.2d, #0\nmovi v3.2d, #0\n"                             \
    "movi v4.2d, #0\nmovi v5.2d, #0\nmovi v6.2d, #0\nmovi v7.2d, #0\n"                             \
    "movi v8.2d, #0\nmovi v9.2d, #0\nmovi v10.2d, #0\nmovi v11.2d, #0\n"                           \
    "movi v12.2d, #0\nmovi v13.2d, #0\nmovi v14.2d, #0\nmovi v15.2d, #0\n"                         \
    "movi v16.2d, #0\nmovi v17.2d, #0\nmovi v18.2d, #0\nmovi v19.2d, #0\n"                         \
    "movi v20.2d, #0\nmovi v21.2d, #0\nmovi v22.2d, #0\nmovi v23.2d, #0\n"                         \
    "movi v24.2d, #0\nmovi v25.2d, #0\nmovi v26.2d, #0\nmovi v27.2d, #0\n"                         \
    "movi v28.2d, #0\nmovi v29.2d, #0\nmovi v30.2d, #0\nmovi v31.2d, #0\n"

/* BODY, dim[0] times; %[p] is the buffer, x11 zero at first. */
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
