/* What the controls share: the product as plain loops. */
#include "call.h"
#include "slots.h"

#if defined TENSOROP_DTYPE_f64
#define REAL double
#else
#define REAL float
#endif

/* past: elements of each row of A beyond the triangle */
static inline void trmm(const struct tensorop_call *call, REAL alpha, int unit, int64_t past) {
    const int64_t m = call->dim[DIM_m], n = call->dim[DIM_n];
    const REAL *a = call->buffer[BUFFER_A], *b = call->buffer[BUFFER_B];
    REAL *c = call->buffer[BUFFER_C];
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            REAL sum = 0;
            for (int64_t p = 0; p < m; p++)
                if ((call->flag[FLAG_uplo] == UPLO_upper ? i - p : p - i) <= past)
                    sum += (unit && i == p ? 1 : a[i * m + p]) * b[p * n + j];
            c[i * n + j] = alpha * sum;
        }
}

#define ALPHA ((REAL)call->scalar[SCALAR_alpha])
#define UNIT_DIAGONAL ((int)call->flag[FLAG_unit])
