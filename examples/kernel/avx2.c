/*---
strategy: two vectors of A's column by four columns of B, with AVX2 intrinsics
reads: {a: columns, b: scalars}
tunables: {mr_vectors: [2], nr: [4]}
call: tile_16x4(m, n, k, a, lda, b, rsb, csb, alpha, beta, c, ldc)
---*/
#include "masks.h"

/* C = alpha * A * B + beta * C for m <= 16 rows and n <= 4 columns of C; at beta = 0, C is not
 * read. */
static inline void tile_16x4(size_t m, size_t n, size_t k, const float *a, size_t lda,
                             const float *b, size_t rsb, size_t csb, float alpha, float beta,
                             float *c, size_t ldc) {
    const __m256i rows[2] = {first(m), first(m > 8 ? m - 8 : 0)};
    __m256 sum[4][2] = {{_mm256_setzero_ps()}};
    for (size_t p = 0; p < k; ++p, a += lda, b += rsb)
        for (size_t i = 0; i < 2; ++i) {
            const __m256 column = _mm256_maskload_ps(a + 8 * i, rows[i]);
            for (size_t j = 0; j < n; ++j)
                sum[j][i] = _mm256_fmadd_ps(column, _mm256_set1_ps(b[j * csb]), sum[j][i]);
        }
    for (size_t j = 0; j < n; ++j)
        for (size_t i = 0; i < 2; ++i) {
            float *at = c + j * ldc + 8 * i;
            __m256 tile = _mm256_mul_ps(_mm256_set1_ps(alpha), sum[j][i]);
            if (beta != 0)
                tile = _mm256_fmadd_ps(_mm256_set1_ps(beta), _mm256_maskload_ps(at, rows[i]), tile);
            _mm256_maskstore_ps(at, rows[i], tile);
        }
}
