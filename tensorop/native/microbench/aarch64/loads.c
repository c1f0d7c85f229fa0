/* Loads and stores that always hit level 1: 16 in an iteration. */
#include "bench.h"

#define ALL(I)                                                                                     \
    I(8) I(9) I(10) I(11) I(12) I(13) I(14) I(15) I(16) I(17) I(18) I(19) I(20) I(21) I(22) I(23)
#define EVEN(I) X2(I(8, 9) I(10, 11) I(12, 13) I(14, 15) I(16, 17) I(18, 19) I(20, 21) I(22, 23))
#define LOAD_D(D) "ldr d" #D ", [%[p]]\n"
#define LOAD_Q(D) "ldr q" #D ", [%[p]]\n"
#define PAIR_Q(D, E) "ldp q" #D ", q" #E ", [%[p]]\n"
#define REPLICATE(D) "ld1r {v" #D ".4s}, [%[p]]\n"
#define STORE_Q(D) "str q" #D ", [%[p]]\n"
#define PAIR_STORE(D, E) "stp q" #D ", q" #E ", [%[p]]\n"

LOOP(load_d, ALL(LOAD_D))
LOOP(load_q, ALL(LOAD_Q))
LOOP(load_pair_q, EVEN(PAIR_Q))
LOOP(load_replicate, ALL(REPLICATE))
LOOP(store_q, ALL(STORE_Q))
LOOP(store_pair_q, EVEN(PAIR_STORE))
LOOP(scalar_load, X8("ldr x9, [%[p]]\nldr x10, [%[p], #8]\n"))

TABLE
