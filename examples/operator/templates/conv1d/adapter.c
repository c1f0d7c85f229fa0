/* conv1d behind the harness's calling convention: dim b, c, h, t, u, p; flag 0 the variant to
 * force; buffer x, w, y.
 *
 * "tensorop" is the product's tensorop_conv1d_<dtype>_variant; "taps" is a loop over taps of a
 * BLAS's cblas_?axpy. */
#include "bind.h"

typedef int (*ours)(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, const void *,
                    const void *, void *, int);

static void call_ours(const struct tensorop_bound *self, const struct tensorop_call *c) {
    const int64_t *d = c->dim;
    ((ours)self->function)(d[0], d[1], d[2], d[3], d[4], d[5], c->buffer[0], c->buffer[1],
                           c->buffer[2], (int)c->flag[0]);
}

#define TAPS(name, real)                                                                           \
    typedef void (*axpy_##name)(int, real, const real *, int, real *, int);                        \
    static void call_taps_##name(const struct tensorop_bound *self,                                \
                                 const struct tensorop_call *call) {                               \
        int64_t b = call->dim[0], c = call->dim[1], h = call->dim[2], taps = call->dim[3];         \
        int64_t u = call->dim[4], p = call->dim[5], n = (h + 2 * p - taps) / u + 1;                \
        for (int64_t row = 0; row < b * c; row++) {                                                \
            const real *x = (const real *)call->buffer[0] + row * h;                               \
            const real *w = (const real *)call->buffer[1] + row % c * taps;                        \
            real *y = (real *)call->buffer[2] + row * n;                                           \
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
};

int tensorop_bind(struct tensorop_bound *out, const char *api, const char *dtype,
                  const char *prefix, const char *suffix,
                  void *(*lookup)(void *handle, const char *symbol), void *handle) {
    return tensorop_bind_among(interfaces, sizeof interfaces / sizeof *interfaces, out, api, dtype,
                               prefix, suffix, lookup, handle);
}
