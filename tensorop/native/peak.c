/* Independent multiply-add chains, enough to hide the latency on any core: the time depends only on
 * the number of units.
 *
 *   dim     iterations
 *   flag    0 the variant: vector width and number of chains, as in tensorop/measure/peak.py
 *   buffer  two elements (factor, addend), 64 bytes for the sum that keeps the chains alive */
#include "call.h"

#ifndef ELEMENT
#define ELEMENT float
#endif

/* On x86 the compiler would otherwise split a vector of 64 bytes in two. */
#ifdef __x86_64__
#define WHOLE(BYTES) __attribute__((min_vector_width(8 * BYTES)))
#else
#define WHOLE(BYTES)
#endif

#define CHAINS(BYTES, COUNT)                                                                       \
    WHOLE(BYTES) static void chains_##BYTES##_##COUNT(const struct tensorop_call *call) {          \
        typedef ELEMENT vector __attribute__((vector_size(BYTES), aligned(sizeof(ELEMENT))));      \
        const ELEMENT *seed = call->buffer[0];                                                     \
        vector *out = call->buffer[1];                                                             \
        vector factor = seed[0] - (vector){0}, addend = seed[1] - (vector){0}, at[COUNT];          \
        for (int i = 0; i < COUNT; i++)                                                            \
            at[i] = addend * (ELEMENT)i;                                                           \
        for (int64_t n = call->dim[0]; n > 0; n--) {                                               \
            _Pragma("clang loop unroll(full)") for (int i = 0; i < COUNT; i++) at[i] =             \
                at[i] * factor + addend;                                                           \
        }                                                                                          \
        vector sum = at[0];                                                                        \
        for (int i = 1; i < COUNT; i++)                                                            \
            sum += at[i];                                                                          \
        *out = sum;                                                                                \
    }

CHAINS(16, 10)
CHAINS(32, 10)
CHAINS(64, 10)
CHAINS(16, 16)
CHAINS(32, 12)
CHAINS(64, 16)

void tensorop_candidate_0(const struct tensorop_call *call) {
    static const tensorop_entry variant[] = {chains_16_10, chains_32_10, chains_64_10,
                                             chains_16_16, chains_32_12, chains_64_16};
    variant[call->flag[0]](call);
}
