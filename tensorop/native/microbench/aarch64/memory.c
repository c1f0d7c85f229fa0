/* Streams through dim[1] bytes and a chase through their lines; an iteration is one pass. */
#include "bench.h"

#define PASS(NAME, BODY)                                                                           \
    static void NAME(const struct tensorop_call *call) {                                           \
        char *end = (char *)call->buffer[0] + call->dim[1];                                        \
        for (int64_t n = call->dim[0]; n > 0; n--) {                                               \
            char *at = call->buffer[0];                                                            \
            __asm__ volatile("1:\n" BODY "cmp %[p], %[end]\nb.lo 1b\n"                             \
                             : [p] "+&r"(at)                                                       \
                             : [end] "r"(end)                                                      \
                             : SCRATCH);                                                           \
        }                                                                                          \
    }

PASS(stream_vector, X4("ldp q8, q9, [%[p]], #32\nldp q10, q11, [%[p]], #32\n"))
PASS(stream_scalar,
     "ldr x9, [%[p]]\nldr x10, [%[p], #64]\nldr x9, [%[p], #128]\nldr x10, [%[p], #192]\n"
     "add %[p], %[p], #256\n")
PASS(stream_prefetched, X4("prfm pldl1keep, [%[p], #512]\nldr x9, [%[p]], #64\n"))
PASS(store_vector, X4("stp q8, q9, [%[p]], #32\nstp q10, q11, [%[p]], #32\n"))
/* Line after line; each address depends on the word before it (which is 0). Prefetchers can
 * predict the lines, but the core cannot. */
PASS(walk, X4("ldr x9, [%[p]]\nadd %[p], %[p], #64\nadd %[p], %[p], x9\n"))

/* The same with vector loads. */
PASS(walk_vector, X4("ldr q8, [%[p]]\nfmov x9, d8\nadd %[p], %[p], #64\nadd %[p], %[p], x9\n"))

/* Loads an unused byte of each line, in an order that no prefetcher can predict (a linear
 * congruential generator; its period is the number of lines, a power of two), beside 64
 * dependent additions. These take as long as without the load, unless its miss stalls them. */
static void demand_prefetch(const struct tensorop_call *call) {
    int64_t size = 64, at = 0;
    while (2 * size <= call->dim[1])
        size *= 2;
    int64_t left = call->dim[0] * (size / 64), mask = size - 64;
    __asm__ volatile("mov x10, #1229\nmov x11, #577 * 64\nmov x13, #1\n"
                     "1:\n"
                     "madd %[at], %[at], x10, x11\nand %[at], %[at], %[mask]\n"
                     "add x9, %[p], %[at]\nldrb w9, [x9]\n" X64(
                         "add x12, x12, x13\n") "subs %[n], %[n], #1\nb.ne 1b\n"
                     : [n] "+&r"(left), [at] "+&r"(at)
                     : [p] "r"(call->buffer[0]), [mask] "r"(mask)
                     : SCRATCH, "x13");
}

/* Copies the first half to the second. */
static void copy(const struct tensorop_call *call) {
    int64_t half = call->dim[1] / 2;
    for (int64_t n = call->dim[0]; n > 0; n--) {
        char *from = call->buffer[0], *to = from + half, *end = to;
        __asm__ volatile(
            "1:\n" X2(
                "ldp q8, q9, [%[p]], #32\nstp q8, q9, [%[to]], #32\n") "cmp %[p], %[end]\nb.lo 1b\n"
            : [p] "+&r"(from), [to] "+&r"(to)
            : [end] "r"(end)
            : SCRATCH);
    }
}

/* Each line holds the next one's offset from the start: a load and an addition for each line. */
static void follow(const struct tensorop_call *call, int64_t left) {
    int64_t at = 0;
    __asm__ volatile("1:\n"
                     "add x9, %[p], %[at]\nldr %[at], [x9]\n"
                     "subs %[n], %[n], #1\nb.ne 1b\n"
                     : [n] "+&r"(left), [at] "+&r"(at)
                     : [p] "r"(call->buffer[0])
                     : SCRATCH);
}

static void chase(const struct tensorop_call *call) {
    follow(call, call->dim[0] * (call->dim[1] / 64));
}

/* A line of each page, each in another set of level 1, so that only the TLBs miss. */
static void chase_pages(const struct tensorop_call *call) {
    follow(call, call->dim[0] * (call->dim[1] / 4096));
}

TABLE
