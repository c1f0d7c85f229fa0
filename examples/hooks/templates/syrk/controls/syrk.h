/* What the controls share: one triangle as plain loops. */
#include "call.h"
#include "slots.h"

#if defined TENSOROP_DTYPE_f64
#define REAL double
#else
#define REAL float
#endif

/* past: elements of each row beyond the triangle */
static inline void syrk(const struct tensorop_call *call, REAL alpha, REAL beta, int64_t depth,
                        int64_t past) {
    const int64_t n = call->dim[DIM_n], k = call->dim[DIM_k];
    const REAL *a = call->buffer[BUFFER_A];
    REAL *c = call->buffer[BUFFER_C];
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            const int64_t beyond = call->flag[FLAG_uplo] == UPLO_upper ? i - j : j - i;
            REAL sum = 0;
            for (int64_t p = 0; p < depth; p++)
                sum += a[i * k + p] * a[j * k + p];
            if (beyond <= past)
                c[i * n + j] = alpha * sum + (beta == 0 ? 0 : beta * c[i * n + j]);
        }
}

#define ALPHA ((REAL)call->scalar[SCALAR_alpha])
#define BETA ((REAL)call->scalar[SCALAR_beta])
#define K (call->dim[DIM_k])
