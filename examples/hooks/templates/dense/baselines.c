/* A baseline of our own: cblas_?gemm, then loops for bias and ReLU. */
#include "bind.h"
#include "slots.h"

enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 };

#define BASELINE(name, real)                                                                       \
    typedef void (*gemm_##name)(int, int, int, int, int, int, real, const real *, int,             \
                                const real *, int, real, real *, int);                             \
                                                                                                   \
    static void call_##name(const struct tensorop_bound *self, const struct tensorop_call *call) { \
        const int64_t m = call->dim[DIM_m], n = call->dim[DIM_n];                                  \
        const int k = (int)call->dim[DIM_k], relu = (int)call->flag[FLAG_relu];                    \
        const real *bias = call->buffer[BUFFER_bias];                                              \
        real *y = call->buffer[BUFFER_y];                                                          \
        ((gemm_##name)self->function)(ROW_MAJOR, NO_TRANS, TRANS, (int)m, (int)n, k, 1,            \
                                      call->buffer[BUFFER_x], k, call->buffer[BUFFER_w], k, 0, y,  \
                                      (int)n);                                                     \
        for (int64_t i = 0; i < m; i++)                                                            \
            for (int64_t j = 0; j < n; j++) {                                                      \
                const real sum = y[i * n + j] + bias[j];                                           \
                y[i * n + j] = relu && sum < 0 ? 0 : sum;                                          \
            }                                                                                      \
    }
BASELINE(f32, float)
BASELINE(f64, double)

const struct tensorop_interface tensorop_baselines[] = {
    {"layer", "f32", "cblas_sgemm", call_f32},
    {"layer", "f64", "cblas_dgemm", call_f64},
    {NULL, NULL, NULL, NULL},
};
