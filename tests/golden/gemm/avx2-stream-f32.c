/* avx2_f32_stream_cb43: micro-kernel 'stream' at fetch=4 ku=2 mr_vectors=64 nr=1 wide=2 (avx2, f32)
 * updates columns of C with `ku` columns of A at a time: A is read once, from one end to the other; C stays
 * in L1 and passes through registers; for products with few columns, where a register tile would stride
 * through A's pages; where prefetchers follow many streams, a single column takes four columns of A at a time
 * in pieces of many vectors */
static inline __attribute__((always_inline)) void
avx2_f32_stream_cb43_tile_1x1(size_t m, size_t k, const float *restrict a, size_t lda,
                              const float *restrict b, size_t rsb, size_t csb, float alpha, float beta,
                              float *restrict c, size_t ldc) {
    const size_t lanes = 8;
    const __m256i full = _mm256_set1_epi32(-1);
    (void)m, (void)full, (void)lanes, (void)rsb;
    /* C = beta * C; at beta = 0 C is not read */
    if (beta != 1)
        for (size_t i = 0; i < m; i += lanes) {
            const __m256i tail = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(m - i < lanes ? m - i : lanes)),
                                                    _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
            if (beta == 0) {
                tensorop_store_tail_f32(c + 0 * ldc + i, tail, _mm256_setzero_ps());
            } else {
                const __m256 c0 = _mm256_maskload_ps(c + 0 * ldc + i, tail);
                tensorop_store_tail_f32(c + 0 * ldc + i, tail, _mm256_mul_ps(c0, _mm256_set1_ps(beta)));
            }
        }
    for (; k >= 6; k -= 6) {
        const float b0_0 = alpha * b[0 * rsb + 0 * csb];
        const float b1_0 = alpha * b[1 * rsb + 0 * csb];
        const float b2_0 = alpha * b[2 * rsb + 0 * csb];
        const float b3_0 = alpha * b[3 * rsb + 0 * csb];
        const float b4_0 = alpha * b[4 * rsb + 0 * csb];
        const float b5_0 = alpha * b[5 * rsb + 0 * csb];

        size_t i = 0;
        for (; i + 4 * lanes <= m; i += 4 * lanes) {
            __m256 c0 = _mm256_loadu_ps(c + i + 0 * lanes);
            __m256 c1 = _mm256_loadu_ps(c + i + 1 * lanes);
            __m256 c2 = _mm256_loadu_ps(c + i + 2 * lanes);
            __m256 c3 = _mm256_loadu_ps(c + i + 3 * lanes);
            c0 = _mm256_fmadd_ps(_mm256_loadu_ps(a + 0 * lda + i + 0 * lanes), _mm256_set1_ps(b0_0), c0);
            c1 = _mm256_fmadd_ps(_mm256_loadu_ps(a + 0 * lda + i + 1 * lanes), _mm256_set1_ps(b0_0), c1);
            c2 = _mm256_fmadd_ps(_mm256_loadu_ps(a + 0 * lda + i + 2 * lanes), _mm256_set1_ps(b0_0), c2);
            c3 = _mm256_fmadd_ps(_mm256_loadu_ps(a + 0 * lda + i + 3 * lanes), _mm256_set1_ps(b0_0), c3);
            c0 = _mm256_fmadd_ps(_mm256_loadu_ps(a + 1 * lda + i + 0 * lanes), _mm256_set1_ps(b1_0), c0);
            c1 = _mm256_fmadd_ps(_mm256_loadu_ps(a + 1 * lda + i + 1 * lanes), _mm256_set1_ps(b1_0), c1);
            c2 = _mm256_fmadd_ps(_mm256_loadu_ps(a + 1 * lda + i + 2 * lanes), _mm256_set1_ps(b1_0), c2);
            c3 = _mm256_fmadd_ps(_mm256_loadu_ps(a + 1 * lda + i + 3 * lanes), _mm256_set1_ps(b1_0), c3);
            c0 = _mm256_fmadd_ps(_mm256_loadu_ps(a + 2 * lda + i + 0 * lanes), _mm256_set1_ps(b2_0), c0);
            c1 = _mm256_fmadd_ps(_mm256_loadu_ps(a + 2 * lda + i + 1 * lanes), _mm256_set1_ps(b2_0), c1);
            c2 = _mm256_fmadd_ps(_mm256_loadu_ps(a + 2 * lda + i + 2 * lanes), _mm256_set1_ps(b2_0), c2);
            c3 = _mm256_fmadd_ps(_mm256_loadu_ps(a + 2 * lda + i + 3 * lanes), _mm256_set1_ps(b2_0), c3);
            c0 = _mm256_fmadd_ps(_mm256_loadu_ps(a + 3 * lda + i + 0 * lanes), _mm256_set1_ps(b3_0), c0);
            c1 = _mm256_fmadd_ps(_mm256_loadu_ps(a + 3 * lda + i + 1 * lanes), _mm256_set1_ps(b3_0), c1);
            c2 = _mm256_fmadd_ps(_mm256_loadu_ps(a + 3 * lda + i + 2 * lanes), _mm256_set1_ps(b3_0), c2);
            c3 = _mm256_fmadd_ps(_mm256_loadu_ps(a + 3 * lda + i + 3 * lanes), _mm256_set1_ps(b3_0), c3);
            c0 = _mm256_fmadd_ps(_mm256_loadu_ps(a + 4 * lda + i + 0 * lanes), _mm256_set1_ps(b4_0), c0);
            c1 = _mm256_fmadd_ps(_mm256_loadu_ps(a + 4 * lda + i + 1 * lanes), _mm256_set1_ps(b4_0), c1);
            c2 = _mm256_fmadd_ps(_mm256_loadu_ps(a + 4 * lda + i + 2 * lanes), _mm256_set1_ps(b4_0), c2);
            c3 = _mm256_fmadd_ps(_mm256_loadu_ps(a + 4 * lda + i + 3 * lanes), _mm256_set1_ps(b4_0), c3);
            c0 = _mm256_fmadd_ps(_mm256_loadu_ps(a + 5 * lda + i + 0 * lanes), _mm256_set1_ps(b5_0), c0);
            c1 = _mm256_fmadd_ps(_mm256_loadu_ps(a + 5 * lda + i + 1 * lanes), _mm256_set1_ps(b5_0), c1);
            c2 = _mm256_fmadd_ps(_mm256_loadu_ps(a + 5 * lda + i + 2 * lanes), _mm256_set1_ps(b5_0), c2);
            c3 = _mm256_fmadd_ps(_mm256_loadu_ps(a + 5 * lda + i + 3 * lanes), _mm256_set1_ps(b5_0), c3);
            _mm256_storeu_ps(c + i + 0 * lanes, c0);
            _mm256_storeu_ps(c + i + 1 * lanes, c1);
            _mm256_storeu_ps(c + i + 2 * lanes, c2);
            _mm256_storeu_ps(c + i + 3 * lanes, c3);
        }
        for (; i + lanes <= m; i += lanes) {
            __m256 c0_0 = _mm256_loadu_ps(c + 0 * ldc + i + 0 * lanes);
            const __m256 a0_0 = _mm256_loadu_ps(a + 0 * lda + i + 0 * lanes);
            const __m256 a1_0 = _mm256_loadu_ps(a + 1 * lda + i + 0 * lanes);
            const __m256 a2_0 = _mm256_loadu_ps(a + 2 * lda + i + 0 * lanes);
            const __m256 a3_0 = _mm256_loadu_ps(a + 3 * lda + i + 0 * lanes);
            const __m256 a4_0 = _mm256_loadu_ps(a + 4 * lda + i + 0 * lanes);
            const __m256 a5_0 = _mm256_loadu_ps(a + 5 * lda + i + 0 * lanes);
            c0_0 = _mm256_fmadd_ps(a0_0, _mm256_set1_ps(b0_0), c0_0);
            c0_0 = _mm256_fmadd_ps(a1_0, _mm256_set1_ps(b1_0), c0_0);
            c0_0 = _mm256_fmadd_ps(a2_0, _mm256_set1_ps(b2_0), c0_0);
            c0_0 = _mm256_fmadd_ps(a3_0, _mm256_set1_ps(b3_0), c0_0);
            c0_0 = _mm256_fmadd_ps(a4_0, _mm256_set1_ps(b4_0), c0_0);
            c0_0 = _mm256_fmadd_ps(a5_0, _mm256_set1_ps(b5_0), c0_0);
            _mm256_storeu_ps(c + 0 * ldc + i + 0 * lanes, c0_0);
        }
        if (i < m) {
            const __m256i tail = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(m - i)),
                                                    _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
            __m256 c0_0 = _mm256_maskload_ps(c + 0 * ldc + i + 0 * lanes, tail);
            const __m256 a0_0 = _mm256_maskload_ps(a + 0 * lda + i + 0 * lanes, tail);
            const __m256 a1_0 = _mm256_maskload_ps(a + 1 * lda + i + 0 * lanes, tail);
            const __m256 a2_0 = _mm256_maskload_ps(a + 2 * lda + i + 0 * lanes, tail);
            const __m256 a3_0 = _mm256_maskload_ps(a + 3 * lda + i + 0 * lanes, tail);
            const __m256 a4_0 = _mm256_maskload_ps(a + 4 * lda + i + 0 * lanes, tail);
            const __m256 a5_0 = _mm256_maskload_ps(a + 5 * lda + i + 0 * lanes, tail);
            c0_0 = _mm256_fmadd_ps(a0_0, _mm256_set1_ps(b0_0), c0_0);
            c0_0 = _mm256_fmadd_ps(a1_0, _mm256_set1_ps(b1_0), c0_0);
            c0_0 = _mm256_fmadd_ps(a2_0, _mm256_set1_ps(b2_0), c0_0);
            c0_0 = _mm256_fmadd_ps(a3_0, _mm256_set1_ps(b3_0), c0_0);
            c0_0 = _mm256_fmadd_ps(a4_0, _mm256_set1_ps(b4_0), c0_0);
            c0_0 = _mm256_fmadd_ps(a5_0, _mm256_set1_ps(b5_0), c0_0);
            tensorop_store_tail_f32(c + 0 * ldc + i + 0 * lanes, tail, c0_0);
        }
        a += 6 * lda;
        b += 6 * rsb;
    }
    for (; k; --k) {
        const float b0_0 = alpha * b[0 * rsb + 0 * csb];

        size_t i = 0;
        for (; i + 2 * lanes <= m; i += 2 * lanes) {
            __m256 c0_0 = _mm256_loadu_ps(c + 0 * ldc + i + 0 * lanes);
            __m256 c0_1 = _mm256_loadu_ps(c + 0 * ldc + i + 1 * lanes);
            const __m256 a0_0 = _mm256_loadu_ps(a + 0 * lda + i + 0 * lanes);
            _mm_prefetch((const char *)(a + 0 * lda + i + 0 * lanes + 64), _MM_HINT_T0);
            if (lanes > 16)
                __builtin_trap();
            const __m256 a0_1 = _mm256_loadu_ps(a + 0 * lda + i + 1 * lanes);
            c0_0 = _mm256_fmadd_ps(a0_0, _mm256_set1_ps(b0_0), c0_0);
            c0_1 = _mm256_fmadd_ps(a0_1, _mm256_set1_ps(b0_0), c0_1);
            _mm256_storeu_ps(c + 0 * ldc + i + 0 * lanes, c0_0);
            _mm256_storeu_ps(c + 0 * ldc + i + 1 * lanes, c0_1);
        }
        for (; i < m; i += lanes) {
            const __m256i tail = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(m - i < lanes ? m - i : lanes)),
                                                    _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
            __m256 c0_0 = _mm256_maskload_ps(c + 0 * ldc + i + 0 * lanes, tail);
            const __m256 a0_0 = _mm256_maskload_ps(a + 0 * lda + i + 0 * lanes, tail);
            c0_0 = _mm256_fmadd_ps(a0_0, _mm256_set1_ps(b0_0), c0_0);
            tensorop_store_tail_f32(c + 0 * ldc + i + 0 * lanes, tail, c0_0);
        }
        a += 1 * lda;
        b += 1 * rsb;
    }
}

#define avx2_f32_stream_cb43_ARGS                                                                            \
    size_t m, size_t k, const float *a, size_t lda, const float *b, size_t sb, float alpha, float beta,      \
        float *c, size_t ldc

static void avx2_f32_stream_cb43_along_k_1x1(avx2_f32_stream_cb43_ARGS) {
    (void)sb, (void)lda;
    avx2_f32_stream_cb43_tile_1x1(m, k, a, lda, b, 1, sb, alpha, beta, c, ldc);
}

static void (*const avx2_f32_stream_cb43_along_k[1][1])(avx2_f32_stream_cb43_ARGS) = {
    {avx2_f32_stream_cb43_along_k_1x1},
};
static void avx2_f32_stream_cb43_along_n_1x1(avx2_f32_stream_cb43_ARGS) {
    (void)sb, (void)lda;
    avx2_f32_stream_cb43_tile_1x1(m, k, a, lda, b, sb, 1, alpha, beta, c, ldc);
}

static void (*const avx2_f32_stream_cb43_along_n[1][1])(avx2_f32_stream_cb43_ARGS) = {
    {avx2_f32_stream_cb43_along_n_1x1},
};
