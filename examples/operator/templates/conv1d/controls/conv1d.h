/* What the controls share: the convolution as plain loops. */
#include "call.h"

#if defined TENSOROP_DTYPE_f64
#define REAL double
#else
#define REAL float
#endif

/* Names for what a call says. */
#define CONV1D(call)                                                                               \
    int64_t b = call->dim[0], c = call->dim[1], h = call->dim[2], taps = call->dim[3];             \
    int64_t width = taps, u = call->dim[4], p = call->dim[5], n = (h + 2 * p - taps) / u + 1;      \
    const REAL *x = call->buffer[0], *w = call->buffer[1];                                         \
    REAL *y = call->buffer[2];                                                                     \
    volatile REAL stray = 0;

static inline void conv1d(int64_t b, int64_t c, int64_t h, int64_t taps, int64_t width, int64_t u,
                          int64_t p, int64_t n, const REAL *x, const REAL *w, REAL *y) {
    for (int64_t row = 0; row < b * c; row++)
        for (int64_t i = 0; i < n; i++) {
            REAL sum = 0;
            for (int64_t t = 0; t < taps; t++)
                if (i * u + t >= p && i * u + t - p < h)
                    sum += w[row % c * width + t] * x[row * h + i * u + t - p];
            y[row * n + i] = sum;
        }
}
