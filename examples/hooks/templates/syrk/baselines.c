/* A baseline of our own: cblas_?syrk. */
#include "bind.h"
#include "slots.h"

enum { ROW_MAJOR = 101, UPPER = 121, LOWER = 122, NO_TRANS = 111 };

#define BASELINE(name, real)                                                                       \
    typedef void (*syrk_##name)(int, int, int, int, int, real, const real *, int, real, real *,    \
                                int);                                                              \
                                                                                                   \
    static void call_##name(const struct tensorop_bound *self, const struct tensorop_call *call) { \
        const int n = (int)call->dim[DIM_n], k = (int)call->dim[DIM_k];                            \
        ((syrk_##name)self->function)(                                                             \
            ROW_MAJOR, call->flag[FLAG_uplo] == UPLO_upper ? UPPER : LOWER, NO_TRANS, n, k,        \
            (real)call->scalar[SCALAR_alpha], call->buffer[BUFFER_A], k,                           \
            (real)call->scalar[SCALAR_beta], call->buffer[BUFFER_C], n);                           \
    }
BASELINE(f32, float)
BASELINE(f64, double)

const struct tensorop_interface tensorop_baselines[] = {
    {"syrk", "f32", "cblas_ssyrk", call_f32},
    {"syrk", "f64", "cblas_dsyrk", call_f64},
    {NULL, NULL, NULL, NULL},
};
