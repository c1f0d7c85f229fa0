/* conv1d behind the harness's calling convention: dim b, c, h, t, u, p; flag 0 the variant to
 * force; buffer x, w, y.
 *
 * "tensorop" is the product's tensorop_conv1d_<dtype>_variant; "taps" is a loop over taps of a
 * BLAS's cblas_?axpy, "loops" plain C of baselines.c. */
#include "baselines.h"
#include "bind.h"
#include "slots.h"

typedef int (*ours)(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, const void *,
                    const void *, void *, int);

static void call_ours(const struct tensorop_bound *self, const struct tensorop_call *c) {
    const int64_t *d = c->dim;
    ((ours)self->function)(d[DIM_b], d[DIM_c], d[DIM_h], d[DIM_t], d[DIM_u], d[DIM_p],
                           c->buffer[BUFFER_x], c->buffer[BUFFER_w], c->buffer[BUFFER_y],
                           (int)c->flag[FLAG_variant]);
}

#define TAPS(name, real)                                                                           \
    typedef void (*axpy_##name)(int, real, const real *, int, real *, int);                        \
    static void call_taps_##name(const struct tensorop_bound *self,                                \
                                 const struct tensorop_call *call) {                               \
        int64_t b = call->dim[DIM_b], c = call->dim[DIM_c], h = call->dim[DIM_h],                  \
                taps = call->dim[DIM_t];                                                           \
        int64_t u = call->dim[DIM_u], p = call->dim[DIM_p], n = (h + 2 * p - taps) / u + 1;        \
        for (int64_t row = 0; row < b * c; row++) {                                                \
            const real *x = (const real *)call->buffer[BUFFER_x] + row * h;                        \
            const real *w = (const real *)call->buffer[BUFFER_w] + row % c * taps;                 \
            real *y = (real *)call->buffer[BUFFER_y] + row * n;                                    \
            memset(y, 0, (size_t)n * sizeof *y);                                                   \
            for (int64_t t = 0; t < taps; t++) {                                                   \
                int64_t first = t < p ? (p - t + u - 1) / u : 0, last = (h - 1 + p - t) / u;       \
                last = h + p <= t ? -1 : last < n ? last : n - 1;                                  \
                if (first <= last)                                                                 \
                    ((axpy_##name)self->function)((int)(last - first + 1), w[t],                   \
                                                  x + first * u + t - p, (int)u, y + first, 1);    \
            }                                                                                      \
        }                                                                                          \
    }
TAPS(f32, float)
TAPS(f64, double)

static const struct tensorop_interface interfaces[] = {
    {"tensorop", "f32", "tensorop_conv1d_f32_variant", call_ours},
    {"tensorop", "f64", "tensorop_conv1d_f64_variant", call_ours},
    {"taps", "f32", "cblas_saxpy", call_taps_f32},
    {"taps", "f64", "cblas_daxpy", call_taps_f64},
    {"loops", "f32", NULL, loops_f32},
    {"loops", "f64", NULL, loops_f64},
};

int tensorop_bind(struct tensorop_bound *out, const char *api, const char *dtype,
                  const char *prefix, const char *suffix,
                  void *(*lookup)(void *handle, const char *symbol), void *handle) {
    return tensorop_bind_among(interfaces, sizeof interfaces / sizeof *interfaces, out, api, dtype,
                               prefix, suffix, lookup, handle);
}
