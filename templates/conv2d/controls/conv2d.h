/* Shared code of the controls: the convolution in plain loops. */
#include "call.h"
#include "slots.h"

#include <string.h>

#if defined TENSOROP_DTYPE_f64
#define REAL double
#else
#define REAL float
#endif

struct conv2d {
    int64_t n, c, h, w, k, r, s, u, v, p, b, l, q, d, e, g, high, wide;
    int nhwc, biased, relu;
    int dull, narrow, shallow; /* faults: large x or far columns of x are 0; half of c */
    int lost, flipped, shared; /* faults: the last tap ignored, filters flipped, the first group's
                                  channels for every group */
    const REAL *x, *taps, *bias;
    REAL *y;
};

static inline struct conv2d conv2d_of(const struct tensorop_call *call) {
    struct conv2d z = {.relu = (int)call->flag[FLAG_relu], .y = call->buffer[BUFFER_y]};
    memcpy(&z, call->dim, 16 * sizeof *call->dim); /* n to g */
    z.nhwc = call->flag[FLAG_layout] == LAYOUT_nhwc, z.biased = (int)call->flag[FLAG_bias];
    z.x = call->buffer[BUFFER_x], z.taps = call->buffer[BUFFER_w];
    z.bias = call->buffer[BUFFER_bias];
    z.high = (z.h + z.p + z.b - z.d * (z.r - 1) - 1) / z.u + 1;
    z.wide = (z.w + z.l + z.q - z.e * (z.s - 1) - 1) / z.v + 1;
    return z;
}

static inline int64_t conv2d_x(const struct conv2d *z, int64_t n, int64_t c, int64_t i, int64_t j) {
    return z->nhwc ? ((n * z->h + i) * z->w + j) * z->c + c
                   : ((n * z->c + c) * z->h + i) * z->w + j;
}

static inline int64_t conv2d_tap(const struct conv2d *z, int64_t k, int64_t c, int64_t r,
                                 int64_t s) {
    const int64_t of = z->c / z->g;
    return z->nhwc ? ((k * z->r + r) * z->s + s) * of + c : ((k * of + c) * z->r + r) * z->s + s;
}

static inline int64_t conv2d_y(const struct conv2d *z, int64_t n, int64_t k, int64_t i, int64_t j) {
    return z->nhwc ? ((n * z->high + i) * z->wide + j) * z->k + k
                   : ((n * z->k + k) * z->high + i) * z->wide + j;
}

/* The sum for output i, j of filter k, without bias. */
static inline REAL conv2d_sum(const struct conv2d *z, int64_t n, int64_t k, int64_t i, int64_t j) {
    const int64_t of = z->c / z->g, first = z->shared ? 0 : k / (z->k / z->g) * of;
    REAL sum = 0;
    for (int64_t c = 0; c < of; c++)
        for (int64_t r = 0; r < z->r; r++)
            for (int64_t s = 0; s < z->s; s++) {
                const int64_t a = i * z->u + r * z->d - z->p, b = j * z->v + s * z->e - z->l;
                const int64_t tap = z->flipped ? conv2d_tap(z, k, c, z->r - 1 - r, z->s - 1 - s)
                                               : conv2d_tap(z, k, c, r, s);
                if (z->lost && c == of - 1 && r == z->r - 1 && s == z->s - 1)
                    continue;
                if (z->shallow && 2 * c >= of)
                    continue;
                if (z->narrow && b >= 1200)
                    continue;
                if (a >= 0 && a < z->h && b >= 0 && b < z->w) {
                    const REAL x = z->x[conv2d_x(z, n, first + c, a, b)];
                    sum += z->taps[tap] * (z->dull && (x > (REAL)1e15 || x < (REAL)-1e15) ? 0 : x);
                }
            }
    return sum;
}

static inline REAL conv2d_last(const struct conv2d *z, int64_t k, REAL sum) {
    if (z->biased)
        sum += z->bias[k];
    return z->relu && sum < 0 ? 0 : sum;
}

static inline void conv2d_all(const struct conv2d *z) {
    for (int64_t n = 0; n < z->n; n++)
        for (int64_t k = 0; k < z->k; k++)
            for (int64_t i = 0; i < z->high; i++)
                for (int64_t j = 0; j < z->wide; j++)
                    z->y[conv2d_y(z, n, k, i, j)] = conv2d_last(z, k, conv2d_sum(z, n, k, i, j));
}
