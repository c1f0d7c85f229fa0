/* gemm behind the harness's calling convention.
 *
 *   dim     m, n, k
 *   ld      lda, ldb, ldc
 *   scalar  alpha, beta
 *   flag    0 layout (101 row-major, 102 column-major, as in CBLAS), 1 op(A) transposed, 2 op(B) transposed,
 *           3 variant of the dispatch table to force, -1 lets the library choose
 *   buffer  A, B, C
 *
 * Interfaces: "tensorop" is the product's tensorop_gemm_<dtype>_variant; "cblas" any cblas_?gemm. */
#include "call.h"

#include <stdio.h>
#include <string.h>

typedef int (*ours_f32)(int, int, int, int64_t, int64_t, int64_t, float, const float *, int64_t, const float *, int64_t,
                        float, float *, int64_t, int);
typedef int (*ours_f64)(int, int, int, int64_t, int64_t, int64_t, double, const double *, int64_t, const double *,
                        int64_t, double, double *, int64_t, int);
typedef void (*cblas_f32)(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *,
                          int);
typedef void (*cblas_f64)(int, int, int, int, int, int, double, const double *, int, const double *, int, double,
                          double *, int);

#define CBLAS_TRANS(flag) ((flag) ? 112 : 111)

static void call_ours_f32(const struct tensorop_bound *self, const struct tensorop_call *c) {
    ((ours_f32)self->function)((int)c->flag[0], CBLAS_TRANS(c->flag[1]), CBLAS_TRANS(c->flag[2]), c->dim[0], c->dim[1],
                               c->dim[2], (float)c->scalar[0], c->buffer[0], c->ld[0], c->buffer[1], c->ld[1],
                               (float)c->scalar[1], c->buffer[2], c->ld[2], (int)c->flag[3]);
}

static void call_ours_f64(const struct tensorop_bound *self, const struct tensorop_call *c) {
    ((ours_f64)self->function)((int)c->flag[0], CBLAS_TRANS(c->flag[1]), CBLAS_TRANS(c->flag[2]), c->dim[0], c->dim[1],
                               c->dim[2], c->scalar[0], c->buffer[0], c->ld[0], c->buffer[1], c->ld[1], c->scalar[1],
                               c->buffer[2], c->ld[2], (int)c->flag[3]);
}

static void call_cblas_f32(const struct tensorop_bound *self, const struct tensorop_call *c) {
    ((cblas_f32)self->function)((int)c->flag[0], CBLAS_TRANS(c->flag[1]), CBLAS_TRANS(c->flag[2]), (int)c->dim[0],
                                (int)c->dim[1], (int)c->dim[2], (float)c->scalar[0], c->buffer[0], (int)c->ld[0],
                                c->buffer[1], (int)c->ld[1], (float)c->scalar[1], c->buffer[2], (int)c->ld[2]);
}

static void call_cblas_f64(const struct tensorop_bound *self, const struct tensorop_call *c) {
    ((cblas_f64)self->function)((int)c->flag[0], CBLAS_TRANS(c->flag[1]), CBLAS_TRANS(c->flag[2]), (int)c->dim[0],
                                (int)c->dim[1], (int)c->dim[2], c->scalar[0], c->buffer[0], (int)c->ld[0], c->buffer[1],
                                (int)c->ld[1], c->scalar[1], c->buffer[2], (int)c->ld[2]);
}

int tensorop_bind(struct tensorop_bound *out, const char *api, const char *dtype, const char *prefix,
                  const char *suffix, void *(*lookup)(void *handle, const char *symbol), void *handle) {
    char symbol[128];
    int single = strcmp(dtype, "f32") == 0;
    if (!single && strcmp(dtype, "f64") != 0)
        return -1;
    if (strcmp(api, "tensorop") == 0) {
        snprintf(symbol, sizeof symbol, "%stensorop_gemm_%s_variant%s", prefix, dtype, suffix);
        out->call = single ? call_ours_f32 : call_ours_f64;
    } else if (strcmp(api, "cblas") == 0) {
        snprintf(symbol, sizeof symbol, "%scblas_%cgemm%s", prefix, single ? 's' : 'd', suffix);
        out->call = single ? call_cblas_f32 : call_cblas_f64;
    } else {
        return -1;
    }
    out->function = lookup(handle, symbol);
    return out->function ? 0 : -1;
}
