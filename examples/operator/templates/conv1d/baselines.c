/* Baselines of our own, compiled with the platform's instructions: "taps" is a loop over taps of a
 * BLAS's cblas_?axpy, "loops" plain C. */
#include "bind.h"
#include "slots.h"

#define BASELINES(name, real)                                                                      \
    typedef void (*axpy_##name)(int, real, const real *, int, real *, int);                        \
                                                                                                   \
    static void call_##name(const struct tensorop_bound *self, const struct tensorop_call *call) { \
        const int64_t *d = call->dim, h = d[DIM_h], taps = d[DIM_t], u = d[DIM_u], p = d[DIM_p];   \
        const int64_t n = (h + 2 * p - taps) / u + 1;                                              \
        const real alpha = (real)call->scalar[SCALAR_alpha];                                       \
        for (int64_t row = 0; row < d[DIM_b] * d[DIM_c]; row++) {                                  \
            const real *x = (const real *)call->buffer[BUFFER_x] + row * h - p;                    \
            const real *w = (const real *)call->buffer[BUFFER_w] + row % d[DIM_c] * taps;          \
            real *y = (real *)call->buffer[BUFFER_y] + row * n;                                    \
            memset(y, 0, (size_t)n * sizeof *y);                                                   \
            for (int64_t t = 0; t < taps && self->function; t++) {                                 \
                int64_t first = t < p ? (p - t + u - 1) / u : 0, last = (h - 1 + p - t) / u;       \
                last = h + p <= t ? -1 : last < n ? last : n - 1;                                  \
                if (first <= last)                                                                 \
                    ((axpy_##name)self->function)((int)(last - first + 1), w[t],                   \
                                                  x + first * u + t, (int)u, y + first, 1);        \
            }                                                                                      \
            for (int64_t i = 0; i < n; i++) {                                                      \
                int64_t t = i * u < p ? p - i * u : 0, left = h + p - i * u;                       \
                real sum = y[i];                                                                   \
                for (; !self->function && t < (left < taps ? left : taps); t++)                    \
                    sum += w[t] * x[i * u + t];                                                    \
                y[i] = call->flag[FLAG_relu] && alpha * sum < 0 ? 0 : alpha * sum;                 \
            }                                                                                      \
        }                                                                                          \
    }
BASELINES(f32, float)
BASELINES(f64, double)

const struct tensorop_interface tensorop_baselines[] = {
    {"taps", "f32", "cblas_saxpy", call_f32},
    {"taps", "f64", "cblas_daxpy", call_f64},
    {"loops", "f32", NULL, call_f32},
    {"loops", "f64", NULL, call_f64},
    {NULL, NULL, NULL, NULL},
};
