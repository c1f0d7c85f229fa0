/* A baseline of our own: B is copied to C, then cblas_?trmm. */
#include "bind.h"
#include "slots.h"

enum {
    ROW_MAJOR = 101,
    LEFT = 141,
    UPPER = 121,
    LOWER = 122,
    NO_TRANS = 111,
    NON_UNIT = 131,
    UNIT = 132
};

#define BASELINE(name, real)                                                                       \
    typedef void (*trmm_##name)(int, int, int, int, int, int, int, real, const real *, int,        \
                                real *, int);                                                      \
                                                                                                   \
    static void call_##name(const struct tensorop_bound *self, const struct tensorop_call *call) { \
        const int m = (int)call->dim[DIM_m], n = (int)call->dim[DIM_n];                            \
        memcpy(call->buffer[BUFFER_C], call->buffer[BUFFER_B],                                     \
               (size_t)m *(size_t)n * sizeof(real));                                               \
        ((trmm_##name)self->function)(                                                             \
            ROW_MAJOR, LEFT, call->flag[FLAG_uplo] == UPLO_upper ? UPPER : LOWER, NO_TRANS,        \
            call->flag[FLAG_unit] ? UNIT : NON_UNIT, m, n, (real)call->scalar[SCALAR_alpha],       \
            call->buffer[BUFFER_A], m, call->buffer[BUFFER_C], n);                                 \
    }
BASELINE(f32, float)
BASELINE(f64, double)

const struct tensorop_interface tensorop_baselines[] = {
    {"trmm", "f32", "cblas_strmm", call_f32},
    {"trmm", "f64", "cblas_dtrmm", call_f64},
    {NULL, NULL, NULL, NULL},
};
