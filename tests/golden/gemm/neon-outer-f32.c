/* neon_f32_outer_ab5e: micro-kernel 'outer' at ahead=1 c_ahead=0 fetch=6 ku=2 late=0 lead=2 mr_vectors=1 nr=2
 * (neon, f32) rank-1 updates of an mr_vectors x nr register tile: vectors along m, one scalar of B per
 * column; to hide latency, A is loaded `ahead` k steps and B `lead` columns before their use; A's loads begin
 * after `late` columns, when the last readers of their registers are done; A is prefetched into L1 `fetch` k
 * steps before its loads; with `c_ahead`, columns of C are prefetched while the tile is computed */
static inline __attribute__((always_inline)) void
neon_f32_outer_ab5e_tile_1x1_tail(size_t m, size_t k, const float *restrict a, size_t lda,
                                  const float *restrict b, size_t rsb, size_t csb, float alpha, float beta,
                                  float *restrict c, size_t ldc) {
    const size_t lanes = 4;
    const size_t full = lanes;
    const size_t tail = ((size_t)(m - 0 * lanes));
    (void)m, (void)full, (void)lanes, (void)rsb;
    float32x4_t c0_0 = vdupq_n_f32(0);
    float32x4_t a0_0 = vld1q_f32(a + 0 * lda + 0 * lanes);
    float32x4_t a1_0;
    float b0;
    for (; k > 2; k -= 2) {
        a1_0 = vld1q_f32(a + 1 * lda + 0 * lanes);
        __builtin_prefetch(a + 7 * lda + 0 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b0 = b[0 * rsb + 0 * csb];
        if (rsb == 1) { /* each column is a separate stream */
            __builtin_prefetch(b + 0 * rsb + 0 * csb + 40);
        }
        c0_0 = vfmaq_n_f32(c0_0, a0_0, b0);
        a0_0 = vld1q_f32(a + 2 * lda + 0 * lanes);
        __builtin_prefetch(a + 8 * lda + 0 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b0 = b[1 * rsb + 0 * csb];
        c0_0 = vfmaq_n_f32(c0_0, a1_0, b0);
        a += 2 * lda;
        b += 2 * rsb;
    }
    b0 = b[0 * rsb + 0 * csb];
    c0_0 = vfmaq_n_f32(c0_0, a0_0, b0);
    a += lda;
    b += rsb;
    --k;
    for (; k; --k) {
        const float32x4_t a0 = vld1q_f32(a + 0 * lda + 0 * lanes);
        const float b0 = b[0 * rsb + 0 * csb];
        c0_0 = vfmaq_n_f32(c0_0, a0, b0);
        a += lda;
        b += rsb;
    }
    /* C = alpha * tile + beta * C; at beta = 0 C is not read */
    if (beta == 0) {
        tensorop_store_tail_f32(c + 0 * ldc + 0 * lanes, vmulq_n_f32(c0_0, alpha), tail);
    } else if (beta == 1) {
        float32x4_t old0_0 = tensorop_load_tail_f32(c + 0 * ldc + 0 * lanes, tail);
        tensorop_store_tail_f32(c + 0 * ldc + 0 * lanes, vfmaq_n_f32(old0_0, c0_0, alpha), tail);

    } else {
        float32x4_t old0_0 = tensorop_load_tail_f32(c + 0 * ldc + 0 * lanes, tail);
        tensorop_store_tail_f32(c + 0 * ldc + 0 * lanes, vfmaq_n_f32(vmulq_n_f32(c0_0, alpha), old0_0, beta),
                                tail);
    }
}

static inline __attribute__((always_inline)) void
neon_f32_outer_ab5e_tile_1x2_tail(size_t m, size_t k, const float *restrict a, size_t lda,
                                  const float *restrict b, size_t rsb, size_t csb, float alpha, float beta,
                                  float *restrict c, size_t ldc) {
    const size_t lanes = 4;
    const size_t full = lanes;
    const size_t tail = ((size_t)(m - 0 * lanes));
    (void)m, (void)full, (void)lanes, (void)rsb;
    float32x4_t c0_0 = vdupq_n_f32(0);
    float32x4_t c0_1 = vdupq_n_f32(0);
    float32x4_t a0_0 = vld1q_f32(a + 0 * lda + 0 * lanes);
    float32x4_t a1_0;
    float b0 = b[0 * rsb + 0 * csb];
    float b1;
    for (; k > 2; k -= 2) {
        a1_0 = vld1q_f32(a + 1 * lda + 0 * lanes);
        __builtin_prefetch(a + 7 * lda + 0 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b1 = b[0 * rsb + 1 * csb];
        if (rsb == 1) { /* each column is a separate stream */
            __builtin_prefetch(b + 0 * rsb + 0 * csb + 40);
        }
        c0_0 = vfmaq_n_f32(c0_0, a0_0, b0);
        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b0 = b[1 * rsb + 0 * csb];
        c0_1 = vfmaq_n_f32(c0_1, a0_0, b1);
        a0_0 = vld1q_f32(a + 2 * lda + 0 * lanes);
        __builtin_prefetch(a + 8 * lda + 0 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b1 = b[1 * rsb + 1 * csb];
        c0_0 = vfmaq_n_f32(c0_0, a1_0, b0);
        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b += 2 * rsb;
        b0 = b[0 * rsb + 0 * csb];
        if (rsb == 1) { /* each column is a separate stream */
            __builtin_prefetch(b + 0 * rsb + 1 * csb + 40);
        }
        c0_1 = vfmaq_n_f32(c0_1, a1_0, b1);
        a += 2 * lda;
    }
    b1 = b[0 * rsb + 1 * csb];
    c0_0 = vfmaq_n_f32(c0_0, a0_0, b0);
    c0_1 = vfmaq_n_f32(c0_1, a0_0, b1);
    a += lda;
    b += rsb;
    --k;
    for (; k; --k) {
        const float32x4_t a0 = vld1q_f32(a + 0 * lda + 0 * lanes);
        const float b0 = b[0 * rsb + 0 * csb];
        c0_0 = vfmaq_n_f32(c0_0, a0, b0);
        const float b1 = b[0 * rsb + 1 * csb];
        c0_1 = vfmaq_n_f32(c0_1, a0, b1);
        a += lda;
        b += rsb;
    }
    /* C = alpha * tile + beta * C; at beta = 0 C is not read */
    if (beta == 0) {
        tensorop_store_tail_f32(c + 0 * ldc + 0 * lanes, vmulq_n_f32(c0_0, alpha), tail);
        tensorop_store_tail_f32(c + 1 * ldc + 0 * lanes, vmulq_n_f32(c0_1, alpha), tail);
    } else if (beta == 1) {
        float32x4_t old0_0 = tensorop_load_tail_f32(c + 0 * ldc + 0 * lanes, tail);
        float32x4_t old1_0 = tensorop_load_tail_f32(c + 1 * ldc + 0 * lanes, tail);
        tensorop_store_tail_f32(c + 0 * ldc + 0 * lanes, vfmaq_n_f32(old0_0, c0_0, alpha), tail);
        tensorop_store_tail_f32(c + 1 * ldc + 0 * lanes, vfmaq_n_f32(old1_0, c0_1, alpha), tail);

    } else {
        float32x4_t old0_0 = tensorop_load_tail_f32(c + 0 * ldc + 0 * lanes, tail);
        float32x4_t old1_0 = tensorop_load_tail_f32(c + 1 * ldc + 0 * lanes, tail);
        tensorop_store_tail_f32(c + 0 * ldc + 0 * lanes, vfmaq_n_f32(vmulq_n_f32(c0_0, alpha), old0_0, beta),
                                tail);
        tensorop_store_tail_f32(c + 1 * ldc + 0 * lanes, vfmaq_n_f32(vmulq_n_f32(c0_1, alpha), old1_0, beta),
                                tail);
    }
}

static inline __attribute__((always_inline)) void
neon_f32_outer_ab5e_tile_1x2(size_t m, size_t k, const float *restrict a, size_t lda, const float *restrict b,
                             size_t rsb, size_t csb, float alpha, float beta, float *restrict c, size_t ldc) {
    const size_t lanes = 4;
    const size_t full = lanes;
    (void)m, (void)full, (void)lanes, (void)rsb;
    float32x4_t c0_0 = vdupq_n_f32(0);
    float32x4_t c0_1 = vdupq_n_f32(0);
    float32x4_t a0_0 = vld1q_f32(a + 0 * lda + 0 * lanes);
    float32x4_t a1_0;
    float b0 = b[0 * rsb + 0 * csb];
    float b1;
    for (; k > 2; k -= 2) {
        a1_0 = vld1q_f32(a + 1 * lda + 0 * lanes);
        __builtin_prefetch(a + 7 * lda + 0 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b1 = b[0 * rsb + 1 * csb];
        if (rsb == 1) { /* each column is a separate stream */
            __builtin_prefetch(b + 0 * rsb + 0 * csb + 40);
        }
        c0_0 = vfmaq_n_f32(c0_0, a0_0, b0);
        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b0 = b[1 * rsb + 0 * csb];
        c0_1 = vfmaq_n_f32(c0_1, a0_0, b1);
        a0_0 = vld1q_f32(a + 2 * lda + 0 * lanes);
        __builtin_prefetch(a + 8 * lda + 0 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b1 = b[1 * rsb + 1 * csb];
        c0_0 = vfmaq_n_f32(c0_0, a1_0, b0);
        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b += 2 * rsb;
        b0 = b[0 * rsb + 0 * csb];
        if (rsb == 1) { /* each column is a separate stream */
            __builtin_prefetch(b + 0 * rsb + 1 * csb + 40);
        }
        c0_1 = vfmaq_n_f32(c0_1, a1_0, b1);
        a += 2 * lda;
    }
    b1 = b[0 * rsb + 1 * csb];
    c0_0 = vfmaq_n_f32(c0_0, a0_0, b0);
    c0_1 = vfmaq_n_f32(c0_1, a0_0, b1);
    a += lda;
    b += rsb;
    --k;
    for (; k; --k) {
        const float32x4_t a0 = vld1q_f32(a + 0 * lda + 0 * lanes);
        const float b0 = b[0 * rsb + 0 * csb];
        c0_0 = vfmaq_n_f32(c0_0, a0, b0);
        const float b1 = b[0 * rsb + 1 * csb];
        c0_1 = vfmaq_n_f32(c0_1, a0, b1);
        a += lda;
        b += rsb;
    }
    /* C = alpha * tile + beta * C; at beta = 0 C is not read */
    if (beta == 0) {
        vst1q_f32(c + 0 * ldc + 0 * lanes, vmulq_n_f32(c0_0, alpha));
        vst1q_f32(c + 1 * ldc + 0 * lanes, vmulq_n_f32(c0_1, alpha));
    } else if (beta == 1) {
        float32x4_t old0_0 = vld1q_f32(c + 0 * ldc + 0 * lanes);
        float32x4_t old1_0 = vld1q_f32(c + 1 * ldc + 0 * lanes);
        vst1q_f32(c + 0 * ldc + 0 * lanes, vfmaq_n_f32(old0_0, c0_0, alpha));
        vst1q_f32(c + 1 * ldc + 0 * lanes, vfmaq_n_f32(old1_0, c0_1, alpha));

    } else {
        float32x4_t old0_0 = vld1q_f32(c + 0 * ldc + 0 * lanes);
        float32x4_t old1_0 = vld1q_f32(c + 1 * ldc + 0 * lanes);
        vst1q_f32(c + 0 * ldc + 0 * lanes, vfmaq_n_f32(vmulq_n_f32(c0_0, alpha), old0_0, beta));
        vst1q_f32(c + 1 * ldc + 0 * lanes, vfmaq_n_f32(vmulq_n_f32(c0_1, alpha), old1_0, beta));
    }
}

#define neon_f32_outer_ab5e_ARGS                                                                             \
    size_t m, size_t k, const float *a, size_t lda, const float *b, size_t sb, float alpha, float beta,      \
        float *c, size_t ldc

static void neon_f32_outer_ab5e_packed_1x1(neon_f32_outer_ab5e_ARGS) {
    (void)sb, (void)lda;
    neon_f32_outer_ab5e_tile_1x1_tail(m, k, a, lda, b, 1, 1, alpha, beta, c, ldc);
}
static void neon_f32_outer_ab5e_packed_1x2(neon_f32_outer_ab5e_ARGS) {
    (void)sb, (void)lda;
    if (m == 1 * (4)) {
        neon_f32_outer_ab5e_tile_1x2(m, k, a, lda, b, 2, 1, alpha, beta, c, ldc);
        return;
    }
    neon_f32_outer_ab5e_tile_1x2_tail(m, k, a, lda, b, 2, 1, alpha, beta, c, ldc);
}

static void (*const neon_f32_outer_ab5e_packed[2][1])(neon_f32_outer_ab5e_ARGS) = {
    {neon_f32_outer_ab5e_packed_1x1},
    {neon_f32_outer_ab5e_packed_1x2},
};
