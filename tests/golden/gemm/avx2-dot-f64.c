/* avx2_f64_dot_74e2: micro-kernel 'dot' at ahead=0 fetch=4 ku=2 late=0 lead=0 mr_vectors=2 nr=1 (avx2, f64)
 * mr_vectors x nr inner products: vectors run along k in rows of A and columns of B; each accumulator holds
 * partial sums of one element of C and is reduced at the end; nothing is broadcast; no lane is idle even with
 * few rows or columns; B is loaded `lead` columns before its use, or (with `ahead`) A and B are loaded one
 * step of k early, between FMAs, into registers last read `late` FMAs before; rows and columns are prefetched
 * `fetch` cache lines ahead; with `straight`, a matrix that meets only a few rows or columns is read from end
 * to end */
static inline __attribute__((always_inline)) void
avx2_f64_dot_74e2_tile_1x1(size_t m, size_t k, const double *restrict a, size_t lda, const double *restrict b,
                           size_t rsb, size_t csb, double alpha, double beta, double *restrict c,
                           size_t ldc) {
    const size_t lanes = 4;
    const __m256i full = _mm256_set1_epi64x(-1);
    (void)m, (void)full, (void)lanes, (void)rsb;
    __m256d c0_0 = _mm256_setzero_pd();
    __m256d s1 = _mm256_setzero_pd();
    __m256d s2 = _mm256_setzero_pd();
    __m256d s3 = _mm256_setzero_pd();
    size_t p = 0;
    for (; p + 4 * lanes <= k; p += 4 * lanes) {
        c0_0 = _mm256_fmadd_pd(_mm256_loadu_pd(a + p + 0 * lanes), _mm256_loadu_pd(b + p + 0 * lanes), c0_0);
        s1 = _mm256_fmadd_pd(_mm256_loadu_pd(a + p + 1 * lanes), _mm256_loadu_pd(b + p + 1 * lanes), s1);
        s2 = _mm256_fmadd_pd(_mm256_loadu_pd(a + p + 2 * lanes), _mm256_loadu_pd(b + p + 2 * lanes), s2);
        s3 = _mm256_fmadd_pd(_mm256_loadu_pd(a + p + 3 * lanes), _mm256_loadu_pd(b + p + 3 * lanes), s3);
    }
    for (; p + 2 * lanes <= k; p += 2 * lanes) {
        {
            const __m256d a0 = _mm256_loadu_pd(a + 0 * lda + p + 0 * lanes);
            _mm_prefetch((const char *)(a + 0 * lda + p + 0 * lanes + 32), _MM_HINT_T0);
            const __m256d b0 = _mm256_loadu_pd(b + 0 * csb + p + 0 * lanes);
            _mm_prefetch((const char *)(b + 0 * csb + p + 0 * lanes + 32), _MM_HINT_T0);
            c0_0 = _mm256_fmadd_pd(a0, b0, c0_0);
        }
        {
            const __m256d a0 = _mm256_loadu_pd(a + 0 * lda + p + 1 * lanes);
            _mm_prefetch((const char *)(a + 0 * lda + p + 1 * lanes + 32), _MM_HINT_T0);
            const __m256d b0 = _mm256_loadu_pd(b + 0 * csb + p + 1 * lanes);
            _mm_prefetch((const char *)(b + 0 * csb + p + 1 * lanes + 32), _MM_HINT_T0);
            c0_0 = _mm256_fmadd_pd(a0, b0, c0_0);
        }
    }
    for (; p + lanes <= k; p += lanes) {
        const __m256d a0 = _mm256_loadu_pd(a + 0 * lda + p);
        _mm_prefetch((const char *)(a + 0 * lda + p + 32), _MM_HINT_T0);
        const __m256d b0 = _mm256_loadu_pd(b + 0 * csb + p);
        _mm_prefetch((const char *)(b + 0 * csb + p + 32), _MM_HINT_T0);
        c0_0 = _mm256_fmadd_pd(a0, b0, c0_0);
    }
    if (p < k) {
        const __m256i tail =
            _mm256_cmpgt_epi64(_mm256_set1_epi64x((long long)(k - p)), _mm256_setr_epi64x(0, 1, 2, 3));
        const __m256d a0 = _mm256_maskload_pd(a + 0 * lda + p, tail);
        const __m256d b0 = _mm256_maskload_pd(b + 0 * csb + p, tail);
        c0_0 = _mm256_blendv_pd(c0_0, _mm256_fmadd_pd(a0, b0, c0_0), _mm256_castsi256_pd(tail));
    }
    {
        double *at = c + 0 + 0 * ldc;
        const double dot = alpha * (tensorop_sum_f64(c0_0) + tensorop_sum_f64(s1) + tensorop_sum_f64(s2) +
                                    tensorop_sum_f64(s3));
        if (beta == 0) /* C is not read */
            *at = dot;
        else
            *at = dot + beta * *at;
    }
}

static inline __attribute__((always_inline)) void
avx2_f64_dot_74e2_tile_2x1(size_t m, size_t k, const double *restrict a, size_t lda, const double *restrict b,
                           size_t rsb, size_t csb, double alpha, double beta, double *restrict c,
                           size_t ldc) {
    const size_t lanes = 4;
    const __m256i full = _mm256_set1_epi64x(-1);
    (void)m, (void)full, (void)lanes, (void)rsb;
    __m256d c0_0 = _mm256_setzero_pd();
    __m256d c1_0 = _mm256_setzero_pd();
    size_t p = 0;
    for (; p + 2 * lanes <= k; p += 2 * lanes) {
        {
            const __m256d a0 = _mm256_loadu_pd(a + 0 * lda + p + 0 * lanes);
            _mm_prefetch((const char *)(a + 0 * lda + p + 0 * lanes + 32), _MM_HINT_T0);
            const __m256d a1 = _mm256_loadu_pd(a + 1 * lda + p + 0 * lanes);
            _mm_prefetch((const char *)(a + 1 * lda + p + 0 * lanes + 32), _MM_HINT_T0);
            const __m256d b0 = _mm256_loadu_pd(b + 0 * csb + p + 0 * lanes);
            _mm_prefetch((const char *)(b + 0 * csb + p + 0 * lanes + 32), _MM_HINT_T0);
            c0_0 = _mm256_fmadd_pd(a0, b0, c0_0);
            c1_0 = _mm256_fmadd_pd(a1, b0, c1_0);
        }
        {
            const __m256d a0 = _mm256_loadu_pd(a + 0 * lda + p + 1 * lanes);
            _mm_prefetch((const char *)(a + 0 * lda + p + 1 * lanes + 32), _MM_HINT_T0);
            const __m256d a1 = _mm256_loadu_pd(a + 1 * lda + p + 1 * lanes);
            _mm_prefetch((const char *)(a + 1 * lda + p + 1 * lanes + 32), _MM_HINT_T0);
            const __m256d b0 = _mm256_loadu_pd(b + 0 * csb + p + 1 * lanes);
            _mm_prefetch((const char *)(b + 0 * csb + p + 1 * lanes + 32), _MM_HINT_T0);
            c0_0 = _mm256_fmadd_pd(a0, b0, c0_0);
            c1_0 = _mm256_fmadd_pd(a1, b0, c1_0);
        }
    }
    for (; p + lanes <= k; p += lanes) {
        const __m256d a0 = _mm256_loadu_pd(a + 0 * lda + p);
        _mm_prefetch((const char *)(a + 0 * lda + p + 32), _MM_HINT_T0);
        const __m256d a1 = _mm256_loadu_pd(a + 1 * lda + p);
        _mm_prefetch((const char *)(a + 1 * lda + p + 32), _MM_HINT_T0);
        const __m256d b0 = _mm256_loadu_pd(b + 0 * csb + p);
        _mm_prefetch((const char *)(b + 0 * csb + p + 32), _MM_HINT_T0);
        c0_0 = _mm256_fmadd_pd(a0, b0, c0_0);
        c1_0 = _mm256_fmadd_pd(a1, b0, c1_0);
    }
    if (p < k) {
        const __m256i tail =
            _mm256_cmpgt_epi64(_mm256_set1_epi64x((long long)(k - p)), _mm256_setr_epi64x(0, 1, 2, 3));
        const __m256d a0 = _mm256_maskload_pd(a + 0 * lda + p, tail);
        const __m256d a1 = _mm256_maskload_pd(a + 1 * lda + p, tail);
        const __m256d b0 = _mm256_maskload_pd(b + 0 * csb + p, tail);
        c0_0 = _mm256_blendv_pd(c0_0, _mm256_fmadd_pd(a0, b0, c0_0), _mm256_castsi256_pd(tail));
        c1_0 = _mm256_blendv_pd(c1_0, _mm256_fmadd_pd(a1, b0, c1_0), _mm256_castsi256_pd(tail));
    }
    {
        double *at = c + 0 + 0 * ldc;
        const double dot = alpha * tensorop_sum_f64(c0_0);
        if (beta == 0) /* C is not read */
            *at = dot;
        else
            *at = dot + beta * *at;
    }
    {
        double *at = c + 1 + 0 * ldc;
        const double dot = alpha * tensorop_sum_f64(c1_0);
        if (beta == 0) /* C is not read */
            *at = dot;
        else
            *at = dot + beta * *at;
    }
}

#define avx2_f64_dot_74e2_ARGS                                                                               \
    size_t m, size_t k, const double *a, size_t lda, const double *b, size_t sb, double alpha, double beta,  \
        double *c, size_t ldc

static void avx2_f64_dot_74e2_along_k_1x1(avx2_f64_dot_74e2_ARGS) {
    (void)sb, (void)lda;
    avx2_f64_dot_74e2_tile_1x1(m, k, a, lda, b, 1, sb, alpha, beta, c, ldc);
}
static void avx2_f64_dot_74e2_along_k_2x1(avx2_f64_dot_74e2_ARGS) {
    (void)sb, (void)lda;
    avx2_f64_dot_74e2_tile_2x1(m, k, a, lda, b, 1, sb, alpha, beta, c, ldc);
}

static void (*const avx2_f64_dot_74e2_along_k[1][2])(avx2_f64_dot_74e2_ARGS) = {
    {avx2_f64_dot_74e2_along_k_1x1, avx2_f64_dot_74e2_along_k_2x1},
};
