/* Our own baselines, compiled with the platform's instructions. "im2col" multiplies a matrix of all
 * windows by the weights with any cblas_?gemm; if x already is this matrix, it is not copied.
 * "direct" has plain loops for depthwise convolutions. */
#include "baselines.h"
#include "bind.h"

/* The first output whose tap is inside an input of `size`, and the end of such outputs; the tap is
 * `at` from the start of the padding. */
static inline int64_t first_in(int64_t zeros, int64_t at, int64_t stride) {
    return at < zeros ? (zeros - at + stride - 1) / stride : 0;
}

static inline int64_t past_in(int64_t zeros, int64_t at, int64_t stride, int64_t size,
                              int64_t outputs) {
    int64_t past = size - 1 + zeros >= at ? (size - 1 + zeros - at) / stride + 1 : 0;
    return past < outputs ? past : outputs;
}

#define EACH(name, real, gemm)                                                                     \
    typedef void (*gemm_##name)(int, int, int, int, int, int, real, const real *, int,             \
                                const real *, int, real, real *, int);                             \
                                                                                                   \
    static void last_##name(const struct conv *z, const real *bias, real *y) {                     \
        int64_t area = z->high * z->wide;                                                          \
        if (!z->biased && !z->relu)                                                                \
            return;                                                                                \
        if (z->nhwc)                                                                               \
            for (int64_t i = 0; i < z->n * area; i++)                                              \
                for (int64_t k = 0; k < z->k; k++) {                                               \
                    real sum = y[i * z->k + k] + (z->biased ? bias[k] : 0);                        \
                    y[i * z->k + k] = z->relu && sum < 0 ? 0 : sum;                                \
                }                                                                                  \
        else                                                                                       \
            for (int64_t i = 0; i < z->n * z->k; i++)                                              \
                for (int64_t j = 0; j < area; j++) {                                               \
                    real sum = y[i * area + j] + (z->biased ? bias[i % z->k] : 0);                 \
                    y[i * area + j] = z->relu && sum < 0 ? 0 : sum;                                \
                }                                                                                  \
    }                                                                                              \
                                                                                                   \
    /* Windows of one group of one image: a row for each channel and tap, of all outputs. */       \
    static void windows_nchw_##name(const struct conv *z, const real *x, real *to) {               \
        for (int64_t c = 0; c < z->c / z->g; c++)                                                  \
            for (int64_t r = 0; r < z->r; r++)                                                     \
                for (int64_t s = 0; s < z->s; s++) {                                               \
                    int64_t at = s * z->e, a = first_in(z->l, at, z->v);                           \
                    int64_t b = past_in(z->l, at, z->v, z->w, z->wide);                            \
                    if (b < a)                                                                     \
                        a = b = z->wide;                                                           \
                    for (int64_t i = 0; i < z->high; i++, to += z->wide) {                         \
                        int64_t row = i * z->u + r * z->d - z->p;                                  \
                        if (row < 0 || row >= z->h) {                                              \
                            memset(to, 0, (size_t)z->wide * sizeof *to);                           \
                            continue;                                                              \
                        }                                                                          \
                        const real *from = x + (c * z->h + row) * z->w + at - z->l;                \
                        for (int64_t j = 0; j < a; j++)                                            \
                            to[j] = 0;                                                             \
                        if (z->v == 1 && b > a)                                                    \
                            memcpy(to + a, from + a, (size_t)(b - a) * sizeof *to);                \
                        else if (z->v == 2)                                                        \
                            for (int64_t j = a; j < b; j++)                                        \
                                to[j] = from[2 * j];                                               \
                        else                                                                       \
                            for (int64_t j = a; j < b; j++)                                        \
                                to[j] = from[j * z->v];                                            \
                        for (int64_t j = b; j < z->wide; j++)                                      \
                            to[j] = 0;                                                             \
                    }                                                                              \
                }                                                                                  \
    }                                                                                              \
                                                                                                   \
    /* The same, with a row for each output, of taps and their channels. */                        \
    static void windows_nhwc_##name(const struct conv *z, const real *x, real *to) {               \
        int64_t of = z->c / z->g;                                                                  \
        for (int64_t i = 0; i < z->high; i++)                                                      \
            for (int64_t j = 0; j < z->wide; j++)                                                  \
                for (int64_t r = 0; r < z->r; r++) {                                               \
                    int64_t row = i * z->u + r * z->d - z->p, first = j * z->v - z->l;             \
                    int inside = row >= 0 && row < z->h;                                           \
                    if (inside && z->e == 1 && z->g == 1 && first >= 0 && first + z->s <= z->w) {  \
                        memcpy(to, x + (row * z->w + first) * z->c,                                \
                               (size_t)(z->s * of) * sizeof *to);                                  \
                        to += z->s * of;                                                           \
                        continue;                                                                  \
                    }                                                                              \
                    for (int64_t s = 0; s < z->s; s++, to += of) {                                 \
                        int64_t at = first + s * z->e;                                             \
                        if (inside && at >= 0 && at < z->w)                                        \
                            memcpy(to, x + (row * z->w + at) * z->c, (size_t)of * sizeof *to);     \
                        else                                                                       \
                            memset(to, 0, (size_t)of * sizeof *to);                                \
                    }                                                                              \
                }                                                                                  \
    }                                                                                              \
                                                                                                   \
    void call_im2col_##name(const struct tensorop_bound *self, const struct tensorop_call *call) { \
        struct conv z = conv_of(call);                                                             \
        const real *x = call->buffer[BUFFER_x], *w = call->buffer[BUFFER_w];                       \
        real *y = call->buffer[BUFFER_y];                                                          \
        int64_t area = z.high * z.wide, of = z.c / z.g, filters = z.k / z.g,                       \
                depth = of * z.r * z.s;                                                            \
        int as_it_is = z.r == 1 && z.s == 1 && z.u == 1 && z.v == 1 && area == z.h * z.w;          \
        real *matrix = as_it_is ? NULL : tensorop_room((size_t)(depth * area) * sizeof *matrix);   \
        int64_t images = z.nhwc && as_it_is ? 1 : z.n,                                             \
                rows = z.nhwc && as_it_is ? z.n * area : area;                                     \
        for (int64_t n = 0; n < images; n++)                                                       \
            for (int64_t g = 0; g < z.g; g++) {                                                    \
                const real *of_group = w + g * filters * depth;                                    \
                if (z.nhwc) {                                                                      \
                    const real *from = x + n * z.h * z.w * z.c + g * of;                           \
                    if (!as_it_is)                                                                 \
                        windows_nhwc_##name(&z, from, matrix);                                     \
                    ((gemm_##name)self->function)(                                                 \
                        101, 111, 112, (int)rows, (int)filters, (int)depth, 1,                     \
                        as_it_is ? from : matrix, (int)(as_it_is ? z.c : depth), of_group,         \
                        (int)depth, 0, y + n * area * z.k + g * filters, (int)z.k);                \
                } else {                                                                           \
                    const real *from = x + (n * z.c + g * of) * z.h * z.w;                         \
                    if (!as_it_is)                                                                 \
                        windows_nchw_##name(&z, from, matrix);                                     \
                    ((gemm_##name)self->function)(101, 111, 111, (int)filters, (int)area,          \
                                                  (int)depth, 1, of_group, (int)depth,             \
                                                  as_it_is ? from : matrix, (int)area, 0,          \
                                                  y + (n * z.k + g * filters) * area, (int)area);  \
                }                                                                                  \
            }                                                                                      \
        last_##name(&z, call->buffer[BUFFER_bias], y);                                             \
    }                                                                                              \
                                                                                                   \
    void call_direct_##name(const struct tensorop_bound *self, const struct tensorop_call *call) { \
        struct conv z = conv_of(call);                                                             \
        const real *restrict x = call->buffer[BUFFER_x], *restrict w = call->buffer[BUFFER_w];     \
        real *restrict y = call->buffer[BUFFER_y];                                                 \
        int64_t of = z.c / z.g, filters = z.k / z.g, taps = z.r * z.s;                             \
        real *restrict turned =                                                                    \
            z.nhwc ? tensorop_room((size_t)(of * taps * z.k) * sizeof *turned) : NULL;             \
                                                                                                   \
        memset(y, 0, (size_t)(z.n * z.k * z.high * z.wide) * sizeof *y);                           \
        if (z.nhwc) /* filters are contiguous */                                                   \
            for (int64_t k = 0; k < z.k; k++)                                                      \
                for (int64_t i = 0; i < taps * of; i++)                                            \
                    turned[i * z.k + k] = w[k * taps * of + i];                                    \
        for (int64_t n = 0; n < z.n; n++)                                                          \
            for (int64_t k = 0; k < (z.nhwc ? 1 : z.k); k++)                                       \
                for (int64_t i = 0; i < z.high; i++)                                               \
                    for (int64_t c = 0; c < (z.nhwc ? 1 : of); c++)                                \
                        for (int64_t r = 0; r < z.r; r++) {                                        \
                            int64_t row = i * z.u + r * z.d - z.p;                                 \
                            if (row < 0 || row >= z.h)                                             \
                                continue;                                                          \
                            for (int64_t s = 0; s < z.s; s++) {                                    \
                                int64_t at = s * z.e, a = first_in(z.l, at, z.v);                  \
                                int64_t b = past_in(z.l, at, z.v, z.w, z.wide);                    \
                                if (!z.nhwc) {                                                     \
                                    const real tap = w[((k * of + c) * z.r + r) * z.s + s];        \
                                    const real *from =                                             \
                                        x + ((n * z.c + k / filters * of + c) * z.h + row) * z.w;  \
                                    real *to = y + ((n * z.k + k) * z.high + i) * z.wide;          \
                                    from += at - z.l;                                              \
                                    if (z.v == 1)                                                  \
                                        for (int64_t j = a; j < b; j++)                            \
                                            to[j] += tap * from[j];                                \
                                    else                                                           \
                                        for (int64_t j = a; j < b; j++)                            \
                                            to[j] += tap * from[j * z.v];                          \
                                    continue;                                                      \
                                }                                                                  \
                                for (int64_t j = a; j < b; j++) {                                  \
                                    const real *from =                                             \
                                        x + ((n * z.h + row) * z.w + j * z.v + at - z.l) * z.c;    \
                                    real *to = y + ((n * z.high + i) * z.wide + j) * z.k;          \
                                    const real *tap = turned + (r * z.s + s) * of * z.k;           \
                                    if (of == 1 && filters == 1)                                   \
                                        for (int64_t m = 0; m < z.k; m++)                          \
                                            to[m] += tap[m] * from[m];                             \
                                    else                                                           \
                                        for (int64_t q = 0; q < of; q++)                           \
                                            for (int64_t m = 0; m < z.k; m++)                      \
                                                to[m] +=                                           \
                                                    tap[q * z.k + m] * from[m / filters * of + q]; \
                                }                                                                  \
                            }                                                                      \
                        }                                                                          \
        last_##name(&z, call->buffer[BUFFER_bias], y);                                             \
    }
EACH(f32, float, cblas_sgemm)
EACH(f64, double, cblas_dgemm)
