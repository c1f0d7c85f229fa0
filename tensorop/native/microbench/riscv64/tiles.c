/* Inner loops of matrix products, f32, without the update of C. A panels have two registers'
 * length for each step and follow each other; the B panel is after them. A tile has dim[2]
 * steps, a pass has dim[3] tiles. */
#include "bench.h"

#define SCALARS(I)                                                                                 \
    I(ft0, 0) I(ft1, 4) I(ft2, 8) I(ft3, 12) I(ft4, 16) I(ft5, 20) I(ft6, 24) I(ft7, 28)
#define MORE_SCALARS(I)                                                                            \
    I(fa0, 32) I(fa1, 36) I(fa2, 40) I(fa3, 44) I(fa4, 48) I(fa5, 52) I(fa6, 56) I(fa7, 60)
#define FLW(F, AT) "flw " #F ", " #AT "(%[b])\n"
#define FMA(D, F, V) "vfmacc.vf v" #D ", " #F ", v" #V "\n"
#define PAIR(D, E, F) FMA(D, F, 0) FMA(E, F, 1)
#define LATER(D, E, F, V, W) FMA(D, F, V) FMA(E, F, W)

/* Runs LOOP_BODY dim[2] / STEPS times for each tile; a step reads COLUMNS of B. */
#define TILE(NAME, LMUL, STEPS, COLUMNS, BEFORE, BODY)                                             \
    static void NAME(const struct tensorop_call *call) {                                           \
        int64_t step;                                                                              \
        __asm__("csrr %0, 0xc22" : "=r"(step));                                                    \
        step *= 2;                                                                                 \
        for (int64_t pass = call->dim[0]; pass > 0; pass--) {                                      \
            char *a = call->buffer[0], *panel = a + call->dim[3] * call->dim[2] * step;            \
            for (int64_t tile = call->dim[3]; tile > 0; tile--) {                                  \
                char *b = panel;                                                                   \
                int64_t n = call->dim[2] / STEPS;                                                  \
                __asm__ volatile(CLEAR TYPE(32, LMUL) "srli t1, %[s], 1\n" BEFORE "1:\n" BODY      \
                                                      "addi %[n], %[n], -1\n"                      \
                                                      "addi %[b], %[b], " COLUMNS "\n"             \
                                                      "bnez %[n], 1b\n"                            \
                                 : [n] "+&r"(n), [a] "+&r"(a), [b] "+&r"(b)                        \
                                 : [s] "r"(step)                                                   \
                                 : SCRATCH);                                                       \
            }                                                                                      \
        }                                                                                          \
    }

/* As OpenBLAS 0.3.29: m1, all loads of a step, then its multiply-adds. */
TILE(loads_first_m1, m1, 1, "32", "",
     "vle32.v v0, (%[a])\nadd t2, %[a], t1\nvle32.v v1, (t2)\nadd %[a], %[a], %[s]\n" SCALARS(FLW)
         PAIR(8, 16, ft0) PAIR(9, 17, ft1) PAIR(10, 18, ft2) PAIR(11, 19, ft3) PAIR(12, 20, ft4)
             PAIR(13, 21, ft5) PAIR(14, 22, ft6) PAIR(15, 23, ft7))

/* As OpenBLAS 0.3.34: m2, two steps, all their loads first. */
#define M2(F, D) FMA(D, F, 0)
#define N2(F, D) FMA(D, F, 2)
TILE(loads_first_m2, m2, 2, "64", "",
     SCALARS(FLW) MORE_SCALARS(FLW) "vle32.v v0, (%[a])\nadd t2, %[a], %[s]\nvle32.v v2, (t2)\n"
                                    "add %[a], t2, %[s]\n" M2(ft0, 8) M2(ft1, 10) M2(ft2, 12)
                                        M2(ft3, 14) M2(ft4, 16) M2(ft5, 18) M2(ft6, 20) M2(ft7, 22)
                                            N2(fa0, 8) N2(fa1, 10) N2(fa2, 12) N2(fa3, 14)
                                                N2(fa4, 16) N2(fa5, 18) N2(fa6, 20) N2(fa7, 22))

/* As in a published kernel for K1: m1, loads A one step ahead, and each scalar four pairs ahead. */
#define AHEAD(F, AT) "flw " #F ", " #AT "(%[b])\n"
TILE(scheduled_m1, m1, 2, "64",
     "vl2re32.v v0, (%[a])\nadd %[a], %[a], %[s]\nflw ft0, 0(%[b])\nflw ft1, 4(%[b])\n"
     "flw ft2, 8(%[b])\nflw ft3, 12(%[b])\n",
     "vl2re32.v v2, (%[a])\nadd %[a], %[a], %[s]\n" PAIR(8, 16, ft0) AHEAD(ft4, 16) PAIR(9, 17, ft1)
         AHEAD(ft5, 20) PAIR(10, 18, ft2) AHEAD(ft6, 24) PAIR(11, 19, ft3) AHEAD(ft7, 28)
             PAIR(12, 20, ft4) AHEAD(ft0, 32) PAIR(13, 21, ft5) AHEAD(ft1, 36) PAIR(14, 22, ft6)
                 AHEAD(ft2, 40) PAIR(15, 23, ft7)
                     AHEAD(ft3, 44) "vl2re32.v v0, (%[a])\nadd %[a], %[a], %[s]\n" LATER(8, 16, ft0,
                                                                                         2, 3)
                         AHEAD(ft4, 48) LATER(9, 17, ft1, 2, 3) AHEAD(ft5, 52)
                             LATER(10, 18, ft2, 2, 3) AHEAD(ft6, 56) LATER(11, 19, ft3, 2, 3)
                                 AHEAD(ft7, 60) LATER(12, 20, ft4, 2, 3) AHEAD(ft0, 64)
                                     LATER(13, 21, ft5, 2, 3) AHEAD(ft1, 68)
                                         LATER(14, 22, ft6, 2, 3) AHEAD(ft2, 72)
                                             LATER(15, 23, ft7, 2, 3) AHEAD(ft3, 76))

/* 16 x 15 at VLEN 256: the fewest loads for each multiply-add that 32 registers allow. */
TILE(wide_m2, m2, 1, "60", "",
     "vle32.v v0, (%[a])\nadd %[a], %[a], %[s]\n" SCALARS(FLW) FLW(fa0, 32) FLW(fa1, 36)
         FLW(fa2, 40) FLW(fa3, 44) FLW(fa4, 48) FLW(fa5, 52) FLW(fa6, 56) M2(ft0, 2) M2(ft1, 4)
             M2(ft2, 6) M2(ft3, 8) M2(ft4, 10) M2(ft5, 12) M2(ft6, 14) M2(ft7, 16) M2(fa0, 18)
                 M2(fa1, 20) M2(fa2, 22) M2(fa3, 24) M2(fa4, 26) M2(fa5, 28) M2(fa6, 30))

TABLE
