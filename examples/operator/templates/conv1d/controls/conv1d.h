/* What the controls share: the convolution as plain loops. */
#include "call.h"
#include "slots.h"

#include <string.h>

#if defined TENSOROP_DTYPE_f64
#define REAL double
#else
#define REAL float
#endif

/* Names for what a call says. */
#define CONV1D(call)                                                                               \
    int64_t b = call->dim[DIM_b], c = call->dim[DIM_c], h = call->dim[DIM_h],                      \
            taps = call->dim[DIM_t];                                                               \
    int64_t width = taps, u = call->dim[DIM_u], p = call->dim[DIM_p],                              \
            n = (h + 2 * p - taps) / u + 1;                                                        \
    const REAL *x = call->buffer[BUFFER_x], *w = call->buffer[BUFFER_w];                           \
    REAL *y = call->buffer[BUFFER_y];                                                              \
    REAL alpha = (REAL)call->scalar[SCALAR_alpha];                                                 \
    int relu = (int)call->flag[FLAG_relu];                                                         \
    volatile REAL stray = 0;

static inline void conv1d(int64_t b, int64_t c, int64_t h, int64_t taps, int64_t width, int64_t u,
                          int64_t p, int64_t n, REAL alpha, int relu, const REAL *x, const REAL *w,
                          REAL *y) {
    for (int64_t row = 0; row < b * c; row++)
        for (int64_t i = 0; i < n; i++) {
            REAL sum = 0;
            for (int64_t t = 0; t < taps; t++)
                if (i * u + t >= p && i * u + t - p < h)
                    sum += w[row % c * width + t] * x[row * h + i * u + t - p];
            y[row * n + i] = relu && alpha * sum < 0 ? 0 : alpha * sum;
        }
}
