/* Reads the larger operand of a product once, line by line as it lies in memory, and writes its sum
 * to all of C. Of a product with many rows and columns it makes the multiply-adds, in registers
 * alone. It has the interface of cblas_?gemm, so that a harness times it as a baseline. */
#include <stddef.h>
#include <stdint.h>

#if defined __AVX512F__
#define BYTES 64
#elif defined __AVX__
#define BYTES 32
#else
#define BYTES 16
#endif
/* On x86 the compiler would otherwise split a vector of 64 bytes in two. */
#ifdef __x86_64__
#define WHOLE __attribute__((min_vector_width(8 * BYTES)))
#else
#define WHOLE
#endif
/* CHAINS, ADDS: independent sums, which hide the latency of an addition and of a multiply-add */
enum { COL_MAJOR = 102, TRANS = 112, CHAINS = 8, MANY = 128, ADDS = 12 };

#define READ(real, gemm)                                                                           \
    typedef real vector_##real __attribute__((vector_size(BYTES), aligned(sizeof(real))));         \
    WHOLE static real sum_##real(const real *line, size_t count, size_t length, size_t step) {     \
        enum { LANES = BYTES / sizeof(real) };                                                     \
        vector_##real at[CHAINS] = {0};                                                            \
        for (; count; --count, line += step) {                                                     \
            const real *x = line, *end = line + length;                                            \
            for (; (size_t)(end - x) >= CHAINS * LANES; x += CHAINS * LANES) {                     \
                _Pragma("clang loop unroll(full)") for (int u = 0; u < CHAINS; ++u) at[u] +=       \
                    ((const vector_##real *)x)[u];                                                 \
            }                                                                                      \
            for (; (size_t)(end - x) >= LANES; x += LANES)                                         \
                at[0] += *(const vector_##real *)x;                                                \
            for (; x < end; ++x)                                                                   \
                at[0][0] += *x;                                                                    \
        }                                                                                          \
        for (int u = 1; u < CHAINS; ++u)                                                           \
            at[0] += at[u];                                                                        \
        real sum = 0;                                                                              \
        for (size_t i = 0; i < LANES; ++i)                                                         \
            sum += at[0][i];                                                                       \
        return sum;                                                                                \
    }                                                                                              \
    WHOLE static real multiply_##real(size_t flops, real x) {                                      \
        enum { LANES = BYTES / sizeof(real) };                                                     \
        vector_##real at[ADDS] = {0}, factor = at[0] + x;                                          \
        for (size_t i = 0; i < flops / (2 * ADDS * LANES); ++i) {                                  \
            _Pragma("clang loop unroll(full)") for (int u = 0; u < ADDS; ++u) at[u] =              \
                at[u] * factor + factor;                                                           \
        }                                                                                          \
        for (int u = 1; u < ADDS; ++u)                                                             \
            at[0] += at[u];                                                                        \
        return at[0][0];                                                                           \
    }                                                                                              \
    __attribute__((visibility("default"))) void gemm(                                              \
        int layout, int ta, int tb, int m, int n, int k, real alpha, const real *a, int lda,       \
        const real *b, int ldb, real beta, real *c, int ldc) {                                     \
        const int large = n > m, columns = large ? n : k;                                          \
        const int lines_are_columns = (layout == COL_MAJOR) != ((large ? tb : ta) == TRANS);       \
        size_t count = (size_t)(large ? k : m), length = (size_t)columns;                          \
        if (lines_are_columns)                                                                     \
            length = count, count = (size_t)columns;                                               \
        size_t step = (size_t)(large ? ldb : lda);                                                 \
        if (step == length)                                                                        \
            length *= count, count = 1;                                                            \
        const real sum =                                                                           \
            alpha + beta +                                                                         \
            (m >= MANY && n >= MANY ? multiply_##real(2 * (size_t)m * (size_t)n * (size_t)k, beta) \
                                    : sum_##real(large ? b : a, count, length, step));             \
        size_t lines = (size_t)(layout == COL_MAJOR ? n : m);                                      \
        size_t each = (size_t)(layout == COL_MAJOR ? m : n);                                       \
        if ((size_t)ldc == each)                                                                   \
            each *= lines, lines = 1;                                                              \
        for (; lines; --lines, c += ldc)                                                           \
            for (size_t i = 0; i < each; ++i)                                                      \
                c[i] = sum;                                                                        \
    }

READ(float, cblas_sgemm)
READ(double, cblas_dgemm)
