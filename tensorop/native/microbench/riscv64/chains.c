/* Occupancy and latency of one instruction at a time, 16 of them in an iteration. */
#include "bench.h"

#define FMA(FACTOR, D) "vfmacc.vf v" #D ", " #FACTOR ", v24\n"
#define ADD(D) "vadd.vv v" #D ", v24, v24\n"
#define GATHER(D) "vrgather.vv v" #D ", v24, v0\n"
#define SLIDE(D) "vslidedown.vx v" #D ", v24, t0\n"

#define M1(I)                                                                                      \
    I(8) I(9) I(10) I(11) I(12) I(13) I(14) I(15) I(16) I(17) I(18) I(19) I(20) I(21) I(22) I(23)
#define M2(I) X2(I(8) I(10) I(12) I(14) I(16) I(18) I(20) I(22))
#define M4(I) X4(I(8) I(12) I(16) I(20))
#define M8(I) X8(I(8) I(16))
#define ONE(I) X16(I(8))

#define SINGLE(D) FMA(ft1, D)
#define DOUBLE(D) FMA(ft0, D)

LOOP(fma_dependent_f32_m1, 32, m1, ONE(SINGLE))
LOOP(fma_dependent_f32_m2, 32, m2, ONE(SINGLE))
LOOP(fma_dependent_f32_m4, 32, m4, ONE(SINGLE))
LOOP(fma_dependent_f32_m8, 32, m8, ONE(SINGLE))
LOOP(fma_dependent_f64_m1, 64, m1, ONE(DOUBLE))
LOOP(fma_dependent_f64_m4, 64, m4, ONE(DOUBLE))
LOOP(fma_f32_m1, 32, m1, M1(SINGLE))
LOOP(fma_f32_m2, 32, m2, M2(SINGLE))
LOOP(fma_f32_m4, 32, m4, M4(SINGLE))
LOOP(fma_f32_m8, 32, m8, M8(SINGLE))
LOOP(fma_f64_m1, 64, m1, M1(DOUBLE))
LOOP(fma_f64_m2, 64, m2, M2(DOUBLE))
LOOP(fma_f64_m4, 64, m4, M4(DOUBLE))
LOOP(fma_f64_m8, 64, m8, M8(DOUBLE))
LOOP(add_m1, 32, m1, M1(ADD))
LOOP(add_m2, 32, m2, M2(ADD))
LOOP(add_m4, 32, m4, M4(ADD))
LOOP(add_m8, 32, m8, M8(ADD))
LOOP(gather_m1, 32, m1, M1(GATHER))
LOOP(slide_m1, 32, m1, M1(SLIDE))
LOOP(slide_m4, 32, m4, M4(SLIDE))

TABLE
