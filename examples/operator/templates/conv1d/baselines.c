/* Baselines of our own, compiled with the platform's instructions. */
#include "baselines.h"
#include "slots.h"

#define LOOPS(name, real)                                                                          \
    void loops_##name(const struct tensorop_bound *self, const struct tensorop_call *call) {       \
        const int64_t *d = call->dim, h = d[DIM_h], taps = d[DIM_t], u = d[DIM_u], p = d[DIM_p];   \
        const int64_t n = (h + 2 * p - taps) / u + 1;                                              \
        for (int64_t row = 0; row < d[DIM_b] * d[DIM_c]; row++) {                                  \
            const real *x = (const real *)call->buffer[BUFFER_x] + row * h - p;                    \
            const real *w = (const real *)call->buffer[BUFFER_w] + row % d[DIM_c] * taps;          \
            real *y = (real *)call->buffer[BUFFER_y] + row * n;                                    \
            for (int64_t i = 0; i < n; i++) {                                                      \
                int64_t t = i * u < p ? p - i * u : 0, left = h + p - i * u;                       \
                real sum = 0;                                                                      \
                for (; t < (left < taps ? left : taps); t++)                                       \
                    sum += w[t] * x[i * u + t];                                                    \
                y[i] = sum;                                                                        \
            }                                                                                      \
        }                                                                                          \
        (void)self;                                                                                \
    }
LOOPS(f32, float)
LOOPS(f64, double)
