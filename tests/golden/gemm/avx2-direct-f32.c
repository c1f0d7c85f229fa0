/* avx2_f32_direct_330b: micro-kernel 'direct' at ahead=0 mr_vectors=1 narrow=1 nr=1 partial_sums=4 (avx2,
 * f32) the smallest products, with both operands read in place: a tile of mr_vectors vectors by nr columns
 * stays in registers over all of k, without packing or blocks; tiles with few accumulators keep several
 * partial sums, of every second or fourth step of k, to hide the latency of FMAs; where k is contiguous in
 * both operands, vectors run along k; narrow = 1 transposes few rows with large k for this */
static inline __attribute__((always_inline)) void
avx2_f32_direct_330b_tile_1x1(size_t m, size_t k, const float *restrict a, size_t lda,
                              const float *restrict b, size_t rsb, size_t csb, float alpha, float beta,
                              float *restrict c, size_t ldc) {
    const size_t lanes = 8;
    const __m256i full = _mm256_set1_epi32(-1);
    (void)m, (void)full, (void)lanes, (void)rsb;
    __m256 c0_0_0 = _mm256_setzero_ps();
    __m256 c0_0_1 = _mm256_setzero_ps();
    __m256 c0_0_2 = _mm256_setzero_ps();
    __m256 c0_0_3 = _mm256_setzero_ps();
    for (; k >= 4; k -= 4) {
        const __m256 a0_0 = _mm256_loadu_ps(a + 0 * lda + 0 * lanes);
        const float b0_0 = b[0 * rsb + 0 * csb];

        const __m256 a1_0 = _mm256_loadu_ps(a + 1 * lda + 0 * lanes);
        const float b1_0 = b[1 * rsb + 0 * csb];

        const __m256 a2_0 = _mm256_loadu_ps(a + 2 * lda + 0 * lanes);
        const float b2_0 = b[2 * rsb + 0 * csb];

        const __m256 a3_0 = _mm256_loadu_ps(a + 3 * lda + 0 * lanes);
        const float b3_0 = b[3 * rsb + 0 * csb];

        c0_0_0 = _mm256_fmadd_ps(a0_0, _mm256_set1_ps(b0_0), c0_0_0);

        c0_0_1 = _mm256_fmadd_ps(a1_0, _mm256_set1_ps(b1_0), c0_0_1);

        c0_0_2 = _mm256_fmadd_ps(a2_0, _mm256_set1_ps(b2_0), c0_0_2);

        c0_0_3 = _mm256_fmadd_ps(a3_0, _mm256_set1_ps(b3_0), c0_0_3);

        a += 4 * lda;
        b += 4 * rsb;
    }
    for (; k; --k) {
        const __m256 a0 = _mm256_loadu_ps(a + 0 * lda + 0 * lanes);
        const float b0 = b[0 * rsb + 0 * csb];

        c0_0_0 = _mm256_fmadd_ps(a0, _mm256_set1_ps(b0), c0_0_0);

        a += lda;
        b += rsb;
    }
    c0_0_0 = _mm256_add_ps(c0_0_0, c0_0_2);
    c0_0_1 = _mm256_add_ps(c0_0_1, c0_0_3);
    c0_0_0 = _mm256_add_ps(c0_0_0, c0_0_1);
    /* C = alpha * tile + beta * C; at beta = 0 C is not read */
    if (beta == 0) {
        _mm256_storeu_ps(c + 0 * ldc + 0 * lanes, _mm256_mul_ps(c0_0_0, _mm256_set1_ps(alpha)));
    } else {
        const __m256 old0_0 = _mm256_loadu_ps(c + 0 * ldc + 0 * lanes);
        _mm256_storeu_ps(
            c + 0 * ldc + 0 * lanes,
            _mm256_fmadd_ps(old0_0, _mm256_set1_ps(beta), _mm256_mul_ps(c0_0_0, _mm256_set1_ps(alpha))));
    }
}

/* 1 vector of rows, by n columns */
static void avx2_f32_direct_330b_rows_1(size_t m, size_t n, size_t k, float alpha, const float *a, size_t lda,
                                        const float *b, size_t rsb, size_t csb, float beta, float *c,
                                        size_t ldc) {
    for (; n >= 1; n -= 1) {
        avx2_f32_direct_330b_tile_1x1(m, k, a, lda, b, rsb, csb, alpha, beta, c, ldc);
        b += 1 * csb;
        c += 1 * ldc;
    }
    switch (n) {
    default:
        break;
    }
}
static inline __attribute__((always_inline)) void
avx2_f32_direct_330b_tile_1x1_tail(size_t m, size_t k, const float *restrict a, size_t lda,
                                   const float *restrict b, size_t rsb, size_t csb, float alpha, float beta,
                                   float *restrict c, size_t ldc) {
    const size_t lanes = 8;
    const __m256i full = _mm256_set1_epi32(-1);
    const __m256i tail = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(m - 0 * lanes)),
                                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    (void)m, (void)full, (void)lanes, (void)rsb;
    __m256 c0_0_0 = _mm256_setzero_ps();
    __m256 c0_0_1 = _mm256_setzero_ps();
    __m256 c0_0_2 = _mm256_setzero_ps();
    __m256 c0_0_3 = _mm256_setzero_ps();
    for (; k >= 4; k -= 4) {
        const __m256 a0_0 = _mm256_maskload_ps(a + 0 * lda + 0 * lanes, tail);
        const float b0_0 = b[0 * rsb + 0 * csb];

        const __m256 a1_0 = _mm256_maskload_ps(a + 1 * lda + 0 * lanes, tail);
        const float b1_0 = b[1 * rsb + 0 * csb];

        const __m256 a2_0 = _mm256_maskload_ps(a + 2 * lda + 0 * lanes, tail);
        const float b2_0 = b[2 * rsb + 0 * csb];

        const __m256 a3_0 = _mm256_maskload_ps(a + 3 * lda + 0 * lanes, tail);
        const float b3_0 = b[3 * rsb + 0 * csb];

        c0_0_0 = _mm256_fmadd_ps(a0_0, _mm256_set1_ps(b0_0), c0_0_0);

        c0_0_1 = _mm256_fmadd_ps(a1_0, _mm256_set1_ps(b1_0), c0_0_1);

        c0_0_2 = _mm256_fmadd_ps(a2_0, _mm256_set1_ps(b2_0), c0_0_2);

        c0_0_3 = _mm256_fmadd_ps(a3_0, _mm256_set1_ps(b3_0), c0_0_3);

        a += 4 * lda;
        b += 4 * rsb;
    }
    for (; k; --k) {
        const __m256 a0 = _mm256_maskload_ps(a + 0 * lda + 0 * lanes, tail);
        const float b0 = b[0 * rsb + 0 * csb];

        c0_0_0 = _mm256_fmadd_ps(a0, _mm256_set1_ps(b0), c0_0_0);

        a += lda;
        b += rsb;
    }
    c0_0_0 = _mm256_add_ps(c0_0_0, c0_0_2);
    c0_0_1 = _mm256_add_ps(c0_0_1, c0_0_3);
    c0_0_0 = _mm256_add_ps(c0_0_0, c0_0_1);
    /* C = alpha * tile + beta * C; at beta = 0 C is not read */
    if (beta == 0) {
        tensorop_store_tail_f32(c + 0 * ldc + 0 * lanes, tail, _mm256_mul_ps(c0_0_0, _mm256_set1_ps(alpha)));
    } else {
        const __m256 old0_0 = _mm256_maskload_ps(c + 0 * ldc + 0 * lanes, tail);
        tensorop_store_tail_f32(
            c + 0 * ldc + 0 * lanes, tail,
            _mm256_fmadd_ps(old0_0, _mm256_set1_ps(beta), _mm256_mul_ps(c0_0_0, _mm256_set1_ps(alpha))));
    }
}

/* 1 vector of rows, the last possibly partial, by n columns */
static void avx2_f32_direct_330b_rows_1_tail(size_t m, size_t n, size_t k, float alpha, const float *a,
                                             size_t lda, const float *b, size_t rsb, size_t csb, float beta,
                                             float *c, size_t ldc) {
    for (; n >= 1; n -= 1) {
        avx2_f32_direct_330b_tile_1x1_tail(m, k, a, lda, b, rsb, csb, alpha, beta, c, ldc);
        b += 1 * csb;
        c += 1 * ldc;
    }
    switch (n) {
    default:
        break;
    }
}

static inline __attribute__((always_inline)) void
avx2_f32_direct_330b_tile_12x1(size_t m, size_t k, const float *restrict a, size_t lda,
                               const float *restrict b, size_t rsb, size_t csb, float alpha, float beta,
                               float *restrict c, size_t ldc) {
    const size_t lanes = 8;
    const __m256i full = _mm256_set1_epi32(-1);
    (void)m, (void)full, (void)lanes, (void)rsb;
    __m256 c0_0_0 = _mm256_setzero_ps();
    __m256 c1_0_0 = _mm256_setzero_ps();
    __m256 c2_0_0 = _mm256_setzero_ps();
    __m256 c3_0_0 = _mm256_setzero_ps();
    __m256 c4_0_0 = _mm256_setzero_ps();
    __m256 c5_0_0 = _mm256_setzero_ps();
    __m256 c6_0_0 = _mm256_setzero_ps();
    __m256 c7_0_0 = _mm256_setzero_ps();
    __m256 c8_0_0 = _mm256_setzero_ps();
    __m256 c9_0_0 = _mm256_setzero_ps();
    __m256 c10_0_0 = _mm256_setzero_ps();
    __m256 c11_0_0 = _mm256_setzero_ps();
    for (; k; --k) {
        const __m256 a0 = _mm256_loadu_ps(a + 0 * lda + 0 * lanes);
        const __m256 a1 = _mm256_loadu_ps(a + 0 * lda + 1 * lanes);
        const __m256 a2 = _mm256_loadu_ps(a + 0 * lda + 2 * lanes);
        const __m256 a3 = _mm256_loadu_ps(a + 0 * lda + 3 * lanes);
        const __m256 a4 = _mm256_loadu_ps(a + 0 * lda + 4 * lanes);
        const __m256 a5 = _mm256_loadu_ps(a + 0 * lda + 5 * lanes);
        const __m256 a6 = _mm256_loadu_ps(a + 0 * lda + 6 * lanes);
        const __m256 a7 = _mm256_loadu_ps(a + 0 * lda + 7 * lanes);
        const __m256 a8 = _mm256_loadu_ps(a + 0 * lda + 8 * lanes);
        const __m256 a9 = _mm256_loadu_ps(a + 0 * lda + 9 * lanes);
        const __m256 a10 = _mm256_loadu_ps(a + 0 * lda + 10 * lanes);
        const __m256 a11 = _mm256_loadu_ps(a + 0 * lda + 11 * lanes);
        const float b0 = b[0 * rsb + 0 * csb];

        c0_0_0 = _mm256_fmadd_ps(a0, _mm256_set1_ps(b0), c0_0_0);
        c1_0_0 = _mm256_fmadd_ps(a1, _mm256_set1_ps(b0), c1_0_0);
        c2_0_0 = _mm256_fmadd_ps(a2, _mm256_set1_ps(b0), c2_0_0);
        c3_0_0 = _mm256_fmadd_ps(a3, _mm256_set1_ps(b0), c3_0_0);
        c4_0_0 = _mm256_fmadd_ps(a4, _mm256_set1_ps(b0), c4_0_0);
        c5_0_0 = _mm256_fmadd_ps(a5, _mm256_set1_ps(b0), c5_0_0);
        c6_0_0 = _mm256_fmadd_ps(a6, _mm256_set1_ps(b0), c6_0_0);
        c7_0_0 = _mm256_fmadd_ps(a7, _mm256_set1_ps(b0), c7_0_0);
        c8_0_0 = _mm256_fmadd_ps(a8, _mm256_set1_ps(b0), c8_0_0);
        c9_0_0 = _mm256_fmadd_ps(a9, _mm256_set1_ps(b0), c9_0_0);
        c10_0_0 = _mm256_fmadd_ps(a10, _mm256_set1_ps(b0), c10_0_0);
        c11_0_0 = _mm256_fmadd_ps(a11, _mm256_set1_ps(b0), c11_0_0);

        a += lda;
        b += rsb;
    }
    /* C = alpha * tile + beta * C; at beta = 0 C is not read */
    if (beta == 0) {
        _mm256_storeu_ps(c + 0 * ldc + 0 * lanes, _mm256_mul_ps(c0_0_0, _mm256_set1_ps(alpha)));
        _mm256_storeu_ps(c + 0 * ldc + 1 * lanes, _mm256_mul_ps(c1_0_0, _mm256_set1_ps(alpha)));
        _mm256_storeu_ps(c + 0 * ldc + 2 * lanes, _mm256_mul_ps(c2_0_0, _mm256_set1_ps(alpha)));
        _mm256_storeu_ps(c + 0 * ldc + 3 * lanes, _mm256_mul_ps(c3_0_0, _mm256_set1_ps(alpha)));
        _mm256_storeu_ps(c + 0 * ldc + 4 * lanes, _mm256_mul_ps(c4_0_0, _mm256_set1_ps(alpha)));
        _mm256_storeu_ps(c + 0 * ldc + 5 * lanes, _mm256_mul_ps(c5_0_0, _mm256_set1_ps(alpha)));
        _mm256_storeu_ps(c + 0 * ldc + 6 * lanes, _mm256_mul_ps(c6_0_0, _mm256_set1_ps(alpha)));
        _mm256_storeu_ps(c + 0 * ldc + 7 * lanes, _mm256_mul_ps(c7_0_0, _mm256_set1_ps(alpha)));
        _mm256_storeu_ps(c + 0 * ldc + 8 * lanes, _mm256_mul_ps(c8_0_0, _mm256_set1_ps(alpha)));
        _mm256_storeu_ps(c + 0 * ldc + 9 * lanes, _mm256_mul_ps(c9_0_0, _mm256_set1_ps(alpha)));
        _mm256_storeu_ps(c + 0 * ldc + 10 * lanes, _mm256_mul_ps(c10_0_0, _mm256_set1_ps(alpha)));
        _mm256_storeu_ps(c + 0 * ldc + 11 * lanes, _mm256_mul_ps(c11_0_0, _mm256_set1_ps(alpha)));
    } else {
        const __m256 old0_0 = _mm256_loadu_ps(c + 0 * ldc + 0 * lanes);
        _mm256_storeu_ps(
            c + 0 * ldc + 0 * lanes,
            _mm256_fmadd_ps(old0_0, _mm256_set1_ps(beta), _mm256_mul_ps(c0_0_0, _mm256_set1_ps(alpha))));
        const __m256 old1_0 = _mm256_loadu_ps(c + 0 * ldc + 1 * lanes);
        _mm256_storeu_ps(
            c + 0 * ldc + 1 * lanes,
            _mm256_fmadd_ps(old1_0, _mm256_set1_ps(beta), _mm256_mul_ps(c1_0_0, _mm256_set1_ps(alpha))));
        const __m256 old2_0 = _mm256_loadu_ps(c + 0 * ldc + 2 * lanes);
        _mm256_storeu_ps(
            c + 0 * ldc + 2 * lanes,
            _mm256_fmadd_ps(old2_0, _mm256_set1_ps(beta), _mm256_mul_ps(c2_0_0, _mm256_set1_ps(alpha))));
        const __m256 old3_0 = _mm256_loadu_ps(c + 0 * ldc + 3 * lanes);
        _mm256_storeu_ps(
            c + 0 * ldc + 3 * lanes,
            _mm256_fmadd_ps(old3_0, _mm256_set1_ps(beta), _mm256_mul_ps(c3_0_0, _mm256_set1_ps(alpha))));
        const __m256 old4_0 = _mm256_loadu_ps(c + 0 * ldc + 4 * lanes);
        _mm256_storeu_ps(
            c + 0 * ldc + 4 * lanes,
            _mm256_fmadd_ps(old4_0, _mm256_set1_ps(beta), _mm256_mul_ps(c4_0_0, _mm256_set1_ps(alpha))));
        const __m256 old5_0 = _mm256_loadu_ps(c + 0 * ldc + 5 * lanes);
        _mm256_storeu_ps(
            c + 0 * ldc + 5 * lanes,
            _mm256_fmadd_ps(old5_0, _mm256_set1_ps(beta), _mm256_mul_ps(c5_0_0, _mm256_set1_ps(alpha))));
        const __m256 old6_0 = _mm256_loadu_ps(c + 0 * ldc + 6 * lanes);
        _mm256_storeu_ps(
            c + 0 * ldc + 6 * lanes,
            _mm256_fmadd_ps(old6_0, _mm256_set1_ps(beta), _mm256_mul_ps(c6_0_0, _mm256_set1_ps(alpha))));
        const __m256 old7_0 = _mm256_loadu_ps(c + 0 * ldc + 7 * lanes);
        _mm256_storeu_ps(
            c + 0 * ldc + 7 * lanes,
            _mm256_fmadd_ps(old7_0, _mm256_set1_ps(beta), _mm256_mul_ps(c7_0_0, _mm256_set1_ps(alpha))));
        const __m256 old8_0 = _mm256_loadu_ps(c + 0 * ldc + 8 * lanes);
        _mm256_storeu_ps(
            c + 0 * ldc + 8 * lanes,
            _mm256_fmadd_ps(old8_0, _mm256_set1_ps(beta), _mm256_mul_ps(c8_0_0, _mm256_set1_ps(alpha))));
        const __m256 old9_0 = _mm256_loadu_ps(c + 0 * ldc + 9 * lanes);
        _mm256_storeu_ps(
            c + 0 * ldc + 9 * lanes,
            _mm256_fmadd_ps(old9_0, _mm256_set1_ps(beta), _mm256_mul_ps(c9_0_0, _mm256_set1_ps(alpha))));
        const __m256 old10_0 = _mm256_loadu_ps(c + 0 * ldc + 10 * lanes);
        _mm256_storeu_ps(
            c + 0 * ldc + 10 * lanes,
            _mm256_fmadd_ps(old10_0, _mm256_set1_ps(beta), _mm256_mul_ps(c10_0_0, _mm256_set1_ps(alpha))));
        const __m256 old11_0 = _mm256_loadu_ps(c + 0 * ldc + 11 * lanes);
        _mm256_storeu_ps(
            c + 0 * ldc + 11 * lanes,
            _mm256_fmadd_ps(old11_0, _mm256_set1_ps(beta), _mm256_mul_ps(c11_0_0, _mm256_set1_ps(alpha))));
    }
}

static inline __attribute__((always_inline)) void
avx2_f32_direct_330b_tile_8x1(size_t m, size_t k, const float *restrict a, size_t lda,
                              const float *restrict b, size_t rsb, size_t csb, float alpha, float beta,
                              float *restrict c, size_t ldc) {
    const size_t lanes = 8;
    const __m256i full = _mm256_set1_epi32(-1);
    (void)m, (void)full, (void)lanes, (void)rsb;
    __m256 c0_0_0 = _mm256_setzero_ps();
    __m256 c1_0_0 = _mm256_setzero_ps();
    __m256 c2_0_0 = _mm256_setzero_ps();
    __m256 c3_0_0 = _mm256_setzero_ps();
    __m256 c4_0_0 = _mm256_setzero_ps();
    __m256 c5_0_0 = _mm256_setzero_ps();
    __m256 c6_0_0 = _mm256_setzero_ps();
    __m256 c7_0_0 = _mm256_setzero_ps();
    for (; k; --k) {
        const __m256 a0 = _mm256_loadu_ps(a + 0 * lda + 0 * lanes);
        const __m256 a1 = _mm256_loadu_ps(a + 0 * lda + 1 * lanes);
        const __m256 a2 = _mm256_loadu_ps(a + 0 * lda + 2 * lanes);
        const __m256 a3 = _mm256_loadu_ps(a + 0 * lda + 3 * lanes);
        const __m256 a4 = _mm256_loadu_ps(a + 0 * lda + 4 * lanes);
        const __m256 a5 = _mm256_loadu_ps(a + 0 * lda + 5 * lanes);
        const __m256 a6 = _mm256_loadu_ps(a + 0 * lda + 6 * lanes);
        const __m256 a7 = _mm256_loadu_ps(a + 0 * lda + 7 * lanes);
        const float b0 = b[0 * rsb + 0 * csb];

        c0_0_0 = _mm256_fmadd_ps(a0, _mm256_set1_ps(b0), c0_0_0);
        c1_0_0 = _mm256_fmadd_ps(a1, _mm256_set1_ps(b0), c1_0_0);
        c2_0_0 = _mm256_fmadd_ps(a2, _mm256_set1_ps(b0), c2_0_0);
        c3_0_0 = _mm256_fmadd_ps(a3, _mm256_set1_ps(b0), c3_0_0);
        c4_0_0 = _mm256_fmadd_ps(a4, _mm256_set1_ps(b0), c4_0_0);
        c5_0_0 = _mm256_fmadd_ps(a5, _mm256_set1_ps(b0), c5_0_0);
        c6_0_0 = _mm256_fmadd_ps(a6, _mm256_set1_ps(b0), c6_0_0);
        c7_0_0 = _mm256_fmadd_ps(a7, _mm256_set1_ps(b0), c7_0_0);

        a += lda;
        b += rsb;
    }
    /* C = alpha * tile + beta * C; at beta = 0 C is not read */
    if (beta == 0) {
        _mm256_storeu_ps(c + 0 * ldc + 0 * lanes, _mm256_mul_ps(c0_0_0, _mm256_set1_ps(alpha)));
        _mm256_storeu_ps(c + 0 * ldc + 1 * lanes, _mm256_mul_ps(c1_0_0, _mm256_set1_ps(alpha)));
        _mm256_storeu_ps(c + 0 * ldc + 2 * lanes, _mm256_mul_ps(c2_0_0, _mm256_set1_ps(alpha)));
        _mm256_storeu_ps(c + 0 * ldc + 3 * lanes, _mm256_mul_ps(c3_0_0, _mm256_set1_ps(alpha)));
        _mm256_storeu_ps(c + 0 * ldc + 4 * lanes, _mm256_mul_ps(c4_0_0, _mm256_set1_ps(alpha)));
        _mm256_storeu_ps(c + 0 * ldc + 5 * lanes, _mm256_mul_ps(c5_0_0, _mm256_set1_ps(alpha)));
        _mm256_storeu_ps(c + 0 * ldc + 6 * lanes, _mm256_mul_ps(c6_0_0, _mm256_set1_ps(alpha)));
        _mm256_storeu_ps(c + 0 * ldc + 7 * lanes, _mm256_mul_ps(c7_0_0, _mm256_set1_ps(alpha)));
    } else {
        const __m256 old0_0 = _mm256_loadu_ps(c + 0 * ldc + 0 * lanes);
        _mm256_storeu_ps(
            c + 0 * ldc + 0 * lanes,
            _mm256_fmadd_ps(old0_0, _mm256_set1_ps(beta), _mm256_mul_ps(c0_0_0, _mm256_set1_ps(alpha))));
        const __m256 old1_0 = _mm256_loadu_ps(c + 0 * ldc + 1 * lanes);
        _mm256_storeu_ps(
            c + 0 * ldc + 1 * lanes,
            _mm256_fmadd_ps(old1_0, _mm256_set1_ps(beta), _mm256_mul_ps(c1_0_0, _mm256_set1_ps(alpha))));
        const __m256 old2_0 = _mm256_loadu_ps(c + 0 * ldc + 2 * lanes);
        _mm256_storeu_ps(
            c + 0 * ldc + 2 * lanes,
            _mm256_fmadd_ps(old2_0, _mm256_set1_ps(beta), _mm256_mul_ps(c2_0_0, _mm256_set1_ps(alpha))));
        const __m256 old3_0 = _mm256_loadu_ps(c + 0 * ldc + 3 * lanes);
        _mm256_storeu_ps(
            c + 0 * ldc + 3 * lanes,
            _mm256_fmadd_ps(old3_0, _mm256_set1_ps(beta), _mm256_mul_ps(c3_0_0, _mm256_set1_ps(alpha))));
        const __m256 old4_0 = _mm256_loadu_ps(c + 0 * ldc + 4 * lanes);
        _mm256_storeu_ps(
            c + 0 * ldc + 4 * lanes,
            _mm256_fmadd_ps(old4_0, _mm256_set1_ps(beta), _mm256_mul_ps(c4_0_0, _mm256_set1_ps(alpha))));
        const __m256 old5_0 = _mm256_loadu_ps(c + 0 * ldc + 5 * lanes);
        _mm256_storeu_ps(
            c + 0 * ldc + 5 * lanes,
            _mm256_fmadd_ps(old5_0, _mm256_set1_ps(beta), _mm256_mul_ps(c5_0_0, _mm256_set1_ps(alpha))));
        const __m256 old6_0 = _mm256_loadu_ps(c + 0 * ldc + 6 * lanes);
        _mm256_storeu_ps(
            c + 0 * ldc + 6 * lanes,
            _mm256_fmadd_ps(old6_0, _mm256_set1_ps(beta), _mm256_mul_ps(c6_0_0, _mm256_set1_ps(alpha))));
        const __m256 old7_0 = _mm256_loadu_ps(c + 0 * ldc + 7 * lanes);
        _mm256_storeu_ps(
            c + 0 * ldc + 7 * lanes,
            _mm256_fmadd_ps(old7_0, _mm256_set1_ps(beta), _mm256_mul_ps(c7_0_0, _mm256_set1_ps(alpha))));
    }
}

static inline __attribute__((always_inline)) void
avx2_f32_direct_330b_tile_4x1(size_t m, size_t k, const float *restrict a, size_t lda,
                              const float *restrict b, size_t rsb, size_t csb, float alpha, float beta,
                              float *restrict c, size_t ldc) {
    const size_t lanes = 8;
    const __m256i full = _mm256_set1_epi32(-1);
    (void)m, (void)full, (void)lanes, (void)rsb;
    __m256 c0_0_0 = _mm256_setzero_ps();
    __m256 c1_0_0 = _mm256_setzero_ps();
    __m256 c2_0_0 = _mm256_setzero_ps();
    __m256 c3_0_0 = _mm256_setzero_ps();
    for (; k; --k) {
        const __m256 a0 = _mm256_loadu_ps(a + 0 * lda + 0 * lanes);
        const __m256 a1 = _mm256_loadu_ps(a + 0 * lda + 1 * lanes);
        const __m256 a2 = _mm256_loadu_ps(a + 0 * lda + 2 * lanes);
        const __m256 a3 = _mm256_loadu_ps(a + 0 * lda + 3 * lanes);
        const float b0 = b[0 * rsb + 0 * csb];

        c0_0_0 = _mm256_fmadd_ps(a0, _mm256_set1_ps(b0), c0_0_0);
        c1_0_0 = _mm256_fmadd_ps(a1, _mm256_set1_ps(b0), c1_0_0);
        c2_0_0 = _mm256_fmadd_ps(a2, _mm256_set1_ps(b0), c2_0_0);
        c3_0_0 = _mm256_fmadd_ps(a3, _mm256_set1_ps(b0), c3_0_0);

        a += lda;
        b += rsb;
    }
    /* C = alpha * tile + beta * C; at beta = 0 C is not read */
    if (beta == 0) {
        _mm256_storeu_ps(c + 0 * ldc + 0 * lanes, _mm256_mul_ps(c0_0_0, _mm256_set1_ps(alpha)));
        _mm256_storeu_ps(c + 0 * ldc + 1 * lanes, _mm256_mul_ps(c1_0_0, _mm256_set1_ps(alpha)));
        _mm256_storeu_ps(c + 0 * ldc + 2 * lanes, _mm256_mul_ps(c2_0_0, _mm256_set1_ps(alpha)));
        _mm256_storeu_ps(c + 0 * ldc + 3 * lanes, _mm256_mul_ps(c3_0_0, _mm256_set1_ps(alpha)));
    } else {
        const __m256 old0_0 = _mm256_loadu_ps(c + 0 * ldc + 0 * lanes);
        _mm256_storeu_ps(
            c + 0 * ldc + 0 * lanes,
            _mm256_fmadd_ps(old0_0, _mm256_set1_ps(beta), _mm256_mul_ps(c0_0_0, _mm256_set1_ps(alpha))));
        const __m256 old1_0 = _mm256_loadu_ps(c + 0 * ldc + 1 * lanes);
        _mm256_storeu_ps(
            c + 0 * ldc + 1 * lanes,
            _mm256_fmadd_ps(old1_0, _mm256_set1_ps(beta), _mm256_mul_ps(c1_0_0, _mm256_set1_ps(alpha))));
        const __m256 old2_0 = _mm256_loadu_ps(c + 0 * ldc + 2 * lanes);
        _mm256_storeu_ps(
            c + 0 * ldc + 2 * lanes,
            _mm256_fmadd_ps(old2_0, _mm256_set1_ps(beta), _mm256_mul_ps(c2_0_0, _mm256_set1_ps(alpha))));
        const __m256 old3_0 = _mm256_loadu_ps(c + 0 * ldc + 3 * lanes);
        _mm256_storeu_ps(
            c + 0 * ldc + 3 * lanes,
            _mm256_fmadd_ps(old3_0, _mm256_set1_ps(beta), _mm256_mul_ps(c3_0_0, _mm256_set1_ps(alpha))));
    }
}

/* A's columns are contiguous, lda apart. For few columns, tall tiles read long pieces of A's columns. */
static inline __attribute__((always_inline)) void
avx2_f32_direct_330b_down(size_t m, size_t n, size_t k, float alpha, const float *a, size_t lda,
                          const float *b, size_t rsb, size_t csb, float beta, float *c, size_t ldc) {
    const size_t lanes = 8;
    while (n == 1 && m >= 12 * lanes) {
        avx2_f32_direct_330b_tile_12x1(12 * lanes, k, a, lda, b, rsb, csb, alpha, beta, c, ldc);
        a += 12 * lanes;
        c += 12 * lanes;
        m -= 12 * lanes;
    }
    if (n == 1 && m >= 8 * lanes) {
        avx2_f32_direct_330b_tile_8x1(8 * lanes, k, a, lda, b, rsb, csb, alpha, beta, c, ldc);
        a += 8 * lanes;
        c += 8 * lanes;
        m -= 8 * lanes;
    }
    if (n == 1 && m >= 4 * lanes) {
        avx2_f32_direct_330b_tile_4x1(4 * lanes, k, a, lda, b, rsb, csb, alpha, beta, c, ldc);
        a += 4 * lanes;
        c += 4 * lanes;
        m -= 4 * lanes;
    }
    if (m == 0)
        return;
    for (; m > 1 * lanes; m -= 1 * lanes) {
        avx2_f32_direct_330b_rows_1(1 * lanes, n, k, alpha, a, lda, b, rsb, csb, beta, c, ldc);
        a += 1 * lanes;
        c += 1 * lanes;
    }
    if (m == 1 * lanes) {
        avx2_f32_direct_330b_rows_1(m, n, k, alpha, a, lda, b, rsb, csb, beta, c, ldc);
        return;
    }
    avx2_f32_direct_330b_rows_1_tail(m, n, k, alpha, a, lda, b, rsb, csb, beta, c, ldc);
}

/* m <= lanes, k = 1 */
static __attribute__((noinline)) void avx2_f32_direct_330b_across_1(size_t m, size_t n, float alpha,
                                                                    const float *restrict a, size_t lda,
                                                                    const float *restrict b, size_t rsb,
                                                                    size_t csb, float beta, float *restrict c,
                                                                    size_t ldc) {
    const size_t lanes = 8;
    const __m256i full = _mm256_set1_epi32(-1),
                  tail = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(m)),
                                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    (void)full, (void)lanes, (void)rsb, (void)lda;
    const __m256 a0 = _mm256_mul_ps(_mm256_maskload_ps(a + 0 * lda, tail), _mm256_set1_ps(alpha));
    for (; n >= 1; n -= 1) {
        __m256 c0 = _mm256_mul_ps(a0, _mm256_set1_ps(b[0 * rsb + 0 * csb]));

        if (beta != 0) { /* at beta = 0 C is not read */
            c0 = _mm256_fmadd_ps(_mm256_maskload_ps(c + 0 * ldc, tail), _mm256_set1_ps(beta), c0);
        }
        tensorop_store_tail_f32(c + 0 * ldc, tail, c0);

        b += 1 * csb;
        c += 1 * ldc;
    }
}

/* m <= lanes, k = 2 */
static __attribute__((noinline)) void avx2_f32_direct_330b_across_2(size_t m, size_t n, float alpha,
                                                                    const float *restrict a, size_t lda,
                                                                    const float *restrict b, size_t rsb,
                                                                    size_t csb, float beta, float *restrict c,
                                                                    size_t ldc) {
    const size_t lanes = 8;
    const __m256i full = _mm256_set1_epi32(-1),
                  tail = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(m)),
                                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    (void)full, (void)lanes, (void)rsb, (void)lda;
    const __m256 a0 = _mm256_mul_ps(_mm256_maskload_ps(a + 0 * lda, tail), _mm256_set1_ps(alpha));
    const __m256 a1 = _mm256_mul_ps(_mm256_maskload_ps(a + 1 * lda, tail), _mm256_set1_ps(alpha));
    for (; n >= 1; n -= 1) {
        __m256 c0 = _mm256_mul_ps(a0, _mm256_set1_ps(b[0 * rsb + 0 * csb]));
        c0 = _mm256_fmadd_ps(a1, _mm256_set1_ps(b[1 * rsb + 0 * csb]), c0);

        if (beta != 0) { /* at beta = 0 C is not read */
            c0 = _mm256_fmadd_ps(_mm256_maskload_ps(c + 0 * ldc, tail), _mm256_set1_ps(beta), c0);
        }
        tensorop_store_tail_f32(c + 0 * ldc, tail, c0);

        b += 1 * csb;
        c += 1 * ldc;
    }
}

/* m <= lanes, k = 3 */
static __attribute__((noinline)) void avx2_f32_direct_330b_across_3(size_t m, size_t n, float alpha,
                                                                    const float *restrict a, size_t lda,
                                                                    const float *restrict b, size_t rsb,
                                                                    size_t csb, float beta, float *restrict c,
                                                                    size_t ldc) {
    const size_t lanes = 8;
    const __m256i full = _mm256_set1_epi32(-1),
                  tail = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(m)),
                                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    (void)full, (void)lanes, (void)rsb, (void)lda;
    const __m256 a0 = _mm256_mul_ps(_mm256_maskload_ps(a + 0 * lda, tail), _mm256_set1_ps(alpha));
    const __m256 a1 = _mm256_mul_ps(_mm256_maskload_ps(a + 1 * lda, tail), _mm256_set1_ps(alpha));
    const __m256 a2 = _mm256_mul_ps(_mm256_maskload_ps(a + 2 * lda, tail), _mm256_set1_ps(alpha));
    for (; n >= 1; n -= 1) {
        __m256 c0 = _mm256_mul_ps(a0, _mm256_set1_ps(b[0 * rsb + 0 * csb]));
        c0 = _mm256_fmadd_ps(a1, _mm256_set1_ps(b[1 * rsb + 0 * csb]), c0);
        c0 = _mm256_fmadd_ps(a2, _mm256_set1_ps(b[2 * rsb + 0 * csb]), c0);

        if (beta != 0) { /* at beta = 0 C is not read */
            c0 = _mm256_fmadd_ps(_mm256_maskload_ps(c + 0 * ldc, tail), _mm256_set1_ps(beta), c0);
        }
        tensorop_store_tail_f32(c + 0 * ldc, tail, c0);

        b += 1 * csb;
        c += 1 * ldc;
    }
}

/* m <= lanes, k = 4 */
static __attribute__((noinline)) void avx2_f32_direct_330b_across_4(size_t m, size_t n, float alpha,
                                                                    const float *restrict a, size_t lda,
                                                                    const float *restrict b, size_t rsb,
                                                                    size_t csb, float beta, float *restrict c,
                                                                    size_t ldc) {
    const size_t lanes = 8;
    const __m256i full = _mm256_set1_epi32(-1),
                  tail = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(m)),
                                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    (void)full, (void)lanes, (void)rsb, (void)lda;
    const __m256 a0 = _mm256_mul_ps(_mm256_maskload_ps(a + 0 * lda, tail), _mm256_set1_ps(alpha));
    const __m256 a1 = _mm256_mul_ps(_mm256_maskload_ps(a + 1 * lda, tail), _mm256_set1_ps(alpha));
    const __m256 a2 = _mm256_mul_ps(_mm256_maskload_ps(a + 2 * lda, tail), _mm256_set1_ps(alpha));
    const __m256 a3 = _mm256_mul_ps(_mm256_maskload_ps(a + 3 * lda, tail), _mm256_set1_ps(alpha));
    for (; n >= 1; n -= 1) {
        __m256 c0 = _mm256_mul_ps(a0, _mm256_set1_ps(b[0 * rsb + 0 * csb]));
        c0 = _mm256_fmadd_ps(a1, _mm256_set1_ps(b[1 * rsb + 0 * csb]), c0);
        c0 = _mm256_fmadd_ps(a2, _mm256_set1_ps(b[2 * rsb + 0 * csb]), c0);
        c0 = _mm256_fmadd_ps(a3, _mm256_set1_ps(b[3 * rsb + 0 * csb]), c0);

        if (beta != 0) { /* at beta = 0 C is not read */
            c0 = _mm256_fmadd_ps(_mm256_maskload_ps(c + 0 * ldc, tail), _mm256_set1_ps(beta), c0);
        }
        tensorop_store_tail_f32(c + 0 * ldc, tail, c0);

        b += 1 * csb;
        c += 1 * ldc;
    }
}

/* m <= lanes, k = 5 */
static __attribute__((noinline)) void avx2_f32_direct_330b_across_5(size_t m, size_t n, float alpha,
                                                                    const float *restrict a, size_t lda,
                                                                    const float *restrict b, size_t rsb,
                                                                    size_t csb, float beta, float *restrict c,
                                                                    size_t ldc) {
    const size_t lanes = 8;
    const __m256i full = _mm256_set1_epi32(-1),
                  tail = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(m)),
                                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    (void)full, (void)lanes, (void)rsb, (void)lda;
    const __m256 a0 = _mm256_mul_ps(_mm256_maskload_ps(a + 0 * lda, tail), _mm256_set1_ps(alpha));
    const __m256 a1 = _mm256_mul_ps(_mm256_maskload_ps(a + 1 * lda, tail), _mm256_set1_ps(alpha));
    const __m256 a2 = _mm256_mul_ps(_mm256_maskload_ps(a + 2 * lda, tail), _mm256_set1_ps(alpha));
    const __m256 a3 = _mm256_mul_ps(_mm256_maskload_ps(a + 3 * lda, tail), _mm256_set1_ps(alpha));
    const __m256 a4 = _mm256_mul_ps(_mm256_maskload_ps(a + 4 * lda, tail), _mm256_set1_ps(alpha));
    for (; n >= 1; n -= 1) {
        __m256 c0 = _mm256_mul_ps(a0, _mm256_set1_ps(b[0 * rsb + 0 * csb]));
        c0 = _mm256_fmadd_ps(a1, _mm256_set1_ps(b[1 * rsb + 0 * csb]), c0);
        c0 = _mm256_fmadd_ps(a2, _mm256_set1_ps(b[2 * rsb + 0 * csb]), c0);
        c0 = _mm256_fmadd_ps(a3, _mm256_set1_ps(b[3 * rsb + 0 * csb]), c0);
        c0 = _mm256_fmadd_ps(a4, _mm256_set1_ps(b[4 * rsb + 0 * csb]), c0);

        if (beta != 0) { /* at beta = 0 C is not read */
            c0 = _mm256_fmadd_ps(_mm256_maskload_ps(c + 0 * ldc, tail), _mm256_set1_ps(beta), c0);
        }
        tensorop_store_tail_f32(c + 0 * ldc, tail, c0);

        b += 1 * csb;
        c += 1 * ldc;
    }
}

/* m <= lanes, k = 6 */
static __attribute__((noinline)) void avx2_f32_direct_330b_across_6(size_t m, size_t n, float alpha,
                                                                    const float *restrict a, size_t lda,
                                                                    const float *restrict b, size_t rsb,
                                                                    size_t csb, float beta, float *restrict c,
                                                                    size_t ldc) {
    const size_t lanes = 8;
    const __m256i full = _mm256_set1_epi32(-1),
                  tail = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(m)),
                                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    (void)full, (void)lanes, (void)rsb, (void)lda;
    const __m256 a0 = _mm256_mul_ps(_mm256_maskload_ps(a + 0 * lda, tail), _mm256_set1_ps(alpha));
    const __m256 a1 = _mm256_mul_ps(_mm256_maskload_ps(a + 1 * lda, tail), _mm256_set1_ps(alpha));
    const __m256 a2 = _mm256_mul_ps(_mm256_maskload_ps(a + 2 * lda, tail), _mm256_set1_ps(alpha));
    const __m256 a3 = _mm256_mul_ps(_mm256_maskload_ps(a + 3 * lda, tail), _mm256_set1_ps(alpha));
    const __m256 a4 = _mm256_mul_ps(_mm256_maskload_ps(a + 4 * lda, tail), _mm256_set1_ps(alpha));
    const __m256 a5 = _mm256_mul_ps(_mm256_maskload_ps(a + 5 * lda, tail), _mm256_set1_ps(alpha));
    for (; n >= 1; n -= 1) {
        __m256 c0 = _mm256_mul_ps(a0, _mm256_set1_ps(b[0 * rsb + 0 * csb]));
        c0 = _mm256_fmadd_ps(a1, _mm256_set1_ps(b[1 * rsb + 0 * csb]), c0);
        c0 = _mm256_fmadd_ps(a2, _mm256_set1_ps(b[2 * rsb + 0 * csb]), c0);
        c0 = _mm256_fmadd_ps(a3, _mm256_set1_ps(b[3 * rsb + 0 * csb]), c0);
        c0 = _mm256_fmadd_ps(a4, _mm256_set1_ps(b[4 * rsb + 0 * csb]), c0);
        c0 = _mm256_fmadd_ps(a5, _mm256_set1_ps(b[5 * rsb + 0 * csb]), c0);

        if (beta != 0) { /* at beta = 0 C is not read */
            c0 = _mm256_fmadd_ps(_mm256_maskload_ps(c + 0 * ldc, tail), _mm256_set1_ps(beta), c0);
        }
        tensorop_store_tail_f32(c + 0 * ldc, tail, c0);

        b += 1 * csb;
        c += 1 * ldc;
    }
}

/* k = 1 */
static __attribute__((noinline)) void avx2_f32_direct_330b_shallow_1(size_t m, size_t n, float alpha,
                                                                     const float *restrict a, size_t lda,
                                                                     const float *restrict b, size_t rsb,
                                                                     size_t csb, float beta,
                                                                     float *restrict c, size_t ldc) {
    const size_t lanes = 8;
    const __m256i full = _mm256_set1_epi32(-1);
    (void)full, (void)rsb, (void)lda;
    for (; n >= 1; n -= 1) {
        const float b0_0 = alpha * b[0 * rsb + 0 * csb];
        size_t i = 0;
        for (; i + lanes <= m; i += lanes) {
            const __m256 a0 = _mm256_loadu_ps(a + i + 0 * lda);
            __m256 c0 = _mm256_mul_ps(a0, _mm256_set1_ps(b0_0));

            if (beta != 0) { /* at beta = 0 C is not read */
                c0 = _mm256_fmadd_ps(_mm256_loadu_ps(c + i + 0 * ldc), _mm256_set1_ps(beta), c0);
            }
            _mm256_storeu_ps(c + i + 0 * ldc, c0);
        }
        if (i < m) {
            const __m256i tail = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(m - i)),
                                                    _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
            const __m256 a0 = _mm256_maskload_ps(a + i + 0 * lda, tail);
            __m256 c0 = _mm256_mul_ps(a0, _mm256_set1_ps(b0_0));

            if (beta != 0) { /* at beta = 0 C is not read */
                c0 = _mm256_fmadd_ps(_mm256_maskload_ps(c + i + 0 * ldc, tail), _mm256_set1_ps(beta), c0);
            }
            tensorop_store_tail_f32(c + i + 0 * ldc, tail, c0);
        }

        b += 1 * csb;
        c += 1 * ldc;
    }
}

/* k = 2 */
static __attribute__((noinline)) void avx2_f32_direct_330b_shallow_2(size_t m, size_t n, float alpha,
                                                                     const float *restrict a, size_t lda,
                                                                     const float *restrict b, size_t rsb,
                                                                     size_t csb, float beta,
                                                                     float *restrict c, size_t ldc) {
    const size_t lanes = 8;
    const __m256i full = _mm256_set1_epi32(-1);
    (void)full, (void)rsb, (void)lda;
    for (; n >= 1; n -= 1) {
        const float b0_0 = alpha * b[0 * rsb + 0 * csb];
        const float b1_0 = alpha * b[1 * rsb + 0 * csb];
        size_t i = 0;
        for (; i + lanes <= m; i += lanes) {
            const __m256 a0 = _mm256_loadu_ps(a + i + 0 * lda);
            const __m256 a1 = _mm256_loadu_ps(a + i + 1 * lda);
            __m256 c0 = _mm256_mul_ps(a0, _mm256_set1_ps(b0_0));
            c0 = _mm256_fmadd_ps(a1, _mm256_set1_ps(b1_0), c0);

            if (beta != 0) { /* at beta = 0 C is not read */
                c0 = _mm256_fmadd_ps(_mm256_loadu_ps(c + i + 0 * ldc), _mm256_set1_ps(beta), c0);
            }
            _mm256_storeu_ps(c + i + 0 * ldc, c0);
        }
        if (i < m) {
            const __m256i tail = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(m - i)),
                                                    _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
            const __m256 a0 = _mm256_maskload_ps(a + i + 0 * lda, tail);
            const __m256 a1 = _mm256_maskload_ps(a + i + 1 * lda, tail);
            __m256 c0 = _mm256_mul_ps(a0, _mm256_set1_ps(b0_0));
            c0 = _mm256_fmadd_ps(a1, _mm256_set1_ps(b1_0), c0);

            if (beta != 0) { /* at beta = 0 C is not read */
                c0 = _mm256_fmadd_ps(_mm256_maskload_ps(c + i + 0 * ldc, tail), _mm256_set1_ps(beta), c0);
            }
            tensorop_store_tail_f32(c + i + 0 * ldc, tail, c0);
        }

        b += 1 * csb;
        c += 1 * ldc;
    }
}

/* k = 3 */
static __attribute__((noinline)) void avx2_f32_direct_330b_shallow_3(size_t m, size_t n, float alpha,
                                                                     const float *restrict a, size_t lda,
                                                                     const float *restrict b, size_t rsb,
                                                                     size_t csb, float beta,
                                                                     float *restrict c, size_t ldc) {
    const size_t lanes = 8;
    const __m256i full = _mm256_set1_epi32(-1);
    (void)full, (void)rsb, (void)lda;
    for (; n >= 1; n -= 1) {
        const float b0_0 = alpha * b[0 * rsb + 0 * csb];
        const float b1_0 = alpha * b[1 * rsb + 0 * csb];
        const float b2_0 = alpha * b[2 * rsb + 0 * csb];
        size_t i = 0;
        for (; i + lanes <= m; i += lanes) {
            const __m256 a0 = _mm256_loadu_ps(a + i + 0 * lda);
            const __m256 a1 = _mm256_loadu_ps(a + i + 1 * lda);
            const __m256 a2 = _mm256_loadu_ps(a + i + 2 * lda);
            __m256 c0 = _mm256_mul_ps(a0, _mm256_set1_ps(b0_0));
            c0 = _mm256_fmadd_ps(a1, _mm256_set1_ps(b1_0), c0);
            c0 = _mm256_fmadd_ps(a2, _mm256_set1_ps(b2_0), c0);

            if (beta != 0) { /* at beta = 0 C is not read */
                c0 = _mm256_fmadd_ps(_mm256_loadu_ps(c + i + 0 * ldc), _mm256_set1_ps(beta), c0);
            }
            _mm256_storeu_ps(c + i + 0 * ldc, c0);
        }
        if (i < m) {
            const __m256i tail = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(m - i)),
                                                    _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
            const __m256 a0 = _mm256_maskload_ps(a + i + 0 * lda, tail);
            const __m256 a1 = _mm256_maskload_ps(a + i + 1 * lda, tail);
            const __m256 a2 = _mm256_maskload_ps(a + i + 2 * lda, tail);
            __m256 c0 = _mm256_mul_ps(a0, _mm256_set1_ps(b0_0));
            c0 = _mm256_fmadd_ps(a1, _mm256_set1_ps(b1_0), c0);
            c0 = _mm256_fmadd_ps(a2, _mm256_set1_ps(b2_0), c0);

            if (beta != 0) { /* at beta = 0 C is not read */
                c0 = _mm256_fmadd_ps(_mm256_maskload_ps(c + i + 0 * ldc, tail), _mm256_set1_ps(beta), c0);
            }
            tensorop_store_tail_f32(c + i + 0 * ldc, tail, c0);
        }

        b += 1 * csb;
        c += 1 * ldc;
    }
}

/* k = 4 */
static __attribute__((noinline)) void avx2_f32_direct_330b_shallow_4(size_t m, size_t n, float alpha,
                                                                     const float *restrict a, size_t lda,
                                                                     const float *restrict b, size_t rsb,
                                                                     size_t csb, float beta,
                                                                     float *restrict c, size_t ldc) {
    const size_t lanes = 8;
    const __m256i full = _mm256_set1_epi32(-1);
    (void)full, (void)rsb, (void)lda;
    for (; n >= 1; n -= 1) {
        const float b0_0 = alpha * b[0 * rsb + 0 * csb];
        const float b1_0 = alpha * b[1 * rsb + 0 * csb];
        const float b2_0 = alpha * b[2 * rsb + 0 * csb];
        const float b3_0 = alpha * b[3 * rsb + 0 * csb];
        size_t i = 0;
        for (; i + lanes <= m; i += lanes) {
            const __m256 a0 = _mm256_loadu_ps(a + i + 0 * lda);
            const __m256 a1 = _mm256_loadu_ps(a + i + 1 * lda);
            const __m256 a2 = _mm256_loadu_ps(a + i + 2 * lda);
            const __m256 a3 = _mm256_loadu_ps(a + i + 3 * lda);
            __m256 c0 = _mm256_mul_ps(a0, _mm256_set1_ps(b0_0));
            c0 = _mm256_fmadd_ps(a1, _mm256_set1_ps(b1_0), c0);
            c0 = _mm256_fmadd_ps(a2, _mm256_set1_ps(b2_0), c0);
            c0 = _mm256_fmadd_ps(a3, _mm256_set1_ps(b3_0), c0);

            if (beta != 0) { /* at beta = 0 C is not read */
                c0 = _mm256_fmadd_ps(_mm256_loadu_ps(c + i + 0 * ldc), _mm256_set1_ps(beta), c0);
            }
            _mm256_storeu_ps(c + i + 0 * ldc, c0);
        }
        if (i < m) {
            const __m256i tail = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(m - i)),
                                                    _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
            const __m256 a0 = _mm256_maskload_ps(a + i + 0 * lda, tail);
            const __m256 a1 = _mm256_maskload_ps(a + i + 1 * lda, tail);
            const __m256 a2 = _mm256_maskload_ps(a + i + 2 * lda, tail);
            const __m256 a3 = _mm256_maskload_ps(a + i + 3 * lda, tail);
            __m256 c0 = _mm256_mul_ps(a0, _mm256_set1_ps(b0_0));
            c0 = _mm256_fmadd_ps(a1, _mm256_set1_ps(b1_0), c0);
            c0 = _mm256_fmadd_ps(a2, _mm256_set1_ps(b2_0), c0);
            c0 = _mm256_fmadd_ps(a3, _mm256_set1_ps(b3_0), c0);

            if (beta != 0) { /* at beta = 0 C is not read */
                c0 = _mm256_fmadd_ps(_mm256_maskload_ps(c + i + 0 * ldc, tail), _mm256_set1_ps(beta), c0);
            }
            tensorop_store_tail_f32(c + i + 0 * ldc, tail, c0);
        }

        b += 1 * csb;
        c += 1 * ldc;
    }
}

static inline void avx2_f32_direct_330b_shallow_rows(size_t m, size_t n, size_t k, float alpha,
                                                     const float *a, size_t lda, const float *b, size_t rsb,
                                                     size_t csb, float beta, float *c, size_t ldc) {
    switch (k) {
    case 1:
        avx2_f32_direct_330b_shallow_1(m, n, alpha, a, lda, b, rsb, csb, beta, c, ldc);
        break;
    case 2:
        avx2_f32_direct_330b_shallow_2(m, n, alpha, a, lda, b, rsb, csb, beta, c, ldc);
        break;
    case 3:
        avx2_f32_direct_330b_shallow_3(m, n, alpha, a, lda, b, rsb, csb, beta, c, ldc);
        break;
    case 4:
        avx2_f32_direct_330b_shallow_4(m, n, alpha, a, lda, b, rsb, csb, beta, c, ldc);
        break;
    default:
        break;
    }
}

/* Takes as many rows at a time as half of L1 holds of
 * A. */
static __attribute__((noinline)) void avx2_f32_direct_330b_shallow(size_t m, size_t n, size_t k, float alpha,
                                                                   const float *a, size_t lda, const float *b,
                                                                   size_t rsb, size_t csb, float beta,
                                                                   float *c, size_t ldc) {
    const size_t lanes = 8;
    if (m <= lanes) {
        switch (k) {
        case 1:
            avx2_f32_direct_330b_across_1(m, n, alpha, a, lda, b, rsb, csb, beta, c, ldc);
            return;
        case 2:
            avx2_f32_direct_330b_across_2(m, n, alpha, a, lda, b, rsb, csb, beta, c, ldc);
            return;
        case 3:
            avx2_f32_direct_330b_across_3(m, n, alpha, a, lda, b, rsb, csb, beta, c, ldc);
            return;
        case 4:
            avx2_f32_direct_330b_across_4(m, n, alpha, a, lda, b, rsb, csb, beta, c, ldc);
            return;
        case 5:
            avx2_f32_direct_330b_across_5(m, n, alpha, a, lda, b, rsb, csb, beta, c, ldc);
            return;
        case 6:
            avx2_f32_direct_330b_across_6(m, n, alpha, a, lda, b, rsb, csb, beta, c, ldc);
            return;
        default:
            return;
        }
    }
    const size_t near = 1024 / lanes * lanes, most = near ? near : lanes;
    for (size_t i = 0; i < m; i += most) {
        avx2_f32_direct_330b_shallow_rows(m - i < most ? m - i : most, n, k, alpha, a + i, lda, b, rsb, csb,
                                          beta, c + i, ldc);
    }
}

/* The same. If C is larger than half of L1, it is computed in column blocks that fit there. */
static inline __attribute__((always_inline)) void
avx2_f32_direct_330b_by_columns(size_t m, size_t n, size_t k, float alpha, const float *a, size_t lda,
                                const float *b, size_t rsb, size_t csb, float beta, float *c, size_t ldc) {
    if (avx2_f32_direct_330b_is_shallow(8, m, n, k)) {
        avx2_f32_direct_330b_shallow(m, n, k, alpha, a, lda, b, rsb, csb, beta, c, ldc);
        return;
    }
    const size_t near = 4096;
    if (m * n > near && m > 1 * 8 && m * k <= near) {
        const size_t most = m < near / 2 ? near / m / 1 * 1 : 2;
        for (; n > most; n -= most) {
            avx2_f32_direct_330b_down(m, most, k, alpha, a, lda, b, rsb, csb, beta, c, ldc);
            b += most * csb;
            c += most * ldc;
        }
    }
    avx2_f32_direct_330b_down(m, n, k, alpha, a, lda, b, rsb, csb, beta, c, ldc);
}

/* to[q * ldt + i] = from[i * lda + q]. Separate functions, to avoid the register pressure of their callers.
 */
static __attribute__((noinline)) void avx2_f32_direct_330b_turn(const float *from, size_t lda, float *to,
                                                                size_t ldt, size_t steps) {
    const size_t lanes = 8;
    for (; steps > lanes; steps -= lanes) {
        tensorop_transpose_f32(to, ldt, from, lda, 8, 8);
        from += lanes;
        to += lanes * ldt;
    }
    tensorop_transpose_f32(to, ldt, from, lda, 8, steps);
}

static __attribute__((noinline)) void avx2_f32_direct_330b_turn_some(const float *from, size_t lda, float *to,
                                                                     size_t ldt, size_t rows, size_t steps) {
    const size_t lanes = 8;
    for (; steps > lanes; steps -= lanes) {
        tensorop_transpose_f32(to, ldt, from, lda, rows, lanes);
        from += lanes;
        to += lanes * ldt;
    }
    tensorop_transpose_f32(to, ldt, from, lda, rows, steps);
}

/* A's rows are contiguous, lda apart. They are transposed onto the stack, as many rows and steps of k at a
 * time as fit there. */
static __attribute__((noinline)) void avx2_f32_direct_330b_turned(size_t m, size_t n, size_t k, float alpha,
                                                                  const float *a, size_t lda, const float *b,
                                                                  size_t rsb, size_t csb, float beta,
                                                                  float *c, size_t ldc) {
    _Alignas(64) float panel[2048];
    const size_t lanes = 8, largest = 1 * lanes;
    const size_t tile = m && m < largest ? (m + lanes - 1) / lanes * lanes : largest, most = 2048 / tile;
    const size_t high = m > tile && k < most ? 2048 / k / tile * tile : tile;
    for (size_t i = 0; i < m; i += high) {
        const size_t height = m - i < high ? m - i : high, vectors = (height + lanes - 1) / lanes * lanes;
        const size_t apart = vectors;
        for (size_t p = 0; p < k; p += most) {
            const size_t depth = k - p < most ? k - p : most;
            size_t x = 0;
            for (; x + lanes <= height; x += lanes)
                avx2_f32_direct_330b_turn(a + (i + x) * lda + p, lda, panel + x, apart, depth);
            if (x < height)
                avx2_f32_direct_330b_turn_some(a + (i + x) * lda + p, lda, panel + x, apart, height - x,
                                               depth);
            avx2_f32_direct_330b_by_columns(height, n, depth, alpha, panel, apart, b + p * rsb, rsb, csb,
                                            p ? 1 : beta, c + i, ldc);
        }
    }
}

static inline __attribute__((always_inline)) void
avx2_f32_direct_330b_dot_1x1(size_t m, size_t k, const float *restrict a, size_t lda, const float *restrict b,
                             size_t rsb, size_t csb, float alpha, float beta, float *restrict c, size_t ldc) {
    const size_t lanes = 8;
    const __m256i full = _mm256_set1_epi32(-1);
    (void)m, (void)full, (void)lanes, (void)rsb;
    __m256 c0_0_0 = _mm256_setzero_ps();
    __m256 c0_0_1 = _mm256_setzero_ps();
    __m256 c0_0_2 = _mm256_setzero_ps();
    __m256 c0_0_3 = _mm256_setzero_ps();
    size_t p = 0;
    for (; p + 4 * lanes <= k; p += 4 * lanes) {
        {
            const __m256 a0 = _mm256_loadu_ps(a + 0 * lda + p + 0 * lanes);
            const __m256 b0 = _mm256_loadu_ps(b + 0 * csb + p + 0 * lanes);
            c0_0_0 = _mm256_fmadd_ps(a0, b0, c0_0_0);
        }
        {
            const __m256 a0 = _mm256_loadu_ps(a + 0 * lda + p + 1 * lanes);
            const __m256 b0 = _mm256_loadu_ps(b + 0 * csb + p + 1 * lanes);
            c0_0_1 = _mm256_fmadd_ps(a0, b0, c0_0_1);
        }
        {
            const __m256 a0 = _mm256_loadu_ps(a + 0 * lda + p + 2 * lanes);
            const __m256 b0 = _mm256_loadu_ps(b + 0 * csb + p + 2 * lanes);
            c0_0_2 = _mm256_fmadd_ps(a0, b0, c0_0_2);
        }
        {
            const __m256 a0 = _mm256_loadu_ps(a + 0 * lda + p + 3 * lanes);
            const __m256 b0 = _mm256_loadu_ps(b + 0 * csb + p + 3 * lanes);
            c0_0_3 = _mm256_fmadd_ps(a0, b0, c0_0_3);
        }
    }
    for (; p + lanes <= k; p += lanes) {
        const __m256 a0 = _mm256_loadu_ps(a + 0 * lda + p);
        const __m256 b0 = _mm256_loadu_ps(b + 0 * csb + p);
        c0_0_0 = _mm256_fmadd_ps(a0, b0, c0_0_0);
    }
    if (p < k) {
        const __m256i tail =
            _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(k - p)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
        const __m256 a0 = _mm256_maskload_ps(a + 0 * lda + p, tail);
        const __m256 b0 = _mm256_maskload_ps(b + 0 * csb + p, tail);
        c0_0_0 = _mm256_blendv_ps(c0_0_0, _mm256_fmadd_ps(a0, b0, c0_0_0), _mm256_castsi256_ps(tail));
    }
    c0_0_0 = _mm256_add_ps(c0_0_0, c0_0_2);
    c0_0_1 = _mm256_add_ps(c0_0_1, c0_0_3);
    c0_0_0 = _mm256_add_ps(c0_0_0, c0_0_1);
    const float dot0_0 = alpha * tensorop_sum_f32(c0_0_0);
    if (beta == 0) { /* C is not read */
        c[0 + 0 * ldc] = dot0_0;
    } else {
        c[0 + 0 * ldc] = beta * c[0 + 0 * ldc] + dot0_0;
    }
}

static inline __attribute__((always_inline)) void
avx2_f32_direct_330b_dot_1x2(size_t m, size_t k, const float *restrict a, size_t lda, const float *restrict b,
                             size_t rsb, size_t csb, float alpha, float beta, float *restrict c, size_t ldc) {
    const size_t lanes = 8;
    const __m256i full = _mm256_set1_epi32(-1);
    (void)m, (void)full, (void)lanes, (void)rsb;
    __m256 c0_0_0 = _mm256_setzero_ps();
    __m256 c0_1_0 = _mm256_setzero_ps();
    __m256 c0_0_1 = _mm256_setzero_ps();
    __m256 c0_1_1 = _mm256_setzero_ps();
    size_t p = 0;
    for (; p + 2 * lanes <= k; p += 2 * lanes) {
        {
            const __m256 a0 = _mm256_loadu_ps(a + 0 * lda + p + 0 * lanes);
            const __m256 b0 = _mm256_loadu_ps(b + 0 * csb + p + 0 * lanes);
            const __m256 b1 = _mm256_loadu_ps(b + 1 * csb + p + 0 * lanes);
            c0_0_0 = _mm256_fmadd_ps(a0, b0, c0_0_0);
            c0_1_0 = _mm256_fmadd_ps(a0, b1, c0_1_0);
        }
        {
            const __m256 a0 = _mm256_loadu_ps(a + 0 * lda + p + 1 * lanes);
            const __m256 b0 = _mm256_loadu_ps(b + 0 * csb + p + 1 * lanes);
            const __m256 b1 = _mm256_loadu_ps(b + 1 * csb + p + 1 * lanes);
            c0_0_1 = _mm256_fmadd_ps(a0, b0, c0_0_1);
            c0_1_1 = _mm256_fmadd_ps(a0, b1, c0_1_1);
        }
    }
    for (; p + lanes <= k; p += lanes) {
        const __m256 a0 = _mm256_loadu_ps(a + 0 * lda + p);
        const __m256 b0 = _mm256_loadu_ps(b + 0 * csb + p);
        const __m256 b1 = _mm256_loadu_ps(b + 1 * csb + p);
        c0_0_0 = _mm256_fmadd_ps(a0, b0, c0_0_0);
        c0_1_0 = _mm256_fmadd_ps(a0, b1, c0_1_0);
    }
    if (p < k) {
        const __m256i tail =
            _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(k - p)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
        const __m256 a0 = _mm256_maskload_ps(a + 0 * lda + p, tail);
        const __m256 b0 = _mm256_maskload_ps(b + 0 * csb + p, tail);
        const __m256 b1 = _mm256_maskload_ps(b + 1 * csb + p, tail);
        c0_0_0 = _mm256_blendv_ps(c0_0_0, _mm256_fmadd_ps(a0, b0, c0_0_0), _mm256_castsi256_ps(tail));
        c0_1_0 = _mm256_blendv_ps(c0_1_0, _mm256_fmadd_ps(a0, b1, c0_1_0), _mm256_castsi256_ps(tail));
    }
    c0_0_0 = _mm256_add_ps(c0_0_0, c0_0_1);
    c0_1_0 = _mm256_add_ps(c0_1_0, c0_1_1);
    const float dot0_0 = alpha * tensorop_sum_f32(c0_0_0);
    const float dot0_1 = alpha * tensorop_sum_f32(c0_1_0);
    if (beta == 0) { /* C is not read */
        c[0 + 0 * ldc] = dot0_0;
        c[0 + 1 * ldc] = dot0_1;
    } else {
        c[0 + 0 * ldc] = beta * c[0 + 0 * ldc] + dot0_0;
        c[0 + 1 * ldc] = beta * c[0 + 1 * ldc] + dot0_1;
    }
}

static inline __attribute__((always_inline)) void
avx2_f32_direct_330b_dot_1x3(size_t m, size_t k, const float *restrict a, size_t lda, const float *restrict b,
                             size_t rsb, size_t csb, float alpha, float beta, float *restrict c, size_t ldc) {
    const size_t lanes = 8;
    const __m256i full = _mm256_set1_epi32(-1);
    (void)m, (void)full, (void)lanes, (void)rsb;
    __m256 c0_0_0 = _mm256_setzero_ps();
    __m256 c0_1_0 = _mm256_setzero_ps();
    __m256 c0_2_0 = _mm256_setzero_ps();
    size_t p = 0;
    for (; p + lanes <= k; p += lanes) {
        const __m256 a0 = _mm256_loadu_ps(a + 0 * lda + p);
        const __m256 b0 = _mm256_loadu_ps(b + 0 * csb + p);
        const __m256 b1 = _mm256_loadu_ps(b + 1 * csb + p);
        const __m256 b2 = _mm256_loadu_ps(b + 2 * csb + p);
        c0_0_0 = _mm256_fmadd_ps(a0, b0, c0_0_0);
        c0_1_0 = _mm256_fmadd_ps(a0, b1, c0_1_0);
        c0_2_0 = _mm256_fmadd_ps(a0, b2, c0_2_0);
    }
    if (p < k) {
        const __m256i tail =
            _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(k - p)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
        const __m256 a0 = _mm256_maskload_ps(a + 0 * lda + p, tail);
        const __m256 b0 = _mm256_maskload_ps(b + 0 * csb + p, tail);
        const __m256 b1 = _mm256_maskload_ps(b + 1 * csb + p, tail);
        const __m256 b2 = _mm256_maskload_ps(b + 2 * csb + p, tail);
        c0_0_0 = _mm256_blendv_ps(c0_0_0, _mm256_fmadd_ps(a0, b0, c0_0_0), _mm256_castsi256_ps(tail));
        c0_1_0 = _mm256_blendv_ps(c0_1_0, _mm256_fmadd_ps(a0, b1, c0_1_0), _mm256_castsi256_ps(tail));
        c0_2_0 = _mm256_blendv_ps(c0_2_0, _mm256_fmadd_ps(a0, b2, c0_2_0), _mm256_castsi256_ps(tail));
    }
    const float dot0_0 = alpha * tensorop_sum_f32(c0_0_0);
    const float dot0_1 = alpha * tensorop_sum_f32(c0_1_0);
    const float dot0_2 = alpha * tensorop_sum_f32(c0_2_0);
    if (beta == 0) { /* C is not read */
        c[0 + 0 * ldc] = dot0_0;
        c[0 + 1 * ldc] = dot0_1;
        c[0 + 2 * ldc] = dot0_2;
    } else {
        c[0 + 0 * ldc] = beta * c[0 + 0 * ldc] + dot0_0;
        c[0 + 1 * ldc] = beta * c[0 + 1 * ldc] + dot0_1;
        c[0 + 2 * ldc] = beta * c[0 + 2 * ldc] + dot0_2;
    }
}

static inline __attribute__((always_inline)) void
avx2_f32_direct_330b_dot_1x4(size_t m, size_t k, const float *restrict a, size_t lda, const float *restrict b,
                             size_t rsb, size_t csb, float alpha, float beta, float *restrict c, size_t ldc) {
    const size_t lanes = 8;
    const __m256i full = _mm256_set1_epi32(-1);
    (void)m, (void)full, (void)lanes, (void)rsb;
    __m256 c0_0_0 = _mm256_setzero_ps();
    __m256 c0_1_0 = _mm256_setzero_ps();
    __m256 c0_2_0 = _mm256_setzero_ps();
    __m256 c0_3_0 = _mm256_setzero_ps();
    size_t p = 0;
    for (; p + lanes <= k; p += lanes) {
        const __m256 a0 = _mm256_loadu_ps(a + 0 * lda + p);
        const __m256 b0 = _mm256_loadu_ps(b + 0 * csb + p);
        const __m256 b1 = _mm256_loadu_ps(b + 1 * csb + p);
        const __m256 b2 = _mm256_loadu_ps(b + 2 * csb + p);
        const __m256 b3 = _mm256_loadu_ps(b + 3 * csb + p);
        c0_0_0 = _mm256_fmadd_ps(a0, b0, c0_0_0);
        c0_1_0 = _mm256_fmadd_ps(a0, b1, c0_1_0);
        c0_2_0 = _mm256_fmadd_ps(a0, b2, c0_2_0);
        c0_3_0 = _mm256_fmadd_ps(a0, b3, c0_3_0);
    }
    if (p < k) {
        const __m256i tail =
            _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(k - p)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
        const __m256 a0 = _mm256_maskload_ps(a + 0 * lda + p, tail);
        const __m256 b0 = _mm256_maskload_ps(b + 0 * csb + p, tail);
        const __m256 b1 = _mm256_maskload_ps(b + 1 * csb + p, tail);
        const __m256 b2 = _mm256_maskload_ps(b + 2 * csb + p, tail);
        const __m256 b3 = _mm256_maskload_ps(b + 3 * csb + p, tail);
        c0_0_0 = _mm256_blendv_ps(c0_0_0, _mm256_fmadd_ps(a0, b0, c0_0_0), _mm256_castsi256_ps(tail));
        c0_1_0 = _mm256_blendv_ps(c0_1_0, _mm256_fmadd_ps(a0, b1, c0_1_0), _mm256_castsi256_ps(tail));
        c0_2_0 = _mm256_blendv_ps(c0_2_0, _mm256_fmadd_ps(a0, b2, c0_2_0), _mm256_castsi256_ps(tail));
        c0_3_0 = _mm256_blendv_ps(c0_3_0, _mm256_fmadd_ps(a0, b3, c0_3_0), _mm256_castsi256_ps(tail));
    }
    const float dot0_0 = alpha * tensorop_sum_f32(c0_0_0);
    const float dot0_1 = alpha * tensorop_sum_f32(c0_1_0);
    const float dot0_2 = alpha * tensorop_sum_f32(c0_2_0);
    const float dot0_3 = alpha * tensorop_sum_f32(c0_3_0);
    if (beta == 0) { /* C is not read */
        c[0 + 0 * ldc] = dot0_0;
        c[0 + 1 * ldc] = dot0_1;
        c[0 + 2 * ldc] = dot0_2;
        c[0 + 3 * ldc] = dot0_3;
    } else {
        c[0 + 0 * ldc] = beta * c[0 + 0 * ldc] + dot0_0;
        c[0 + 1 * ldc] = beta * c[0 + 1 * ldc] + dot0_1;
        c[0 + 2 * ldc] = beta * c[0 + 2 * ldc] + dot0_2;
        c[0 + 3 * ldc] = beta * c[0 + 3 * ldc] + dot0_3;
    }
}

/* 1 row of A by n columns of B, both contiguous along k */
static void avx2_f32_direct_330b_dots_1(size_t m, size_t n, size_t k, float alpha, const float *a, size_t lda,
                                        const float *b, size_t rsb, size_t csb, float beta, float *c,
                                        size_t ldc) {
    for (; n >= 4; n -= 4) {
        avx2_f32_direct_330b_dot_1x4(m, k, a, lda, b, rsb, csb, alpha, beta, c, ldc);
        b += 4 * csb;
        c += 4 * ldc;
    }
    switch (n) {
    case 1:
        avx2_f32_direct_330b_dot_1x1(m, k, a, lda, b, rsb, csb, alpha, beta, c, ldc);
        break;
    case 2:
        avx2_f32_direct_330b_dot_1x2(m, k, a, lda, b, rsb, csb, alpha, beta, c, ldc);
        break;
    case 3:
        avx2_f32_direct_330b_dot_1x3(m, k, a, lda, b, rsb, csb, alpha, beta, c, ldc);
        break;
    default:
        break;
    }
}
static inline __attribute__((always_inline)) void
avx2_f32_direct_330b_dot_2x1(size_t m, size_t k, const float *restrict a, size_t lda, const float *restrict b,
                             size_t rsb, size_t csb, float alpha, float beta, float *restrict c, size_t ldc) {
    const size_t lanes = 8;
    const __m256i full = _mm256_set1_epi32(-1);
    (void)m, (void)full, (void)lanes, (void)rsb;
    __m256 c0_0_0 = _mm256_setzero_ps();
    __m256 c1_0_0 = _mm256_setzero_ps();
    __m256 c0_0_1 = _mm256_setzero_ps();
    __m256 c1_0_1 = _mm256_setzero_ps();
    size_t p = 0;
    for (; p + 2 * lanes <= k; p += 2 * lanes) {
        {
            const __m256 a0 = _mm256_loadu_ps(a + 0 * lda + p + 0 * lanes);
            const __m256 a1 = _mm256_loadu_ps(a + 1 * lda + p + 0 * lanes);
            const __m256 b0 = _mm256_loadu_ps(b + 0 * csb + p + 0 * lanes);
            c0_0_0 = _mm256_fmadd_ps(a0, b0, c0_0_0);
            c1_0_0 = _mm256_fmadd_ps(a1, b0, c1_0_0);
        }
        {
            const __m256 a0 = _mm256_loadu_ps(a + 0 * lda + p + 1 * lanes);
            const __m256 a1 = _mm256_loadu_ps(a + 1 * lda + p + 1 * lanes);
            const __m256 b0 = _mm256_loadu_ps(b + 0 * csb + p + 1 * lanes);
            c0_0_1 = _mm256_fmadd_ps(a0, b0, c0_0_1);
            c1_0_1 = _mm256_fmadd_ps(a1, b0, c1_0_1);
        }
    }
    for (; p + lanes <= k; p += lanes) {
        const __m256 a0 = _mm256_loadu_ps(a + 0 * lda + p);
        const __m256 a1 = _mm256_loadu_ps(a + 1 * lda + p);
        const __m256 b0 = _mm256_loadu_ps(b + 0 * csb + p);
        c0_0_0 = _mm256_fmadd_ps(a0, b0, c0_0_0);
        c1_0_0 = _mm256_fmadd_ps(a1, b0, c1_0_0);
    }
    if (p < k) {
        const __m256i tail =
            _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(k - p)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
        const __m256 a0 = _mm256_maskload_ps(a + 0 * lda + p, tail);
        const __m256 a1 = _mm256_maskload_ps(a + 1 * lda + p, tail);
        const __m256 b0 = _mm256_maskload_ps(b + 0 * csb + p, tail);
        c0_0_0 = _mm256_blendv_ps(c0_0_0, _mm256_fmadd_ps(a0, b0, c0_0_0), _mm256_castsi256_ps(tail));
        c1_0_0 = _mm256_blendv_ps(c1_0_0, _mm256_fmadd_ps(a1, b0, c1_0_0), _mm256_castsi256_ps(tail));
    }
    c0_0_0 = _mm256_add_ps(c0_0_0, c0_0_1);
    c1_0_0 = _mm256_add_ps(c1_0_0, c1_0_1);
    const float dot0_0 = alpha * tensorop_sum_f32(c0_0_0);
    const float dot1_0 = alpha * tensorop_sum_f32(c1_0_0);
    if (beta == 0) { /* C is not read */
        c[0 + 0 * ldc] = dot0_0;
        c[1 + 0 * ldc] = dot1_0;
    } else {
        c[0 + 0 * ldc] = beta * c[0 + 0 * ldc] + dot0_0;
        c[1 + 0 * ldc] = beta * c[1 + 0 * ldc] + dot1_0;
    }
}

static inline __attribute__((always_inline)) void
avx2_f32_direct_330b_dot_2x2(size_t m, size_t k, const float *restrict a, size_t lda, const float *restrict b,
                             size_t rsb, size_t csb, float alpha, float beta, float *restrict c, size_t ldc) {
    const size_t lanes = 8;
    const __m256i full = _mm256_set1_epi32(-1);
    (void)m, (void)full, (void)lanes, (void)rsb;
    __m256 c0_0_0 = _mm256_setzero_ps();
    __m256 c1_0_0 = _mm256_setzero_ps();
    __m256 c0_1_0 = _mm256_setzero_ps();
    __m256 c1_1_0 = _mm256_setzero_ps();
    size_t p = 0;
    for (; p + lanes <= k; p += lanes) {
        const __m256 a0 = _mm256_loadu_ps(a + 0 * lda + p);
        const __m256 a1 = _mm256_loadu_ps(a + 1 * lda + p);
        const __m256 b0 = _mm256_loadu_ps(b + 0 * csb + p);
        const __m256 b1 = _mm256_loadu_ps(b + 1 * csb + p);
        c0_0_0 = _mm256_fmadd_ps(a0, b0, c0_0_0);
        c1_0_0 = _mm256_fmadd_ps(a1, b0, c1_0_0);
        c0_1_0 = _mm256_fmadd_ps(a0, b1, c0_1_0);
        c1_1_0 = _mm256_fmadd_ps(a1, b1, c1_1_0);
    }
    if (p < k) {
        const __m256i tail =
            _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(k - p)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
        const __m256 a0 = _mm256_maskload_ps(a + 0 * lda + p, tail);
        const __m256 a1 = _mm256_maskload_ps(a + 1 * lda + p, tail);
        const __m256 b0 = _mm256_maskload_ps(b + 0 * csb + p, tail);
        const __m256 b1 = _mm256_maskload_ps(b + 1 * csb + p, tail);
        c0_0_0 = _mm256_blendv_ps(c0_0_0, _mm256_fmadd_ps(a0, b0, c0_0_0), _mm256_castsi256_ps(tail));
        c1_0_0 = _mm256_blendv_ps(c1_0_0, _mm256_fmadd_ps(a1, b0, c1_0_0), _mm256_castsi256_ps(tail));
        c0_1_0 = _mm256_blendv_ps(c0_1_0, _mm256_fmadd_ps(a0, b1, c0_1_0), _mm256_castsi256_ps(tail));
        c1_1_0 = _mm256_blendv_ps(c1_1_0, _mm256_fmadd_ps(a1, b1, c1_1_0), _mm256_castsi256_ps(tail));
    }
    const float dot0_0 = alpha * tensorop_sum_f32(c0_0_0);
    const float dot1_0 = alpha * tensorop_sum_f32(c1_0_0);
    const float dot0_1 = alpha * tensorop_sum_f32(c0_1_0);
    const float dot1_1 = alpha * tensorop_sum_f32(c1_1_0);
    if (beta == 0) { /* C is not read */
        c[0 + 0 * ldc] = dot0_0;
        c[1 + 0 * ldc] = dot1_0;
        c[0 + 1 * ldc] = dot0_1;
        c[1 + 1 * ldc] = dot1_1;
    } else {
        c[0 + 0 * ldc] = beta * c[0 + 0 * ldc] + dot0_0;
        c[1 + 0 * ldc] = beta * c[1 + 0 * ldc] + dot1_0;
        c[0 + 1 * ldc] = beta * c[0 + 1 * ldc] + dot0_1;
        c[1 + 1 * ldc] = beta * c[1 + 1 * ldc] + dot1_1;
    }
}

static inline __attribute__((always_inline)) void
avx2_f32_direct_330b_dot_2x3(size_t m, size_t k, const float *restrict a, size_t lda, const float *restrict b,
                             size_t rsb, size_t csb, float alpha, float beta, float *restrict c, size_t ldc) {
    const size_t lanes = 8;
    const __m256i full = _mm256_set1_epi32(-1);
    (void)m, (void)full, (void)lanes, (void)rsb;
    __m256 c0_0_0 = _mm256_setzero_ps();
    __m256 c1_0_0 = _mm256_setzero_ps();
    __m256 c0_1_0 = _mm256_setzero_ps();
    __m256 c1_1_0 = _mm256_setzero_ps();
    __m256 c0_2_0 = _mm256_setzero_ps();
    __m256 c1_2_0 = _mm256_setzero_ps();
    size_t p = 0;
    for (; p + lanes <= k; p += lanes) {
        const __m256 a0 = _mm256_loadu_ps(a + 0 * lda + p);
        const __m256 a1 = _mm256_loadu_ps(a + 1 * lda + p);
        const __m256 b0 = _mm256_loadu_ps(b + 0 * csb + p);
        const __m256 b1 = _mm256_loadu_ps(b + 1 * csb + p);
        const __m256 b2 = _mm256_loadu_ps(b + 2 * csb + p);
        c0_0_0 = _mm256_fmadd_ps(a0, b0, c0_0_0);
        c1_0_0 = _mm256_fmadd_ps(a1, b0, c1_0_0);
        c0_1_0 = _mm256_fmadd_ps(a0, b1, c0_1_0);
        c1_1_0 = _mm256_fmadd_ps(a1, b1, c1_1_0);
        c0_2_0 = _mm256_fmadd_ps(a0, b2, c0_2_0);
        c1_2_0 = _mm256_fmadd_ps(a1, b2, c1_2_0);
    }
    if (p < k) {
        const __m256i tail =
            _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(k - p)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
        const __m256 a0 = _mm256_maskload_ps(a + 0 * lda + p, tail);
        const __m256 a1 = _mm256_maskload_ps(a + 1 * lda + p, tail);
        const __m256 b0 = _mm256_maskload_ps(b + 0 * csb + p, tail);
        const __m256 b1 = _mm256_maskload_ps(b + 1 * csb + p, tail);
        const __m256 b2 = _mm256_maskload_ps(b + 2 * csb + p, tail);
        c0_0_0 = _mm256_blendv_ps(c0_0_0, _mm256_fmadd_ps(a0, b0, c0_0_0), _mm256_castsi256_ps(tail));
        c1_0_0 = _mm256_blendv_ps(c1_0_0, _mm256_fmadd_ps(a1, b0, c1_0_0), _mm256_castsi256_ps(tail));
        c0_1_0 = _mm256_blendv_ps(c0_1_0, _mm256_fmadd_ps(a0, b1, c0_1_0), _mm256_castsi256_ps(tail));
        c1_1_0 = _mm256_blendv_ps(c1_1_0, _mm256_fmadd_ps(a1, b1, c1_1_0), _mm256_castsi256_ps(tail));
        c0_2_0 = _mm256_blendv_ps(c0_2_0, _mm256_fmadd_ps(a0, b2, c0_2_0), _mm256_castsi256_ps(tail));
        c1_2_0 = _mm256_blendv_ps(c1_2_0, _mm256_fmadd_ps(a1, b2, c1_2_0), _mm256_castsi256_ps(tail));
    }
    const float dot0_0 = alpha * tensorop_sum_f32(c0_0_0);
    const float dot1_0 = alpha * tensorop_sum_f32(c1_0_0);
    const float dot0_1 = alpha * tensorop_sum_f32(c0_1_0);
    const float dot1_1 = alpha * tensorop_sum_f32(c1_1_0);
    const float dot0_2 = alpha * tensorop_sum_f32(c0_2_0);
    const float dot1_2 = alpha * tensorop_sum_f32(c1_2_0);
    if (beta == 0) { /* C is not read */
        c[0 + 0 * ldc] = dot0_0;
        c[1 + 0 * ldc] = dot1_0;
        c[0 + 1 * ldc] = dot0_1;
        c[1 + 1 * ldc] = dot1_1;
        c[0 + 2 * ldc] = dot0_2;
        c[1 + 2 * ldc] = dot1_2;
    } else {
        c[0 + 0 * ldc] = beta * c[0 + 0 * ldc] + dot0_0;
        c[1 + 0 * ldc] = beta * c[1 + 0 * ldc] + dot1_0;
        c[0 + 1 * ldc] = beta * c[0 + 1 * ldc] + dot0_1;
        c[1 + 1 * ldc] = beta * c[1 + 1 * ldc] + dot1_1;
        c[0 + 2 * ldc] = beta * c[0 + 2 * ldc] + dot0_2;
        c[1 + 2 * ldc] = beta * c[1 + 2 * ldc] + dot1_2;
    }
}

static inline __attribute__((always_inline)) void
avx2_f32_direct_330b_dot_2x4(size_t m, size_t k, const float *restrict a, size_t lda, const float *restrict b,
                             size_t rsb, size_t csb, float alpha, float beta, float *restrict c, size_t ldc) {
    const size_t lanes = 8;
    const __m256i full = _mm256_set1_epi32(-1);
    (void)m, (void)full, (void)lanes, (void)rsb;
    __m256 c0_0_0 = _mm256_setzero_ps();
    __m256 c1_0_0 = _mm256_setzero_ps();
    __m256 c0_1_0 = _mm256_setzero_ps();
    __m256 c1_1_0 = _mm256_setzero_ps();
    __m256 c0_2_0 = _mm256_setzero_ps();
    __m256 c1_2_0 = _mm256_setzero_ps();
    __m256 c0_3_0 = _mm256_setzero_ps();
    __m256 c1_3_0 = _mm256_setzero_ps();
    size_t p = 0;
    for (; p + lanes <= k; p += lanes) {
        const __m256 a0 = _mm256_loadu_ps(a + 0 * lda + p);
        const __m256 a1 = _mm256_loadu_ps(a + 1 * lda + p);
        const __m256 b0 = _mm256_loadu_ps(b + 0 * csb + p);
        const __m256 b1 = _mm256_loadu_ps(b + 1 * csb + p);
        const __m256 b2 = _mm256_loadu_ps(b + 2 * csb + p);
        const __m256 b3 = _mm256_loadu_ps(b + 3 * csb + p);
        c0_0_0 = _mm256_fmadd_ps(a0, b0, c0_0_0);
        c1_0_0 = _mm256_fmadd_ps(a1, b0, c1_0_0);
        c0_1_0 = _mm256_fmadd_ps(a0, b1, c0_1_0);
        c1_1_0 = _mm256_fmadd_ps(a1, b1, c1_1_0);
        c0_2_0 = _mm256_fmadd_ps(a0, b2, c0_2_0);
        c1_2_0 = _mm256_fmadd_ps(a1, b2, c1_2_0);
        c0_3_0 = _mm256_fmadd_ps(a0, b3, c0_3_0);
        c1_3_0 = _mm256_fmadd_ps(a1, b3, c1_3_0);
    }
    if (p < k) {
        const __m256i tail =
            _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(k - p)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
        const __m256 a0 = _mm256_maskload_ps(a + 0 * lda + p, tail);
        const __m256 a1 = _mm256_maskload_ps(a + 1 * lda + p, tail);
        const __m256 b0 = _mm256_maskload_ps(b + 0 * csb + p, tail);
        const __m256 b1 = _mm256_maskload_ps(b + 1 * csb + p, tail);
        const __m256 b2 = _mm256_maskload_ps(b + 2 * csb + p, tail);
        const __m256 b3 = _mm256_maskload_ps(b + 3 * csb + p, tail);
        c0_0_0 = _mm256_blendv_ps(c0_0_0, _mm256_fmadd_ps(a0, b0, c0_0_0), _mm256_castsi256_ps(tail));
        c1_0_0 = _mm256_blendv_ps(c1_0_0, _mm256_fmadd_ps(a1, b0, c1_0_0), _mm256_castsi256_ps(tail));
        c0_1_0 = _mm256_blendv_ps(c0_1_0, _mm256_fmadd_ps(a0, b1, c0_1_0), _mm256_castsi256_ps(tail));
        c1_1_0 = _mm256_blendv_ps(c1_1_0, _mm256_fmadd_ps(a1, b1, c1_1_0), _mm256_castsi256_ps(tail));
        c0_2_0 = _mm256_blendv_ps(c0_2_0, _mm256_fmadd_ps(a0, b2, c0_2_0), _mm256_castsi256_ps(tail));
        c1_2_0 = _mm256_blendv_ps(c1_2_0, _mm256_fmadd_ps(a1, b2, c1_2_0), _mm256_castsi256_ps(tail));
        c0_3_0 = _mm256_blendv_ps(c0_3_0, _mm256_fmadd_ps(a0, b3, c0_3_0), _mm256_castsi256_ps(tail));
        c1_3_0 = _mm256_blendv_ps(c1_3_0, _mm256_fmadd_ps(a1, b3, c1_3_0), _mm256_castsi256_ps(tail));
    }
    const float dot0_0 = alpha * tensorop_sum_f32(c0_0_0);
    const float dot1_0 = alpha * tensorop_sum_f32(c1_0_0);
    const float dot0_1 = alpha * tensorop_sum_f32(c0_1_0);
    const float dot1_1 = alpha * tensorop_sum_f32(c1_1_0);
    const float dot0_2 = alpha * tensorop_sum_f32(c0_2_0);
    const float dot1_2 = alpha * tensorop_sum_f32(c1_2_0);
    const float dot0_3 = alpha * tensorop_sum_f32(c0_3_0);
    const float dot1_3 = alpha * tensorop_sum_f32(c1_3_0);
    if (beta == 0) { /* C is not read */
        c[0 + 0 * ldc] = dot0_0;
        c[1 + 0 * ldc] = dot1_0;
        c[0 + 1 * ldc] = dot0_1;
        c[1 + 1 * ldc] = dot1_1;
        c[0 + 2 * ldc] = dot0_2;
        c[1 + 2 * ldc] = dot1_2;
        c[0 + 3 * ldc] = dot0_3;
        c[1 + 3 * ldc] = dot1_3;
    } else {
        c[0 + 0 * ldc] = beta * c[0 + 0 * ldc] + dot0_0;
        c[1 + 0 * ldc] = beta * c[1 + 0 * ldc] + dot1_0;
        c[0 + 1 * ldc] = beta * c[0 + 1 * ldc] + dot0_1;
        c[1 + 1 * ldc] = beta * c[1 + 1 * ldc] + dot1_1;
        c[0 + 2 * ldc] = beta * c[0 + 2 * ldc] + dot0_2;
        c[1 + 2 * ldc] = beta * c[1 + 2 * ldc] + dot1_2;
        c[0 + 3 * ldc] = beta * c[0 + 3 * ldc] + dot0_3;
        c[1 + 3 * ldc] = beta * c[1 + 3 * ldc] + dot1_3;
    }
}

/* 2 rows of A by n columns of B, both contiguous along k */
static void avx2_f32_direct_330b_dots_2(size_t m, size_t n, size_t k, float alpha, const float *a, size_t lda,
                                        const float *b, size_t rsb, size_t csb, float beta, float *c,
                                        size_t ldc) {
    for (; n >= 4; n -= 4) {
        avx2_f32_direct_330b_dot_2x4(m, k, a, lda, b, rsb, csb, alpha, beta, c, ldc);
        b += 4 * csb;
        c += 4 * ldc;
    }
    switch (n) {
    case 1:
        avx2_f32_direct_330b_dot_2x1(m, k, a, lda, b, rsb, csb, alpha, beta, c, ldc);
        break;
    case 2:
        avx2_f32_direct_330b_dot_2x2(m, k, a, lda, b, rsb, csb, alpha, beta, c, ldc);
        break;
    case 3:
        avx2_f32_direct_330b_dot_2x3(m, k, a, lda, b, rsb, csb, alpha, beta, c, ldc);
        break;
    default:
        break;
    }
}

static __attribute__((noinline)) void avx2_f32_direct_330b_along_k(size_t m, size_t n, size_t k, float alpha,
                                                                   const float *a, size_t lda, const float *b,
                                                                   size_t rsb, size_t csb, float beta,
                                                                   float *c, size_t ldc) {
    if (n == 1) { /* one column, computed as a row */
        avx2_f32_direct_330b_dots_1(1, m, k, alpha, b, k, a, 1, lda, beta, c, 1);
        return;
    }
    for (; m >= 2; m -= 2) {
        avx2_f32_direct_330b_dots_2(2, n, k, alpha, a, lda, b, rsb, csb, beta, c, ldc);
        a += 2 * lda;
        c += 2;
    }
    if (m)
        avx2_f32_direct_330b_dots_1(1, n, k, alpha, a, lda, b, rsb, csb, beta, c, ldc);
}

/* to[i * ldt + q] = from[q * ld + i]: transposes `steps` columns of a few rows. */
static inline void avx2_f32_direct_330b_turn_narrow(const float *from, size_t ld, float *to, size_t ldt,
                                                    size_t steps, size_t rows) {
    const size_t lanes = 8;
    for (; steps > lanes; steps -= lanes) {
        tensorop_transpose_f32(to, ldt, from, ld, lanes, rows);
        from += lanes * ld;
        to += lanes;
    }
    tensorop_transpose_f32(to, ldt, from, ld, steps, rows);
}

/* Few rows: operands whose k is not contiguous are transposed on the stack, piece by piece, so that vectors
 * run along k. */
static __attribute__((noinline)) void avx2_f32_direct_330b_narrow(size_t m, size_t n, size_t k, float alpha,
                                                                  const float *a, size_t rsa, size_t csa,
                                                                  const float *b, size_t rsb, size_t csb,
                                                                  float beta, float *c, size_t ldc) {
    _Alignas(64) float panel[2048];
    const size_t lanes = 8, rows = csa == 1 ? 0 : m, columns = rsb == 1 ? 0 : n;
    const size_t most = 2048 / (rows + columns) / lanes * lanes;
    for (size_t p = 0; p < k; p += most) {
        const size_t depth = k - p < most ? k - p : most, apart = (depth + lanes - 1) / lanes * lanes;
        float *const second = panel + rows * apart;
        if (rows)
            avx2_f32_direct_330b_turn_narrow(a + p * csa, csa, panel, apart, depth, rows);
        if (columns)
            avx2_f32_direct_330b_turn_narrow(b + p * rsb, rsb, second, apart, depth, columns);
        avx2_f32_direct_330b_along_k(m, n, depth, alpha, rows ? panel : a + p, rows ? apart : rsa,
                                     columns ? second : b + p, 1, columns ? apart : csb, p ? 1 : beta, c,
                                     ldc);
    }
}

/* Few rows, B's rows contiguous: the columns of the transposed product are computed on the stack, piece by
 * piece. */
static __attribute__((noinline)) void avx2_f32_direct_330b_across(size_t m, size_t n, size_t k, float alpha,
                                                                  const float *a, size_t rsa, size_t csa,
                                                                  const float *b, size_t rsb, float beta,
                                                                  float *c, size_t ldc) {
    _Alignas(64) float tile[2048];
    const size_t lanes = 8, most = 2048 / m / lanes * lanes;
    for (size_t j = 0; j < n; j += most) {
        const size_t width = n - j < most ? n - j : most;
        float *part = c + j * ldc;
        if (beta != 0)
            for (size_t q = 0; q < width; ++q)
                for (size_t i = 0; i < m; ++i)
                    tile[q + i * width] = part[i + q * ldc];
        avx2_f32_direct_330b_by_columns(width, m, k, alpha, b + j, rsb, a, csa, rsa, beta, tile, width);
        avx2_f32_direct_330b_turn_some(tile, width, part, ldc, m, width);
    }
}

/* C = beta * C; at beta = 0 C is not read. */
static __attribute__((noinline)) void avx2_f32_direct_330b_scale(size_t m, size_t n, float beta, float *c,
                                                                 size_t ldc) {
    for (size_t j = 0; j < n; ++j)
        for (size_t i = 0; i < m; ++i)
            c[i + j * ldc] = beta == 0 ? 0 : beta * c[i + j * ldc];
}

/* One column of C from one column of A and a scalar: C = scale * A + beta * C. */
static __attribute__((noinline)) void avx2_f32_direct_330b_scaled(size_t m, float scale, const float *a,
                                                                  float beta, float *c) {
    const size_t lanes = 8;
    const __m256i full = _mm256_set1_epi32(-1);
    size_t i = 0;
    (void)full;
    if (beta == 0) { /* C is not read */
        for (; i + lanes <= m; i += lanes)
            _mm256_storeu_ps(c + i, _mm256_mul_ps(_mm256_loadu_ps(a + i), _mm256_set1_ps(scale)));
        if (i < m) {
            const __m256i tail = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(m - i)),
                                                    _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
            tensorop_store_tail_f32(c + i, tail,
                                    _mm256_mul_ps(_mm256_maskload_ps(a + i, tail), _mm256_set1_ps(scale)));
        }
        return;
    }
    for (; i + lanes <= m; i += lanes)
        _mm256_storeu_ps(c + i,
                         _mm256_fmadd_ps(_mm256_loadu_ps(c + i), _mm256_set1_ps(beta),
                                         _mm256_mul_ps(_mm256_loadu_ps(a + i), _mm256_set1_ps(scale))));
    if (i < m) {
        const __m256i tail =
            _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(m - i)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
        tensorop_store_tail_f32(
            c + i, tail,
            _mm256_fmadd_ps(_mm256_maskload_ps(c + i, tail), _mm256_set1_ps(beta),
                            _mm256_mul_ps(_mm256_maskload_ps(a + i, tail), _mm256_set1_ps(scale))));
    }
}

/* C = alpha * A * B + beta * C. A is m x k, B is k x n; each has two strides, one of which is 1. C is
 * column-major. */
static inline __attribute__((always_inline)) void
avx2_f32_direct_330b_run(size_t m, size_t n, size_t k, float alpha, const float *a, size_t rsa, size_t csa,
                         const float *b, size_t rsb, size_t csb, float beta, float *c, size_t ldc) {
    if (k == 0 || alpha == 0)
        avx2_f32_direct_330b_scale(m, n, beta, c, ldc);
    else
        switch (avx2_f32_direct_330b_way(8, m, n, k, rsa, csa, rsb, ldc)) {
        case avx2_f32_direct_330b_SCALED:
            avx2_f32_direct_330b_scaled(m, alpha * *b, a, beta, c);
            break;
        case avx2_f32_direct_330b_AS_COLUMN:
            avx2_f32_direct_330b_turned(n, 1, k, alpha, b, csb, a, csa, 1, beta, c, n);
            break;
        case avx2_f32_direct_330b_ALONG_K:
            avx2_f32_direct_330b_along_k(m, n, k, alpha, a, rsa, b, rsb, csb, beta, c, ldc);
            break;
        case avx2_f32_direct_330b_NARROW:
            avx2_f32_direct_330b_narrow(m, n, k, alpha, a, rsa, csa, b, rsb, csb, beta, c, ldc);
            break;
        case avx2_f32_direct_330b_ACROSS:
            avx2_f32_direct_330b_across(m, n, k, alpha, a, rsa, csa, b, rsb, beta, c, ldc);
            break;
        case avx2_f32_direct_330b_BY_COLUMNS:
            avx2_f32_direct_330b_by_columns(m, n, k, alpha, a, csa, b, rsb, csb, beta, c, ldc);
            break;
        default:
            avx2_f32_direct_330b_turned(m, n, k, alpha, a, rsa, b, rsb, csb, beta, c, ldc);
        }
}

/* the caller provides the workspace: a candidate allocates nothing */
void tensorop_candidate_0(const struct tensorop_call *call) {
    size_t m = (size_t)call->dim[DIM_m], n = (size_t)call->dim[DIM_n], k = (size_t)call->dim[DIM_k];
    const float *a = call->buffer[BUFFER_A], *b = call->buffer[BUFFER_B];
    size_t lda = (size_t)call->ld[LD_A], ldb = (size_t)call->ld[LD_B], ldc = (size_t)call->ld[LD_C];
    int row_major = call->flag[FLAG_layout] == LAYOUT_row, ta = (int)call->flag[FLAG_ta],
        tb = (int)call->flag[FLAG_tb];
    if (row_major) { /* C^T = op(B)^T op(A)^T, and a row-major matrix is its column-major transpose */
        const float *x = a;
        size_t t = m, ld = lda;
        int trans = ta;
        a = b, b = x;
        m = n, n = t;
        lda = ldb, ldb = ld;
        ta = tb, tb = trans;
    }
    size_t rsa = ta ? lda : 1, csa = ta ? 1 : lda, rsb = tb ? ldb : 1, csb = tb ? 1 : ldb;
    if (m == 1 && ldc == 1 && csb == 1) { /* one row, computed as a column, so that vectors run along it */
        const float *left = b;
        const size_t across = rsa, along = csa;
        b = a, a = left;
        m = n, n = 1;
        rsa = 1, csa = rsb, rsb = along, csb = across;
    }
    avx2_f32_direct_330b_run(m, n, k, (float)call->scalar[SCALAR_alpha], a, rsa, csa, b, rsb, csb,
                             (float)call->scalar[SCALAR_beta], call->buffer[BUFFER_C], ldc);
}

#ifdef TENSOROP_TILES /* a tile alone, with the coefficients and strides of the call; it would change how    \
                         others are inlined */
void tensorop_candidate_2(const struct tensorop_call *call) {
    const size_t m = (size_t)call->dim[DIM_m], n = (size_t)call->dim[DIM_n], k = (size_t)call->dim[DIM_k];
    const size_t lda = (size_t)call->ld[LD_A], ldb = (size_t)call->ld[LD_B];
    const size_t rsb = call->flag[FLAG_tb] ? ldb : 1, csb = call->flag[FLAG_tb] ? 1 : ldb;
    const float alpha = (float)call->scalar[SCALAR_alpha], beta = (float)call->scalar[SCALAR_beta];
    (!call->flag[FLAG_ta] ? avx2_f32_direct_330b_down
     : m == 1             ? avx2_f32_direct_330b_dots_1
                          : avx2_f32_direct_330b_dots_2)(m, n, k, alpha, call->buffer[BUFFER_A], lda,
                                             call->buffer[BUFFER_B], rsb, csb, beta, call->buffer[BUFFER_C],
                                             (size_t)call->ld[LD_C]);
}
#endif
