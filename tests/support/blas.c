/* cblas_sgemm and cblas_sgemv by the definition of BLAS. Macros break them: EXTRA_GEMM and
 * EXTRA_GEMV repeat the work so often, OFF_GEMM and OFF_GEMV are added to the result; NO_GEMV
 * leaves it out. */
#include <stddef.h>

static float dot(const float *x, ptrdiff_t step_x, const float *y, ptrdiff_t step_y, int k) {
    double sum = 0;
    for (int i = 0; i < k; i++)
        sum += (double)x[i * step_x] * y[i * step_y];
    return (float)sum;
}

static float updated(float alpha, float sum, float beta, float old) {
    return (alpha == 0 ? 0 : alpha * sum) + (beta == 0 ? 0 : beta * old);
}

void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a,
                 int lda, const float *b, int ldb, float beta, float *c, int ldc) {
    const int row = order == 101;
    const ptrdiff_t down_a = row == (ta == 111) ? lda : 1, along_a = row == (ta == 111) ? 1 : lda;
    const ptrdiff_t down_b = row == (tb == 111) ? ldb : 1, along_b = row == (tb == 111) ? 1 : ldb;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            float *to = c + (row ? i * (ptrdiff_t)ldc + j : j * (ptrdiff_t)ldc + i);
            volatile float sum;
            for (int again = 0; again <= EXTRA_GEMM; again++)
                sum = dot(a + i * down_a, along_a, b + j * along_b, down_b, k);
            *to = updated(alpha, sum, beta, *to) + OFF_GEMM;
        }
}

#ifndef NO_GEMV
void cblas_sgemv(int order, int trans, int rows, int columns, float alpha, const float *a, int lda,
                 const float *x, int step_x, float beta, float *y, int step_y) {
    const int row = order == 101, turned = trans != 111;
    const ptrdiff_t down = row ? lda : 1, along = row ? 1 : lda;
    for (int i = 0; i < (turned ? columns : rows); i++) {
        volatile float sum;
        for (int again = 0; again <= EXTRA_GEMV; again++)
            sum = dot(a + i * (turned ? along : down), turned ? down : along, x, step_x,
                      turned ? rows : columns);
        float *to = y + i * (ptrdiff_t)step_y;
        *to = updated(alpha, sum, beta, *to) + OFF_GEMV;
    }
}
#endif
