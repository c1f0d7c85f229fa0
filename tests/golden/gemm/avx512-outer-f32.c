/* avx512_f32_outer_682d: micro-kernel 'outer' at ahead=0 c_ahead=0 fetch=0 ku=2 late=0 lead=0 mr_vectors=1
 * nr=2 (avx512, f32) rank-1 updates of an mr_vectors x nr register tile: vectors along m, one scalar of B per
 * column; to hide latency, A is loaded `ahead` k steps and B `lead` columns before their use; A's loads begin
 * after `late` columns, when the last readers of their registers are done; A is prefetched into L1 `fetch` k
 * steps before its loads; with `c_ahead`, columns of C are prefetched while the tile is computed */
static inline __attribute__((always_inline)) void
avx512_f32_outer_682d_tile_1x1_tail(size_t m, size_t k, const float *restrict a, size_t lda,
                                    const float *restrict b, size_t rsb, size_t csb, float alpha, float beta,
                                    float *restrict c, size_t ldc) {
    const size_t lanes = 16;
    const __mmask16 full = (__mmask16)-1;
    const __mmask16 tail = (__mmask16)_bzhi_u32(~0u, (unsigned)(m - 0 * lanes));
    (void)m, (void)full, (void)lanes, (void)rsb;
    __m512 c0_0 = _mm512_setzero_ps();
    for (; k >= 2; k -= 2) {
        {
            const __m512 a0 = _mm512_maskz_loadu_ps(tail, a + 0 * lda + 0 * lanes);

            const float b0 = b[0 * rsb + 0 * csb];
            c0_0 = _mm512_fmadd_ps(a0, _mm512_set1_ps(b0), c0_0);
        }
        {
            const __m512 a0 = _mm512_maskz_loadu_ps(tail, a + 1 * lda + 0 * lanes);

            const float b0 = b[1 * rsb + 0 * csb];
            c0_0 = _mm512_fmadd_ps(a0, _mm512_set1_ps(b0), c0_0);
        }
        a += 2 * lda;
        b += 2 * rsb;
    }
    for (; k; --k) {
        const __m512 a0 = _mm512_maskz_loadu_ps(tail, a + 0 * lda + 0 * lanes);
        const float b0 = b[0 * rsb + 0 * csb];
        c0_0 = _mm512_fmadd_ps(a0, _mm512_set1_ps(b0), c0_0);
        a += lda;
        b += rsb;
    }
    /* C = alpha * tile + beta * C; at beta = 0 C is not read */
    if (beta == 0) {
        _mm512_mask_storeu_ps(c + 0 * ldc + 0 * lanes, tail, _mm512_mul_ps(c0_0, _mm512_set1_ps(alpha)));
    } else if (beta == 1) {
        __m512 old0_0 = _mm512_maskz_loadu_ps(tail, c + 0 * ldc + 0 * lanes);
        _mm512_mask_storeu_ps(c + 0 * ldc + 0 * lanes, tail,
                              _mm512_fmadd_ps(c0_0, _mm512_set1_ps(alpha), old0_0));

    } else {
        __m512 old0_0 = _mm512_maskz_loadu_ps(tail, c + 0 * ldc + 0 * lanes);
        _mm512_mask_storeu_ps(
            c + 0 * ldc + 0 * lanes, tail,
            _mm512_fmadd_ps(old0_0, _mm512_set1_ps(beta), _mm512_mul_ps(c0_0, _mm512_set1_ps(alpha))));
    }
}

static inline __attribute__((always_inline)) void
avx512_f32_outer_682d_tile_1x2_tail(size_t m, size_t k, const float *restrict a, size_t lda,
                                    const float *restrict b, size_t rsb, size_t csb, float alpha, float beta,
                                    float *restrict c, size_t ldc) {
    const size_t lanes = 16;
    const __mmask16 full = (__mmask16)-1;
    const __mmask16 tail = (__mmask16)_bzhi_u32(~0u, (unsigned)(m - 0 * lanes));
    (void)m, (void)full, (void)lanes, (void)rsb;
    __m512 c0_0 = _mm512_setzero_ps();
    __m512 c0_1 = _mm512_setzero_ps();
    for (; k >= 2; k -= 2) {
        {
            const __m512 a0 = _mm512_maskz_loadu_ps(tail, a + 0 * lda + 0 * lanes);

            const float b0 = b[0 * rsb + 0 * csb];
            c0_0 = _mm512_fmadd_ps(a0, _mm512_set1_ps(b0), c0_0);
            const float b1 = b[0 * rsb + 1 * csb];
            c0_1 = _mm512_fmadd_ps(a0, _mm512_set1_ps(b1), c0_1);
        }
        {
            const __m512 a0 = _mm512_maskz_loadu_ps(tail, a + 1 * lda + 0 * lanes);

            const float b0 = b[1 * rsb + 0 * csb];
            c0_0 = _mm512_fmadd_ps(a0, _mm512_set1_ps(b0), c0_0);
            const float b1 = b[1 * rsb + 1 * csb];
            c0_1 = _mm512_fmadd_ps(a0, _mm512_set1_ps(b1), c0_1);
        }
        a += 2 * lda;
        b += 2 * rsb;
    }
    for (; k; --k) {
        const __m512 a0 = _mm512_maskz_loadu_ps(tail, a + 0 * lda + 0 * lanes);
        const float b0 = b[0 * rsb + 0 * csb];
        c0_0 = _mm512_fmadd_ps(a0, _mm512_set1_ps(b0), c0_0);
        const float b1 = b[0 * rsb + 1 * csb];
        c0_1 = _mm512_fmadd_ps(a0, _mm512_set1_ps(b1), c0_1);
        a += lda;
        b += rsb;
    }
    /* C = alpha * tile + beta * C; at beta = 0 C is not read */
    if (beta == 0) {
        _mm512_mask_storeu_ps(c + 0 * ldc + 0 * lanes, tail, _mm512_mul_ps(c0_0, _mm512_set1_ps(alpha)));
        _mm512_mask_storeu_ps(c + 1 * ldc + 0 * lanes, tail, _mm512_mul_ps(c0_1, _mm512_set1_ps(alpha)));
    } else if (beta == 1) {
        __m512 old0_0 = _mm512_maskz_loadu_ps(tail, c + 0 * ldc + 0 * lanes);
        __m512 old1_0 = _mm512_maskz_loadu_ps(tail, c + 1 * ldc + 0 * lanes);
        _mm512_mask_storeu_ps(c + 0 * ldc + 0 * lanes, tail,
                              _mm512_fmadd_ps(c0_0, _mm512_set1_ps(alpha), old0_0));
        _mm512_mask_storeu_ps(c + 1 * ldc + 0 * lanes, tail,
                              _mm512_fmadd_ps(c0_1, _mm512_set1_ps(alpha), old1_0));

    } else {
        __m512 old0_0 = _mm512_maskz_loadu_ps(tail, c + 0 * ldc + 0 * lanes);
        __m512 old1_0 = _mm512_maskz_loadu_ps(tail, c + 1 * ldc + 0 * lanes);
        _mm512_mask_storeu_ps(
            c + 0 * ldc + 0 * lanes, tail,
            _mm512_fmadd_ps(old0_0, _mm512_set1_ps(beta), _mm512_mul_ps(c0_0, _mm512_set1_ps(alpha))));
        _mm512_mask_storeu_ps(
            c + 1 * ldc + 0 * lanes, tail,
            _mm512_fmadd_ps(old1_0, _mm512_set1_ps(beta), _mm512_mul_ps(c0_1, _mm512_set1_ps(alpha))));
    }
}

static inline __attribute__((always_inline)) void
avx512_f32_outer_682d_tile_1x2(size_t m, size_t k, const float *restrict a, size_t lda,
                               const float *restrict b, size_t rsb, size_t csb, float alpha, float beta,
                               float *restrict c, size_t ldc) {
    const size_t lanes = 16;
    const __mmask16 full = (__mmask16)-1;
    (void)m, (void)full, (void)lanes, (void)rsb;
    __m512 c0_0 = _mm512_setzero_ps();
    __m512 c0_1 = _mm512_setzero_ps();
    for (; k >= 2; k -= 2) {
        {
            const __m512 a0 = _mm512_loadu_ps(a + 0 * lda + 0 * lanes);

            const float b0 = b[0 * rsb + 0 * csb];
            c0_0 = _mm512_fmadd_ps(a0, _mm512_set1_ps(b0), c0_0);
            const float b1 = b[0 * rsb + 1 * csb];
            c0_1 = _mm512_fmadd_ps(a0, _mm512_set1_ps(b1), c0_1);
        }
        {
            const __m512 a0 = _mm512_loadu_ps(a + 1 * lda + 0 * lanes);

            const float b0 = b[1 * rsb + 0 * csb];
            c0_0 = _mm512_fmadd_ps(a0, _mm512_set1_ps(b0), c0_0);
            const float b1 = b[1 * rsb + 1 * csb];
            c0_1 = _mm512_fmadd_ps(a0, _mm512_set1_ps(b1), c0_1);
        }
        a += 2 * lda;
        b += 2 * rsb;
    }
    for (; k; --k) {
        const __m512 a0 = _mm512_loadu_ps(a + 0 * lda + 0 * lanes);
        const float b0 = b[0 * rsb + 0 * csb];
        c0_0 = _mm512_fmadd_ps(a0, _mm512_set1_ps(b0), c0_0);
        const float b1 = b[0 * rsb + 1 * csb];
        c0_1 = _mm512_fmadd_ps(a0, _mm512_set1_ps(b1), c0_1);
        a += lda;
        b += rsb;
    }
    /* C = alpha * tile + beta * C; at beta = 0 C is not read */
    if (beta == 0) {
        _mm512_storeu_ps(c + 0 * ldc + 0 * lanes, _mm512_mul_ps(c0_0, _mm512_set1_ps(alpha)));
        _mm512_storeu_ps(c + 1 * ldc + 0 * lanes, _mm512_mul_ps(c0_1, _mm512_set1_ps(alpha)));
    } else if (beta == 1) {
        __m512 old0_0 = _mm512_loadu_ps(c + 0 * ldc + 0 * lanes);
        __m512 old1_0 = _mm512_loadu_ps(c + 1 * ldc + 0 * lanes);
        _mm512_storeu_ps(c + 0 * ldc + 0 * lanes, _mm512_fmadd_ps(c0_0, _mm512_set1_ps(alpha), old0_0));
        _mm512_storeu_ps(c + 1 * ldc + 0 * lanes, _mm512_fmadd_ps(c0_1, _mm512_set1_ps(alpha), old1_0));

    } else {
        __m512 old0_0 = _mm512_loadu_ps(c + 0 * ldc + 0 * lanes);
        __m512 old1_0 = _mm512_loadu_ps(c + 1 * ldc + 0 * lanes);
        _mm512_storeu_ps(
            c + 0 * ldc + 0 * lanes,
            _mm512_fmadd_ps(old0_0, _mm512_set1_ps(beta), _mm512_mul_ps(c0_0, _mm512_set1_ps(alpha))));
        _mm512_storeu_ps(
            c + 1 * ldc + 0 * lanes,
            _mm512_fmadd_ps(old1_0, _mm512_set1_ps(beta), _mm512_mul_ps(c0_1, _mm512_set1_ps(alpha))));
    }
}

#define avx512_f32_outer_682d_ARGS                                                                           \
    size_t m, size_t k, const float *a, size_t lda, const float *b, size_t sb, float alpha, float beta,      \
        float *c, size_t ldc

static void avx512_f32_outer_682d_along_k_1x1(avx512_f32_outer_682d_ARGS) {
    (void)sb, (void)lda;
    avx512_f32_outer_682d_tile_1x1_tail(m, k, a, lda, b, 1, sb, alpha, beta, c, ldc);
}
static void avx512_f32_outer_682d_along_k_1x2(avx512_f32_outer_682d_ARGS) {
    (void)sb, (void)lda;
    if (m == 1 * (16)) {
        avx512_f32_outer_682d_tile_1x2(m, k, a, lda, b, 1, sb, alpha, beta, c, ldc);
        return;
    }
    avx512_f32_outer_682d_tile_1x2_tail(m, k, a, lda, b, 1, sb, alpha, beta, c, ldc);
}

static void (*const avx512_f32_outer_682d_along_k[2][1])(avx512_f32_outer_682d_ARGS) = {
    {avx512_f32_outer_682d_along_k_1x1},
    {avx512_f32_outer_682d_along_k_1x2},
};
static void avx512_f32_outer_682d_along_n_1x1(avx512_f32_outer_682d_ARGS) {
    (void)sb, (void)lda;
    avx512_f32_outer_682d_tile_1x1_tail(m, k, a, lda, b, sb, 1, alpha, beta, c, ldc);
}
static void avx512_f32_outer_682d_along_n_1x2(avx512_f32_outer_682d_ARGS) {
    (void)sb, (void)lda;
    if (m == 1 * (16)) {
        avx512_f32_outer_682d_tile_1x2(m, k, a, lda, b, sb, 1, alpha, beta, c, ldc);
        return;
    }
    avx512_f32_outer_682d_tile_1x2_tail(m, k, a, lda, b, sb, 1, alpha, beta, c, ldc);
}

static void (*const avx512_f32_outer_682d_along_n[2][1])(avx512_f32_outer_682d_ARGS) = {
    {avx512_f32_outer_682d_along_n_1x1},
    {avx512_f32_outer_682d_along_n_1x2},
};
