/* What the controls share: the layer as plain loops. */
#include "call.h"
#include "slots.h"

#if defined TENSOROP_DTYPE_f64
#define REAL double
#else
#define REAL float
#endif

/* biased: rows of y that get the bias */
static inline void dense(const struct tensorop_call *call, int64_t depth, int64_t biased,
                         int relu) {
    const int64_t m = call->dim[DIM_m], n = call->dim[DIM_n], k = call->dim[DIM_k];
    const REAL *x = call->buffer[BUFFER_x], *w = call->buffer[BUFFER_w],
               *bias = call->buffer[BUFFER_bias];
    REAL *y = call->buffer[BUFFER_y];
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            REAL sum = i < biased ? bias[j] : 0;
            for (int64_t p = 0; p < depth; p++)
                sum += x[i * k + p] * w[j * k + p];
            y[i * n + j] = relu && sum < 0 ? 0 : sum;
        }
}

#define M (call->dim[DIM_m])
#define K (call->dim[DIM_k])
#define RELU ((int)call->flag[FLAG_relu])
