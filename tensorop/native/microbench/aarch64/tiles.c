/* Inner loops of 8 x 8 products, f32, without the update of C. A panels have 32 bytes for each
 * step and follow each other; the B panel is after them. A tile has dim[2] steps, a pass has
 * dim[3] tiles. */
#include "bench.h"

#define TILE(NAME, BODY)                                                                           \
    static void NAME(const struct tensorop_call *call) {                                           \
        for (int64_t pass = call->dim[0]; pass > 0; pass--) {                                      \
            char *a = call->buffer[0], *panel = a + call->dim[3] * call->dim[2] * 32;              \
            for (int64_t tile = call->dim[3]; tile > 0; tile--) {                                  \
                char *b = panel;                                                                   \
                int64_t n = call->dim[2];                                                          \
                __asm__ volatile(CLEAR "1:\n" BODY "subs %[n], %[n], #1\nb.ne 1b\n"                \
                                 : [n] "+&r"(n), [a] "+&r"(a), [b] "+&r"(b)                        \
                                 :                                                                 \
                                 : SCRATCH);                                                       \
            }                                                                                      \
        }                                                                                          \
    }
#define COLUMN(D, E, B, I)                                                                         \
    "fmla v" #D ".4s, v0.4s, v" #B ".s[" #I "]\nfmla v" #E ".4s, v1.4s, v" #B ".s[" #I "]\n"
#define LEFT COLUMN(16, 17, 2, 0) COLUMN(18, 19, 2, 1) COLUMN(20, 21, 2, 2) COLUMN(22, 23, 2, 3)
#define RIGHT COLUMN(24, 25, 3, 0) COLUMN(26, 27, 3, 1) COLUMN(28, 29, 3, 2) COLUMN(30, 31, 3, 3)

/* 128-bit loads, all of a step first. */
TILE(loads_first, "ldp q0, q1, [%[a]], #32\nldp q2, q3, [%[b]], #32\n" LEFT RIGHT)

/* The next step's operands in 64-bit halves between the multiply-adds, as kernels for Cortex-A53
 * do. */
#define NEXT(V, P, AT) "ldr d" #V ", [%[" #P "], #" #AT "]\n"
#define UPPER(X, P, AT) "ldr " #X ", [%[" #P "], #" #AT "]\n"
#define JOIN(V, X) "ins v" #V ".d[1], " #X "\n"
#define COPY(V, W) "mov v" #V ".16b, v" #W ".16b\n"
TILE(halves_between,
     NEXT(4, a, 0) UPPER(x9, a, 8) COLUMN(16, 17, 2, 0) NEXT(5, a, 16) UPPER(x10, a, 24)
         COLUMN(18, 19, 2, 1) JOIN(4, x9) COLUMN(20, 21, 2, 2) JOIN(5, x10) COLUMN(22, 23, 2, 3)
             NEXT(6, b, 0) UPPER(x9, b, 8) COLUMN(24, 25, 3, 0) NEXT(7, b, 16) UPPER(x10, b, 24)
                 COLUMN(26, 27, 3, 1) JOIN(6, x9) COLUMN(28, 29, 3, 2) JOIN(7, x10)
                     COLUMN(30, 31, 3, 3) "add %[a], %[a], #32\nadd %[b], %[b], #32\n" COPY(0, 4)
                         COPY(1, 5) COPY(2, 6) COPY(3, 7))

TABLE
