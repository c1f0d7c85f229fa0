/* C = alpha * A * B through the tuned library, against a naive loop: prints the largest difference.
 * Exit status 0 when it is within what rounding explains. In double where the library has it, else
 * in float. */
#include <tensorop/gemm.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#if defined TENSOROP_GEMM_HAS_F64
typedef double real;
#define GEMM tensorop_dgemm
#define EPSILON DBL_EPSILON
#elif defined TENSOROP_GEMM_HAS_F32
typedef float real;
#define GEMM tensorop_sgemm
#define EPSILON FLT_EPSILON
#else
#error "this library holds neither f64 nor f32: make one with --dtype f32,f64"
#endif

/* Numbers in [-1, 1), the same on every machine. */
static void fill(real *to, size_t count, unsigned seed) {
    for (size_t i = 0; i < count; ++i) {
        seed = seed * 1664525u + 1013904223u;
        to[i] = (real)(seed / 2147483648.0 - 1.0);
    }
}

int main(int argc, char **argv) {
    const int64_t m = argc > 1 ? atol(argv[1]) : 127, n = argc > 2 ? atol(argv[2]) : 129;
    const int64_t k = argc > 3 ? atol(argv[3]) : 131;
    real *a = malloc(sizeof *a * m * k), *b = malloc(sizeof *b * k * n);
    real *c = malloc(sizeof *c * m * n);
    double worst = 0;
    if (m < 1 || n < 1 || k < 1 || !a || !b || !c)
        return 2;
    fill(a, m * k, 1);
    fill(b, k * n, 2);

    int status = GEMM(TENSOROP_ROW_MAJOR, TENSOROP_NO_TRANS, TENSOROP_NO_TRANS, m, n, k, (real)0.5,
                      a, k, b, n, 0, c, n);
    if (status != TENSOROP_OK) {
        fprintf(stderr, "gemm: status %d\n", status);
        return 2;
    }
    for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
            double sum = 0;
            for (int64_t p = 0; p < k; ++p)
                sum += (double)a[i * k + p] * b[p * n + j];
            worst = fmax(worst, fabs(c[i * n + j] - 0.5 * sum));
        }
    printf("%ldx%ldx%ld: max error %.3g\n", (long)m, (long)n, (long)k, worst);
    free(a);
    free(b);
    free(c);
    return worst <= 4 * EPSILON * (double)k ? 0 : 1;
}
