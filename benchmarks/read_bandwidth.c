/* Reading memory once, as fast as plain loops can: sums of f32 in vectors of one length, by one or
 * several streams at a time, with and without prefetches. Which is fastest is the machine's secret:
 * all are tried. */
#include <stddef.h>

#define LOOP(BYTES, STREAMS, AHEAD)                                                                \
    float read_##BYTES##_##STREAMS##_##AHEAD(const float *from, size_t count) {                    \
        typedef float vector __attribute__((vector_size(BYTES), aligned(4)));                      \
        enum { LANES = BYTES / 4, LINE = 16 > LANES ? 16 : LANES };                                \
        const size_t apart = count / STREAMS / LINE * LINE;                                        \
        vector sum[STREAMS][LINE / LANES];                                                         \
        for (size_t s = 0; s < STREAMS; s++)                                                       \
            for (size_t v = 0; v < LINE / LANES; v++)                                              \
                sum[s][v] = (vector){0};                                                           \
        for (size_t i = 0; i < apart; i += LINE)                                                   \
            _Pragma("clang loop unroll(full)") for (size_t s = 0; s < STREAMS; s++) {              \
                const float *at = from + s * apart + i;                                            \
                if (AHEAD)                                                                         \
                    __builtin_prefetch(at + AHEAD);                                                \
                _Pragma("clang loop unroll(full)") for (size_t v = 0; v < LINE / LANES; v++)       \
                    sum[s][v] += *(const vector *)(at + v * LANES);                                \
            }                                                                                      \
        vector all = {0};                                                                          \
        for (size_t s = 0; s < STREAMS; s++)                                                       \
            for (size_t v = 0; v < LINE / LANES; v++)                                              \
                all += sum[s][v];                                                                  \
        return all[0];                                                                             \
    }

#define LOOPS(BYTES)                                                                               \
    LOOP(BYTES, 1, 0)                                                                              \
    LOOP(BYTES, 2, 0)                                                                              \
    LOOP(BYTES, 4, 0)                                                                              \
    LOOP(BYTES, 8, 0)                                                                              \
    LOOP(BYTES, 1, 512)                                                                            \
    LOOP(BYTES, 4, 512)                                                                            \
    LOOP(BYTES, 4, 128)

LOOPS(16)
LOOPS(32)
LOOPS(64)
