/* Loads beside multiply-adds in level 1: eight groups of a load and four multiply-adds. */
#include "bench.h"

#define FMA(D, V) "fmla v" #D ".4s, v" #V ".4s, v0.s[0]\n"
#define LOAD(D) "ldr q" #D ", [%[p]]\n"
#define LOAD_D(D) "ldr d" #D ", [%[p]]\n"
#define FOUR_A(V) FMA(8, V) FMA(9, V) FMA(10, V) FMA(11, V)
#define FOUR_B(V) FMA(12, V) FMA(13, V) FMA(14, V) FMA(15, V)

#define APART(L, V) LOAD(L) FOUR_A(V) LOAD(L) FOUR_B(V)
LOOP(load_apart, APART(16, 24) APART(17, 25) APART(18, 26) APART(19, 27))
#define APART_D(L, V) LOAD_D(L) FOUR_A(V) LOAD_D(L) FOUR_B(V)
LOOP(load_d_apart, APART_D(16, 24) APART_D(17, 25) APART_D(18, 26) APART_D(19, 27))
#define USED(V, W) LOAD(V) FOUR_A(V) LOAD(W) FOUR_B(W)
LOOP(load_used_at_once, USED(24, 25) USED(26, 27) USED(28, 29) USED(30, 31))
/* Loads a 128-bit operand in two 64-bit halves, the upper one through a scalar register. */
#define HALVES(V, D)                                                                               \
    LOAD_D(V)                                                                                      \
    "ldr x9, [%[p], #8]\n" FMA(8, D) FMA(9, D) "ins v" #V ".d[1], x9\n" FMA(10, D) FMA(11, D)
LOOP(load_in_halves, X2(HALVES(16, 24) HALVES(17, 25) HALVES(18, 26) HALVES(19, 27)))

TABLE
