/* Loads beside multiply-adds in level 1: eight groups of a load and four multiply-adds (m1, f32).
 */
#include "bench.h"

#define FMA(D, V) "vfmacc.vf v" #D ", ft1, v" #V "\n"
#define LOAD(D) "vle32.v v" #D ", (%[p])\n"
#define FOUR_A(V) FMA(8, V) FMA(9, V) FMA(10, V) FMA(11, V)
#define FOUR_B(V) FMA(12, V) FMA(13, V) FMA(14, V) FMA(15, V)

/* The registers read and written are independent. */
#define APART(L, V) LOAD(L) FOUR_A(V) LOAD(L) FOUR_B(V)
LOOP(load_apart, 32, m1, APART(16, 24) APART(17, 25) APART(18, 26) APART(19, 27))
/* The load overwrites a register that was read just before; its result is used much later. */
#define BEHIND(V, W) FOUR_A(V) LOAD(V) FOUR_B(W) LOAD(W)
LOOP(load_behind_reader, 32, m1, BEHIND(24, 25) BEHIND(26, 27) BEHIND(28, 29) BEHIND(30, 31))
/* The loaded register is used at once, and was last read long before. */
#define USED(V, W) LOAD(V) FOUR_A(V) LOAD(W) FOUR_B(W)
LOOP(load_used_at_once, 32, m1, USED(24, 25) USED(26, 27) USED(28, 29) USED(30, 31))
/* Both at m2, four groups. */
#define PAIR(V) LOAD(V) FMA(8, V) FMA(10, V) FMA(12, V) FMA(14, V)
LOOP(load_used_at_once_m2, 32, m2, PAIR(24) PAIR(26) PAIR(28) PAIR(30))

/* Eight scalar loads, each for the multiply-add four places later. */
#define SCALAR(F, G, D) "flw " #F ", (%[p])\nvfmacc.vf v" #D ", " #G ", v24\n"
LOOP(scalar_beside_fma, 32, m1,
     SCALAR(fa0, fa4, 8) SCALAR(fa1, fa5, 9) SCALAR(fa2, fa6, 10) SCALAR(fa3, fa7, 11)
         SCALAR(fa4, fa0, 12) SCALAR(fa5, fa1, 13) SCALAR(fa6, fa2, 14) SCALAR(fa7, fa3, 15))
/* Eight scalar loads beside four vector loads: one port or two? */
#define BESIDE(D, F, G) LOAD(D) "flw " #F ", (%[p])\nflw " #G ", 4(%[p])\n"
LOOP(scalar_beside_vector_load, 32, m1,
     BESIDE(8, fa0, fa1) BESIDE(9, fa2, fa3) BESIDE(10, fa4, fa5) BESIDE(11, fa6, fa7))

TABLE
