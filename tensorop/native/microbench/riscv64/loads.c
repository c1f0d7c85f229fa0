/* Loads and stores that always hit level 1: 16 in an iteration (indexed and segment ones: 4). */
#include "bench.h"

#define LOAD(D) "vle32.v v" #D ", (%[p])\n"
#define STORE(D) "vse32.v v" #D ", (%[p])\n"
#define STRIDED(D) "vlse32.v v" #D ", (%[p]), t1\n"
#define M1(I)                                                                                      \
    I(8) I(9) I(10) I(11) I(12) I(13) I(14) I(15) I(16) I(17) I(18) I(19) I(20) I(21) I(22) I(23)
#define M2(I) X2(I(8) I(10) I(12) I(14) I(16) I(18) I(20) I(22))
#define M4(I) X4(I(8) I(12) I(16) I(20))
#define M8(I) X8(I(8) I(16))

LOOP(load_m1, 32, m1, M1(LOAD))
LOOP(load_m2, 32, m2, M2(LOAD))
LOOP(load_m4, 32, m4, M4(LOAD))
LOOP(load_m8, 32, m8, M8(LOAD))
LOOP(store_m1, 32, m1, M1(STORE))
LOOP(store_m2, 32, m2, M2(STORE))
LOOP(store_m4, 32, m4, M4(STORE))
LOOP(store_m8, 32, m8, M8(STORE))
LOOP(strided_m1, 32, m1, X4(STRIDED(8) STRIDED(9) STRIDED(10) STRIDED(11)))
LOOP(segment4_m1, 32, m1, X2("vlseg4e32.v v8, (%[p])\nvlseg4e32.v v16, (%[p])\n"))
LOOP(scalar_load, 32, m1, X4("ld t0, (%[p])\nld t2, 8(%[p])\nld t0, 16(%[p])\nld t2, 24(%[p])\n"))
/* Loads a float and moves it back to an address register: the latency of all three instructions. */
LOOP(float_load_chain, 32, m1, X4("add t0, %[p], t2\nflw ft2, (t0)\nfmv.x.w t2, ft2\n"))

TABLE
