/* Occupancy and latency of one instruction at a time, 16 of them in an iteration. */
#include "bench.h"

#define FMA(D) "fmla v" #D ".4s, v24.4s, v25.4s\n"
#define DOUBLE(D) "fmla v" #D ".2d, v24.2d, v25.2d\n"
#define HALF(D) "fmla v" #D ".2s, v24.2s, v25.2s\n"
#define ELEMENT(D) "fmla v" #D ".4s, v24.4s, v0.s[1]\n"
#define ADD(D) "fadd v" #D ".4s, v24.4s, v25.4s\n"
#define MUL(D) "fmul v" #D ".4s, v24.4s, v25.4s\n"
#define ALL(I)                                                                                     \
    I(8) I(9) I(10) I(11) I(12) I(13) I(14) I(15) I(16) I(17) I(18) I(19) I(20) I(21) I(22) I(23)
#define ONE(I) X16(I(8))

LOOP(fma_dependent_f32, ONE(FMA))
LOOP(fma_dependent_f64, ONE(DOUBLE))
LOOP(fma_f32, ALL(FMA))
LOOP(fma_f64, ALL(DOUBLE))
LOOP(fma_f32_half, ALL(HALF))
LOOP(fma_by_element_f32, ALL(ELEMENT))
LOOP(fma_by_element_dependent_f32, ONE(ELEMENT))
LOOP(add_f32, ALL(ADD))
LOOP(mul_f32, ALL(MUL))

TABLE
