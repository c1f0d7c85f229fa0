/* Streams through dim[1] bytes and a chase through their lines; an iteration is one pass. */
#include "bench.h"

#define PASS(NAME, SETUP, BODY)                                                                    \
    static void NAME(const struct tensorop_call *call) {                                           \
        char *end = (char *)call->buffer[0] + call->dim[1];                                        \
        for (int64_t n = call->dim[0]; n > 0; n--) {                                               \
            char *at = call->buffer[0];                                                            \
            __asm__ volatile(SETUP "1:\n" BODY "bltu %[p], %[end], 1b\n"                           \
                             : [p] "+&r"(at)                                                       \
                             : [end] "r"(end)                                                      \
                             : SCRATCH);                                                           \
        }                                                                                          \
    }
#define WORD(AT, R) "ld " #R ", " #AT "(%[p])\n"
#define FETCH(AT) "prefetch.r " #AT "(%[p])\n"

/* t0: bytes of eight registers */
#define EIGHT TYPE(8, m8)

PASS(stream_vector, EIGHT,
     "vle8.v v8, (%[p])\nadd %[p], %[p], t0\nvle8.v v16, (%[p])\nadd %[p], %[p], t0\n")
PASS(stream_scalar, "",
     WORD(0, t0) WORD(64, t1) WORD(128, t2) WORD(192, t0) "addi %[p], %[p], 256\n")
PASS(stream_prefetched, "",
     FETCH(512) WORD(0, t0) FETCH(576) WORD(64, t1) FETCH(640) WORD(128, t2) FETCH(704)
         WORD(192, t0) "addi %[p], %[p], 256\n")

PASS(store_vector, EIGHT, "vse8.v v8, (%[p])\nadd %[p], %[p], t0\n")
PASS(store_scalar, "",
     "sd zero, 0(%[p])\nsd zero, 64(%[p])\nsd zero, 128(%[p])\nsd zero, 192(%[p])\naddi %[p], "
     "%[p], 256\n")

/* Copies the first half to the second. */
static void copy(const struct tensorop_call *call) {
    int64_t half = call->dim[1] / 2;
    for (int64_t n = call->dim[0]; n > 0; n--) {
        char *from = call->buffer[0], *to = from + half, *end = to;
        __asm__ volatile(EIGHT "1:\n"
                               "vle8.v v8, (%[p])\nadd %[p], %[p], t0\n"
                               "vse8.v v8, (%[to])\nadd %[to], %[to], t0\n"
                               "bltu %[p], %[end], 1b\n"
                         : [p] "+&r"(from), [to] "+&r"(to)
                         : [end] "r"(end)
                         : SCRATCH);
    }
}

/* Each line holds the next one's offset from the start: a load and an addition for each line. */
static void chase(const struct tensorop_call *call) {
    int64_t left = call->dim[0] * (call->dim[1] / 64), at = 0;
    __asm__ volatile("1:\n"
                     "add t0, %[p], %[at]\n"
                     "ld %[at], (t0)\n"
                     "addi %[n], %[n], -1\n"
                     "bnez %[n], 1b\n"
                     : [n] "+&r"(left), [at] "+&r"(at)
                     : [p] "r"(call->buffer[0])
                     : SCRATCH);
}

/* A line of each page, each in another set of level 1, so that only the TLBs miss. */
static void chase_pages(const struct tensorop_call *call) {
    struct tensorop_call other = *call;
    int64_t dim[] = {call->dim[0], call->dim[1] / 4096 * 64};
    other.dim = dim;
    chase(&other);
}

/* Line after line; each address depends on the word before it (which is 0). Prefetchers can
 * predict the lines, but the core cannot. */
PASS(walk, "", X4("ld t0, (%[p])\naddi %[p], %[p], 64\nadd %[p], %[p], t0\n"))
/* The same with vector loads. */
PASS(walk_vector, "vsetivli zero, 2, e64, m1, ta, ma\n",
     X4("vle64.v v8, (%[p])\nvmv.x.s t0, v8\naddi %[p], %[p], 64\nadd %[p], %[p], t0\n"))

/* Loads an unused byte of each line, in an order that no prefetcher can predict (a linear
 * congruential generator; its period is the number of lines, a power of two), beside 64
 * dependent additions. These take as long as without the load, unless its miss stalls them. */
static void demand_prefetch(const struct tensorop_call *call) {
    int64_t size = 64, at = 0;
    while (2 * size <= call->dim[1])
        size *= 2;
    int64_t left = call->dim[0] * (size / 64), mask = size - 64;
    __asm__ volatile(
        "li t1, 1229\nli t2, 577 * 64\nli a7, 1\n"
        "1:\n"
        "mul %[at], %[at], t1\nadd %[at], %[at], t2\nand %[at], %[at], %[mask]\n"
        "add t0, %[p], %[at]\nlbu t0, (t0)\n" X64("add a6, a6, a7\n") "addi %[n], %[n], -1\n"
                                                                      "bnez %[n], 1b\n"
        : [n] "+&r"(left), [at] "+&r"(at)
        : [p] "r"(call->buffer[0]), [mask] "r"(mask)
        : SCRATCH, "a6", "a7");
}

TABLE
