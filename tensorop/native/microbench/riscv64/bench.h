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
    "t0", "t1", "t2", "memory", "ft0", "ft1", "ft2", "ft3", "ft4", "ft5", "ft6", "ft7", "fa0",     \
        "fa1", "fa2", "fa3", "fa4", "fa5", "fa6", "fa7", "v0", "v1", "v2", "v3", "v4", "v5", "v6", \
        "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19",    \
        "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31"

/* Sets all vector registers and scalar factors to zero, then vtype. */
#define CLEAR                                                                                      \
    "vsetvli t0, zero, e8, m8, ta, ma\n"                                                           \
    "vmv.v.i v0, 0\nvmv.v.i v8, 0\nvmv.v.i v16, 0\nvmv.v.i v24, 0\n"                               \
    "fmv.d.x ft0, zero\nfmv.w.x ft1, zero\n"
#define TYPE(SEW, LMUL) "vsetvli t0, zero, e" #SEW ", " #LMUL ", ta, ma\n"

/* Runs BODY dim[0] times; %[p] is the buffer, t1 is 64 bytes, t2 begins with 0. */
#define LOOP(NAME, SEW, LMUL, BODY)                                                                \
    static void NAME(const struct tensorop_call *call) {                                           \
        int64_t n = call->dim[0];                                                                  \
        __asm__ volatile(CLEAR TYPE(SEW, LMUL) "li t1, 64\nli t2, 0\n"                             \
                                               "1:\n" BODY "addi %[n], %[n], -1\n"                 \
                                               "bnez %[n], 1b\n"                                   \
                         : [n] "+&r"(n)                                                            \
                         : [p] "r"(call->buffer[0])                                                \
                         : SCRATCH);                                                               \
    }

#define TABLE                                                                                      \
    void tensorop_candidate_0(const struct tensorop_call *call) {                                  \
        int64_t n = call->dim[4];                                                                  \
        __asm__ volatile("li t0, 0\nli t1, 1\n"                                                    \
                         "1:\n" X64("add t0, t0, t1\n") "addi %[n], %[n], -1\n"                    \
                                                        "bnez %[n], 1b\n"                          \
                         : [n] "+&r"(n)                                                            \
                         :                                                                         \
                         : "t0", "t1");                                                            \
    }                                                                                              \
    void tensorop_candidate_1(const struct tensorop_call *call) {                                  \
        static const tensorop_entry bench[] = {BENCHES};                                           \
        bench[call->flag[0]](call);                                                                \
    }

#endif
