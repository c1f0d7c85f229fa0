/* Adapts gemm's function with an epilogue to the harness's calling convention. */
#include "bind.h"
#include "slots.h"

#include <stddef.h>

#define CBLAS_TRANS(flag) ((flag) ? 112 : 111)
#define GIVEN(of, name) (c->flag[FLAG_##of] ? c->buffer[BUFFER_##name] : NULL)

#define OURS(dtype, real)                                                                          \
    struct call_of_##dtype {                                                                       \
        int layout, transa, transb;                                                                \
        real alpha, beta;                                                                          \
        int64_t m, n, k, lda, ldb, ldc;                                                            \
    };                                                                                             \
    struct epilogue_of_##dtype {                                                                   \
        int activation;                                                                            \
        const real *bias, *residual;                                                               \
        int64_t ld_residual;                                                                       \
        const real *scale_rows, *scale_columns;                                                    \
    };                                                                                             \
    typedef int (*ours_##dtype)(const struct call_of_##dtype *,                                    \
                                const struct epilogue_of_##dtype *, const void *, const void *,    \
                                real *, int);                                                      \
    static void call_##dtype(const struct tensorop_bound *self, const struct tensorop_call *c) {   \
        const struct call_of_##dtype call = {                                                      \
            .layout = (int)c->flag[FLAG_layout],                                                   \
            .transa = CBLAS_TRANS(c->flag[FLAG_ta]),                                               \
            .transb = CBLAS_TRANS(c->flag[FLAG_tb]),                                               \
            .alpha = (real)c->scalar[SCALAR_alpha],                                                \
            .beta = (real)c->scalar[SCALAR_beta],                                                  \
            .m = c->dim[DIM_m],                                                                    \
            .n = c->dim[DIM_n],                                                                    \
            .k = c->dim[DIM_k],                                                                    \
            .lda = c->ld[LD_A],                                                                    \
            .ldb = c->ld[LD_B],                                                                    \
            .ldc = c->ld[LD_C],                                                                    \
        };                                                                                         \
        const struct epilogue_of_##dtype epilogue = {                                              \
            .activation = (int)c->flag[FLAG_activation],                                           \
            .bias = GIVEN(biased, bias),                                                           \
            .residual = GIVEN(added, residual),                                                    \
            .ld_residual = c->ld[LD_residual],                                                     \
            .scale_rows = GIVEN(by_rows, scale_rows),                                              \
            .scale_columns = GIVEN(by_columns, scale_columns),                                     \
        };                                                                                         \
        ((ours_##dtype)self->function)(&call, &epilogue, c->buffer[BUFFER_A], c->buffer[BUFFER_B], \
                                       c->buffer[BUFFER_C], (int)c->flag[FLAG_variant]);           \
    }

OURS(f32, float)
OURS(f64, double)
OURS(bf16, float)
OURS(f16, float)

static const struct tensorop_interface interfaces[] = {
    {"tensorop", "f32", "tensorop_gemm_f32_epilogue_variant", call_f32},
    {"tensorop", "f64", "tensorop_gemm_f64_epilogue_variant", call_f64},
    {"tensorop", "bf16", "tensorop_gemm_bf16_epilogue_variant", call_bf16},
    {"tensorop", "f16", "tensorop_gemm_f16_epilogue_variant", call_f16},
};

int tensorop_bind(struct tensorop_bound *out, const char *api, const char *dtype,
                  const char *prefix, const char *suffix,
                  void *(*lookup)(void *handle, const char *symbol), void *handle) {
    return tensorop_bind_among(interfaces, sizeof interfaces / sizeof *interfaces, out, api, dtype,
                               prefix, suffix, lookup, handle);
}
