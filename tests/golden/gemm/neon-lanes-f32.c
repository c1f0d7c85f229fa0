/* neon_f32_lanes_0cde: micro-kernel 'lanes' at fetch=16 halves=1 ku=2 mr_vectors=1 nr=4 (neon, f32)
 * rank-1 updates of an mr_vectors x nr register tile: elements of B are loaded as vectors; FMAs take them
 * from lanes; the vectors of a k step are loaded during the step before, one after every third FMA; with
 * `halves`, for in-order cores, a vector is loaded in two parts: the low half by a vector load, the high half
 * through a general register beside FMAs, and both are joined beside the next vector's low half; packed A is
 * prefetched `fetch` k steps ahead, and so are columns of B that are read in place */
static inline __attribute__((always_inline)) void
neon_f32_lanes_0cde_tile_1x1_tail(size_t m, size_t k, const float *restrict a, size_t lda,
                                  const float *restrict b, size_t rsb, size_t csb, float alpha, float beta,
                                  float *restrict c, size_t ldc) {
    const size_t lanes = 4;
    const size_t full = lanes;
    const size_t tail = ((size_t)(m - 0 * lanes));
    (void)m, (void)full, (void)lanes, (void)rsb;
    float32x4_t c0_0 = vdupq_n_f32(0);
    __builtin_prefetch(a + 0);
    __builtin_prefetch(a + 16);
    __builtin_prefetch(a + 32);
    __builtin_prefetch(a + 48);
    (void)csb;
    float32x4_t a0_0, a1_0;
    uint64_t h0;

    float32x4_t b0_0, b1_0;
    a0_0 = tensorop_load_low_f32(a + 0 * lda + 0 * lanes);

    b0_0 = tensorop_load_low_f32(b + 0 * rsb + 0);

    h0 = tensorop_load_half_f32(a + 0 * lda + 0 * lanes + lanes / 2);

    a0_0 = tensorop_with_high_f32(a0_0, h0);

    size_t rounds = (k - 1) / 2;
    k -= rounds * 2;
    for (; rounds; --rounds) {

        a1_0 = tensorop_load_low_f32(a + 1 * lda + 0 * lanes);

        __builtin_prefetch(a + 16 * lda + 0 * lanes);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_0 = vfmaq_laneq_f32(c0_0, a0_0, b0_0, 0);
        h0 = tensorop_load_half_f32(a + 1 * lda + 0 * lanes + lanes / 2);

        a1_0 = tensorop_with_high_f32(a1_0, h0);

        b1_0 = tensorop_load_low_f32(b + 1 * rsb + 0);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        a0_0 = tensorop_load_low_f32(a + 2 * lda + 0 * lanes);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_0 = vfmaq_laneq_f32(c0_0, a1_0, b1_0, 0);
        h0 = tensorop_load_half_f32(a + 2 * lda + 0 * lanes + lanes / 2);

        a0_0 = tensorop_with_high_f32(a0_0, h0);

        b0_0 = tensorop_load_low_f32(b + 2 * rsb + 0);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        a += 2 * lda;
        b += 2 * rsb;
    }
    if (k > 1) {

        a1_0 = tensorop_load_low_f32(a + 1 * lda + 0 * lanes);

        __builtin_prefetch(a + 16 * lda + 0 * lanes);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_0 = vfmaq_laneq_f32(c0_0, a0_0, b0_0, 0);
        h0 = tensorop_load_half_f32(a + 1 * lda + 0 * lanes + lanes / 2);

        a1_0 = tensorop_with_high_f32(a1_0, h0);

        b1_0 = tensorop_load_low_f32(b + 1 * rsb + 0);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_0 = vfmaq_laneq_f32(c0_0, a1_0, b1_0, 0);

    } else {

        c0_0 = vfmaq_laneq_f32(c0_0, a0_0, b0_0, 0);
    }

    k = 0;

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
neon_f32_lanes_0cde_tile_1x2_tail(size_t m, size_t k, const float *restrict a, size_t lda,
                                  const float *restrict b, size_t rsb, size_t csb, float alpha, float beta,
                                  float *restrict c, size_t ldc) {
    const size_t lanes = 4;
    const size_t full = lanes;
    const size_t tail = ((size_t)(m - 0 * lanes));
    (void)m, (void)full, (void)lanes, (void)rsb;
    float32x4_t c0_0 = vdupq_n_f32(0);
    float32x4_t c0_1 = vdupq_n_f32(0);
    __builtin_prefetch(a + 0);
    __builtin_prefetch(a + 16);
    __builtin_prefetch(a + 32);
    __builtin_prefetch(a + 48);
    (void)csb;
    float32x4_t a0_0, a1_0;
    uint64_t h0;

    float32x4_t b0_0, b1_0;
    a0_0 = tensorop_load_low_f32(a + 0 * lda + 0 * lanes);

    b0_0 = tensorop_load_low_f32(b + 0 * rsb + 0);

    h0 = tensorop_load_half_f32(a + 0 * lda + 0 * lanes + lanes / 2);

    a0_0 = tensorop_with_high_f32(a0_0, h0);

    size_t rounds = (k - 1) / 2;
    k -= rounds * 2;
    for (; rounds; --rounds) {

        a1_0 = tensorop_load_low_f32(a + 1 * lda + 0 * lanes);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_0 = vfmaq_laneq_f32(c0_0, a0_0, b0_0, 0);
        h0 = tensorop_load_half_f32(a + 1 * lda + 0 * lanes + lanes / 2);

        __builtin_prefetch(a + 16 * lda + 0 * lanes);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_1 = vfmaq_laneq_f32(c0_1, a0_0, b0_0, 1);
        a1_0 = tensorop_with_high_f32(a1_0, h0);

        b1_0 = tensorop_load_low_f32(b + 1 * rsb + 0);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        a0_0 = tensorop_load_low_f32(a + 2 * lda + 0 * lanes);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_0 = vfmaq_laneq_f32(c0_0, a1_0, b1_0, 0);
        h0 = tensorop_load_half_f32(a + 2 * lda + 0 * lanes + lanes / 2);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_1 = vfmaq_laneq_f32(c0_1, a1_0, b1_0, 1);
        a0_0 = tensorop_with_high_f32(a0_0, h0);

        b0_0 = tensorop_load_low_f32(b + 2 * rsb + 0);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        a += 2 * lda;
        b += 2 * rsb;
    }
    if (k > 1) {

        a1_0 = tensorop_load_low_f32(a + 1 * lda + 0 * lanes);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_0 = vfmaq_laneq_f32(c0_0, a0_0, b0_0, 0);
        h0 = tensorop_load_half_f32(a + 1 * lda + 0 * lanes + lanes / 2);

        __builtin_prefetch(a + 16 * lda + 0 * lanes);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_1 = vfmaq_laneq_f32(c0_1, a0_0, b0_0, 1);
        a1_0 = tensorop_with_high_f32(a1_0, h0);

        b1_0 = tensorop_load_low_f32(b + 1 * rsb + 0);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_0 = vfmaq_laneq_f32(c0_0, a1_0, b1_0, 0);

        c0_1 = vfmaq_laneq_f32(c0_1, a1_0, b1_0, 1);

    } else {

        c0_0 = vfmaq_laneq_f32(c0_0, a0_0, b0_0, 0);

        c0_1 = vfmaq_laneq_f32(c0_1, a0_0, b0_0, 1);
    }

    k = 0;

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
neon_f32_lanes_0cde_tile_1x3_tail(size_t m, size_t k, const float *restrict a, size_t lda,
                                  const float *restrict b, size_t rsb, size_t csb, float alpha, float beta,
                                  float *restrict c, size_t ldc) {
    const size_t lanes = 4;
    const size_t full = lanes;
    const size_t tail = ((size_t)(m - 0 * lanes));
    (void)m, (void)full, (void)lanes, (void)rsb;
    float32x4_t c0_0 = vdupq_n_f32(0);
    float32x4_t c0_1 = vdupq_n_f32(0);
    float32x4_t c0_2 = vdupq_n_f32(0);
    __builtin_prefetch(a + 0);
    __builtin_prefetch(a + 16);
    __builtin_prefetch(a + 32);
    __builtin_prefetch(a + 48);
    (void)csb;
    float32x4_t a0_0, a1_0;
    uint64_t h0;
    uint64_t h1;

    float32x4_t b0_0, b1_0;
    a0_0 = tensorop_load_low_f32(a + 0 * lda + 0 * lanes);

    b0_0 = tensorop_load_low_f32(b + 0 * rsb + 0);

    h0 = tensorop_load_half_f32(a + 0 * lda + 0 * lanes + lanes / 2);

    h1 = tensorop_load_half_f32(b + 0 * rsb + 0 + lanes / 2);

    a0_0 = tensorop_with_high_f32(a0_0, h0);

    size_t rounds = (k - 1) / 2;
    k -= rounds * 2;
    for (; rounds; --rounds) {
        b0_0 = tensorop_with_high_f32(b0_0, h1);

        a1_0 = tensorop_load_low_f32(a + 1 * lda + 0 * lanes);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_0 = vfmaq_laneq_f32(c0_0, a0_0, b0_0, 0);
        h0 = tensorop_load_half_f32(a + 1 * lda + 0 * lanes + lanes / 2);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_1 = vfmaq_laneq_f32(c0_1, a0_0, b0_0, 1);
        __builtin_prefetch(a + 16 * lda + 0 * lanes);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_2 = vfmaq_laneq_f32(c0_2, a0_0, b0_0, 2);
        a1_0 = tensorop_with_high_f32(a1_0, h0);

        b1_0 = tensorop_load_low_f32(b + 1 * rsb + 0);

        h1 = tensorop_load_half_f32(b + 1 * rsb + 0 + lanes / 2);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        b1_0 = tensorop_with_high_f32(b1_0, h1);

        a0_0 = tensorop_load_low_f32(a + 2 * lda + 0 * lanes);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_0 = vfmaq_laneq_f32(c0_0, a1_0, b1_0, 0);
        h0 = tensorop_load_half_f32(a + 2 * lda + 0 * lanes + lanes / 2);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_1 = vfmaq_laneq_f32(c0_1, a1_0, b1_0, 1);

        c0_2 = vfmaq_laneq_f32(c0_2, a1_0, b1_0, 2);
        a0_0 = tensorop_with_high_f32(a0_0, h0);

        b0_0 = tensorop_load_low_f32(b + 2 * rsb + 0);

        h1 = tensorop_load_half_f32(b + 2 * rsb + 0 + lanes / 2);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        a += 2 * lda;
        b += 2 * rsb;
    }
    if (k > 1) {
        b0_0 = tensorop_with_high_f32(b0_0, h1);

        a1_0 = tensorop_load_low_f32(a + 1 * lda + 0 * lanes);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_0 = vfmaq_laneq_f32(c0_0, a0_0, b0_0, 0);
        h0 = tensorop_load_half_f32(a + 1 * lda + 0 * lanes + lanes / 2);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_1 = vfmaq_laneq_f32(c0_1, a0_0, b0_0, 1);
        __builtin_prefetch(a + 16 * lda + 0 * lanes);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_2 = vfmaq_laneq_f32(c0_2, a0_0, b0_0, 2);
        a1_0 = tensorop_with_high_f32(a1_0, h0);

        b1_0 = tensorop_load_low_f32(b + 1 * rsb + 0);

        h1 = tensorop_load_half_f32(b + 1 * rsb + 0 + lanes / 2);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        b1_0 = tensorop_with_high_f32(b1_0, h1);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_0 = vfmaq_laneq_f32(c0_0, a1_0, b1_0, 0);

        c0_1 = vfmaq_laneq_f32(c0_1, a1_0, b1_0, 1);

        c0_2 = vfmaq_laneq_f32(c0_2, a1_0, b1_0, 2);

    } else {
        b0_0 = tensorop_with_high_f32(b0_0, h1);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_0 = vfmaq_laneq_f32(c0_0, a0_0, b0_0, 0);

        c0_1 = vfmaq_laneq_f32(c0_1, a0_0, b0_0, 1);

        c0_2 = vfmaq_laneq_f32(c0_2, a0_0, b0_0, 2);
    }

    k = 0;

    /* C = alpha * tile + beta * C; at beta = 0 C is not read */
    if (beta == 0) {
        tensorop_store_tail_f32(c + 0 * ldc + 0 * lanes, vmulq_n_f32(c0_0, alpha), tail);
        tensorop_store_tail_f32(c + 1 * ldc + 0 * lanes, vmulq_n_f32(c0_1, alpha), tail);
        tensorop_store_tail_f32(c + 2 * ldc + 0 * lanes, vmulq_n_f32(c0_2, alpha), tail);
    } else if (beta == 1) {
        float32x4_t old0_0 = tensorop_load_tail_f32(c + 0 * ldc + 0 * lanes, tail);
        float32x4_t old1_0 = tensorop_load_tail_f32(c + 1 * ldc + 0 * lanes, tail);
        float32x4_t old2_0 = tensorop_load_tail_f32(c + 2 * ldc + 0 * lanes, tail);
        tensorop_store_tail_f32(c + 0 * ldc + 0 * lanes, vfmaq_n_f32(old0_0, c0_0, alpha), tail);
        tensorop_store_tail_f32(c + 1 * ldc + 0 * lanes, vfmaq_n_f32(old1_0, c0_1, alpha), tail);
        tensorop_store_tail_f32(c + 2 * ldc + 0 * lanes, vfmaq_n_f32(old2_0, c0_2, alpha), tail);

    } else {
        float32x4_t old0_0 = tensorop_load_tail_f32(c + 0 * ldc + 0 * lanes, tail);
        float32x4_t old1_0 = tensorop_load_tail_f32(c + 1 * ldc + 0 * lanes, tail);
        float32x4_t old2_0 = tensorop_load_tail_f32(c + 2 * ldc + 0 * lanes, tail);
        tensorop_store_tail_f32(c + 0 * ldc + 0 * lanes, vfmaq_n_f32(vmulq_n_f32(c0_0, alpha), old0_0, beta),
                                tail);
        tensorop_store_tail_f32(c + 1 * ldc + 0 * lanes, vfmaq_n_f32(vmulq_n_f32(c0_1, alpha), old1_0, beta),
                                tail);
        tensorop_store_tail_f32(c + 2 * ldc + 0 * lanes, vfmaq_n_f32(vmulq_n_f32(c0_2, alpha), old2_0, beta),
                                tail);
    }
}

static inline __attribute__((always_inline)) void
neon_f32_lanes_0cde_tile_1x4_tail(size_t m, size_t k, const float *restrict a, size_t lda,
                                  const float *restrict b, size_t rsb, size_t csb, float alpha, float beta,
                                  float *restrict c, size_t ldc) {
    const size_t lanes = 4;
    const size_t full = lanes;
    const size_t tail = ((size_t)(m - 0 * lanes));
    (void)m, (void)full, (void)lanes, (void)rsb;
    float32x4_t c0_0 = vdupq_n_f32(0);
    float32x4_t c0_1 = vdupq_n_f32(0);
    float32x4_t c0_2 = vdupq_n_f32(0);
    float32x4_t c0_3 = vdupq_n_f32(0);
    __builtin_prefetch(a + 0);
    __builtin_prefetch(a + 16);
    __builtin_prefetch(a + 32);
    __builtin_prefetch(a + 48);
    (void)csb;
    float32x4_t a0_0, a1_0;
    uint64_t h0;
    uint64_t h1;

    float32x4_t b0_0, b1_0;
    a0_0 = tensorop_load_low_f32(a + 0 * lda + 0 * lanes);

    b0_0 = tensorop_load_low_f32(b + 0 * rsb + 0);

    h0 = tensorop_load_half_f32(a + 0 * lda + 0 * lanes + lanes / 2);

    h1 = tensorop_load_half_f32(b + 0 * rsb + 0 + lanes / 2);

    a0_0 = tensorop_with_high_f32(a0_0, h0);

    size_t rounds = (k - 1) / 2;
    k -= rounds * 2;
    for (; rounds; --rounds) {
        b0_0 = tensorop_with_high_f32(b0_0, h1);

        a1_0 = tensorop_load_low_f32(a + 1 * lda + 0 * lanes);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_0 = vfmaq_laneq_f32(c0_0, a0_0, b0_0, 0);
        h0 = tensorop_load_half_f32(a + 1 * lda + 0 * lanes + lanes / 2);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_1 = vfmaq_laneq_f32(c0_1, a0_0, b0_0, 1);
        __builtin_prefetch(a + 16 * lda + 0 * lanes);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_2 = vfmaq_laneq_f32(c0_2, a0_0, b0_0, 2);
        a1_0 = tensorop_with_high_f32(a1_0, h0);

        b1_0 = tensorop_load_low_f32(b + 1 * rsb + 0);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_3 = vfmaq_laneq_f32(c0_3, a0_0, b0_0, 3);
        h1 = tensorop_load_half_f32(b + 1 * rsb + 0 + lanes / 2);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        b1_0 = tensorop_with_high_f32(b1_0, h1);

        a0_0 = tensorop_load_low_f32(a + 2 * lda + 0 * lanes);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_0 = vfmaq_laneq_f32(c0_0, a1_0, b1_0, 0);
        h0 = tensorop_load_half_f32(a + 2 * lda + 0 * lanes + lanes / 2);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_1 = vfmaq_laneq_f32(c0_1, a1_0, b1_0, 1);

        c0_2 = vfmaq_laneq_f32(c0_2, a1_0, b1_0, 2);
        a0_0 = tensorop_with_high_f32(a0_0, h0);

        b0_0 = tensorop_load_low_f32(b + 2 * rsb + 0);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_3 = vfmaq_laneq_f32(c0_3, a1_0, b1_0, 3);
        h1 = tensorop_load_half_f32(b + 2 * rsb + 0 + lanes / 2);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        a += 2 * lda;
        b += 2 * rsb;
    }
    if (k > 1) {
        b0_0 = tensorop_with_high_f32(b0_0, h1);

        a1_0 = tensorop_load_low_f32(a + 1 * lda + 0 * lanes);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_0 = vfmaq_laneq_f32(c0_0, a0_0, b0_0, 0);
        h0 = tensorop_load_half_f32(a + 1 * lda + 0 * lanes + lanes / 2);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_1 = vfmaq_laneq_f32(c0_1, a0_0, b0_0, 1);
        __builtin_prefetch(a + 16 * lda + 0 * lanes);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_2 = vfmaq_laneq_f32(c0_2, a0_0, b0_0, 2);
        a1_0 = tensorop_with_high_f32(a1_0, h0);

        b1_0 = tensorop_load_low_f32(b + 1 * rsb + 0);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_3 = vfmaq_laneq_f32(c0_3, a0_0, b0_0, 3);
        h1 = tensorop_load_half_f32(b + 1 * rsb + 0 + lanes / 2);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        b1_0 = tensorop_with_high_f32(b1_0, h1);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_0 = vfmaq_laneq_f32(c0_0, a1_0, b1_0, 0);

        c0_1 = vfmaq_laneq_f32(c0_1, a1_0, b1_0, 1);

        c0_2 = vfmaq_laneq_f32(c0_2, a1_0, b1_0, 2);

        c0_3 = vfmaq_laneq_f32(c0_3, a1_0, b1_0, 3);

    } else {
        b0_0 = tensorop_with_high_f32(b0_0, h1);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_0 = vfmaq_laneq_f32(c0_0, a0_0, b0_0, 0);

        c0_1 = vfmaq_laneq_f32(c0_1, a0_0, b0_0, 1);

        c0_2 = vfmaq_laneq_f32(c0_2, a0_0, b0_0, 2);

        c0_3 = vfmaq_laneq_f32(c0_3, a0_0, b0_0, 3);
    }

    k = 0;

    /* C = alpha * tile + beta * C; at beta = 0 C is not read */
    if (beta == 0) {
        tensorop_store_tail_f32(c + 0 * ldc + 0 * lanes, vmulq_n_f32(c0_0, alpha), tail);
        tensorop_store_tail_f32(c + 1 * ldc + 0 * lanes, vmulq_n_f32(c0_1, alpha), tail);
        tensorop_store_tail_f32(c + 2 * ldc + 0 * lanes, vmulq_n_f32(c0_2, alpha), tail);
        tensorop_store_tail_f32(c + 3 * ldc + 0 * lanes, vmulq_n_f32(c0_3, alpha), tail);
    } else if (beta == 1) {
        float32x4_t old0_0 = tensorop_load_tail_f32(c + 0 * ldc + 0 * lanes, tail);
        float32x4_t old1_0 = tensorop_load_tail_f32(c + 1 * ldc + 0 * lanes, tail);
        float32x4_t old2_0 = tensorop_load_tail_f32(c + 2 * ldc + 0 * lanes, tail);
        float32x4_t old3_0 = tensorop_load_tail_f32(c + 3 * ldc + 0 * lanes, tail);
        tensorop_store_tail_f32(c + 0 * ldc + 0 * lanes, vfmaq_n_f32(old0_0, c0_0, alpha), tail);
        tensorop_store_tail_f32(c + 1 * ldc + 0 * lanes, vfmaq_n_f32(old1_0, c0_1, alpha), tail);
        tensorop_store_tail_f32(c + 2 * ldc + 0 * lanes, vfmaq_n_f32(old2_0, c0_2, alpha), tail);
        tensorop_store_tail_f32(c + 3 * ldc + 0 * lanes, vfmaq_n_f32(old3_0, c0_3, alpha), tail);

    } else {
        float32x4_t old0_0 = tensorop_load_tail_f32(c + 0 * ldc + 0 * lanes, tail);
        float32x4_t old1_0 = tensorop_load_tail_f32(c + 1 * ldc + 0 * lanes, tail);
        float32x4_t old2_0 = tensorop_load_tail_f32(c + 2 * ldc + 0 * lanes, tail);
        float32x4_t old3_0 = tensorop_load_tail_f32(c + 3 * ldc + 0 * lanes, tail);
        tensorop_store_tail_f32(c + 0 * ldc + 0 * lanes, vfmaq_n_f32(vmulq_n_f32(c0_0, alpha), old0_0, beta),
                                tail);
        tensorop_store_tail_f32(c + 1 * ldc + 0 * lanes, vfmaq_n_f32(vmulq_n_f32(c0_1, alpha), old1_0, beta),
                                tail);
        tensorop_store_tail_f32(c + 2 * ldc + 0 * lanes, vfmaq_n_f32(vmulq_n_f32(c0_2, alpha), old2_0, beta),
                                tail);
        tensorop_store_tail_f32(c + 3 * ldc + 0 * lanes, vfmaq_n_f32(vmulq_n_f32(c0_3, alpha), old3_0, beta),
                                tail);
    }
}

static inline __attribute__((always_inline)) void
neon_f32_lanes_0cde_tile_1x4(size_t m, size_t k, const float *restrict a, size_t lda, const float *restrict b,
                             size_t rsb, size_t csb, float alpha, float beta, float *restrict c, size_t ldc) {
    const size_t lanes = 4;
    const size_t full = lanes;
    (void)m, (void)full, (void)lanes, (void)rsb;
    float32x4_t c0_0 = vdupq_n_f32(0);
    float32x4_t c0_1 = vdupq_n_f32(0);
    float32x4_t c0_2 = vdupq_n_f32(0);
    float32x4_t c0_3 = vdupq_n_f32(0);
    __builtin_prefetch(a + 0);
    __builtin_prefetch(a + 16);
    __builtin_prefetch(a + 32);
    __builtin_prefetch(a + 48);
    (void)csb;
    float32x4_t a0_0, a1_0;
    uint64_t h0;
    uint64_t h1;

    float32x4_t b0_0, b1_0;
    a0_0 = tensorop_load_low_f32(a + 0 * lda + 0 * lanes);

    b0_0 = tensorop_load_low_f32(b + 0 * rsb + 0);

    h0 = tensorop_load_half_f32(a + 0 * lda + 0 * lanes + lanes / 2);

    h1 = tensorop_load_half_f32(b + 0 * rsb + 0 + lanes / 2);

    a0_0 = tensorop_with_high_f32(a0_0, h0);

    size_t rounds = (k - 1) / 2;
    k -= rounds * 2;
    for (; rounds; --rounds) {
        b0_0 = tensorop_with_high_f32(b0_0, h1);

        a1_0 = tensorop_load_low_f32(a + 1 * lda + 0 * lanes);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_0 = vfmaq_laneq_f32(c0_0, a0_0, b0_0, 0);
        h0 = tensorop_load_half_f32(a + 1 * lda + 0 * lanes + lanes / 2);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_1 = vfmaq_laneq_f32(c0_1, a0_0, b0_0, 1);
        __builtin_prefetch(a + 16 * lda + 0 * lanes);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_2 = vfmaq_laneq_f32(c0_2, a0_0, b0_0, 2);
        a1_0 = tensorop_with_high_f32(a1_0, h0);

        b1_0 = tensorop_load_low_f32(b + 1 * rsb + 0);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_3 = vfmaq_laneq_f32(c0_3, a0_0, b0_0, 3);
        h1 = tensorop_load_half_f32(b + 1 * rsb + 0 + lanes / 2);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        b1_0 = tensorop_with_high_f32(b1_0, h1);

        a0_0 = tensorop_load_low_f32(a + 2 * lda + 0 * lanes);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_0 = vfmaq_laneq_f32(c0_0, a1_0, b1_0, 0);
        h0 = tensorop_load_half_f32(a + 2 * lda + 0 * lanes + lanes / 2);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_1 = vfmaq_laneq_f32(c0_1, a1_0, b1_0, 1);

        c0_2 = vfmaq_laneq_f32(c0_2, a1_0, b1_0, 2);
        a0_0 = tensorop_with_high_f32(a0_0, h0);

        b0_0 = tensorop_load_low_f32(b + 2 * rsb + 0);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_3 = vfmaq_laneq_f32(c0_3, a1_0, b1_0, 3);
        h1 = tensorop_load_half_f32(b + 2 * rsb + 0 + lanes / 2);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        a += 2 * lda;
        b += 2 * rsb;
    }
    if (k > 1) {
        b0_0 = tensorop_with_high_f32(b0_0, h1);

        a1_0 = tensorop_load_low_f32(a + 1 * lda + 0 * lanes);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_0 = vfmaq_laneq_f32(c0_0, a0_0, b0_0, 0);
        h0 = tensorop_load_half_f32(a + 1 * lda + 0 * lanes + lanes / 2);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_1 = vfmaq_laneq_f32(c0_1, a0_0, b0_0, 1);
        __builtin_prefetch(a + 16 * lda + 0 * lanes);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_2 = vfmaq_laneq_f32(c0_2, a0_0, b0_0, 2);
        a1_0 = tensorop_with_high_f32(a1_0, h0);

        b1_0 = tensorop_load_low_f32(b + 1 * rsb + 0);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_3 = vfmaq_laneq_f32(c0_3, a0_0, b0_0, 3);
        h1 = tensorop_load_half_f32(b + 1 * rsb + 0 + lanes / 2);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        b1_0 = tensorop_with_high_f32(b1_0, h1);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_0 = vfmaq_laneq_f32(c0_0, a1_0, b1_0, 0);

        c0_1 = vfmaq_laneq_f32(c0_1, a1_0, b1_0, 1);

        c0_2 = vfmaq_laneq_f32(c0_2, a1_0, b1_0, 2);

        c0_3 = vfmaq_laneq_f32(c0_3, a1_0, b1_0, 3);

    } else {
        b0_0 = tensorop_with_high_f32(b0_0, h1);

        ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

        c0_0 = vfmaq_laneq_f32(c0_0, a0_0, b0_0, 0);

        c0_1 = vfmaq_laneq_f32(c0_1, a0_0, b0_0, 1);

        c0_2 = vfmaq_laneq_f32(c0_2, a0_0, b0_0, 2);

        c0_3 = vfmaq_laneq_f32(c0_3, a0_0, b0_0, 3);
    }

    k = 0;

    /* C = alpha * tile + beta * C; at beta = 0 C is not read */
    if (beta == 0) {
        vst1q_f32(c + 0 * ldc + 0 * lanes, vmulq_n_f32(c0_0, alpha));
        vst1q_f32(c + 1 * ldc + 0 * lanes, vmulq_n_f32(c0_1, alpha));
        vst1q_f32(c + 2 * ldc + 0 * lanes, vmulq_n_f32(c0_2, alpha));
        vst1q_f32(c + 3 * ldc + 0 * lanes, vmulq_n_f32(c0_3, alpha));
    } else if (beta == 1) {
        float32x4_t old0_0 = vld1q_f32(c + 0 * ldc + 0 * lanes);
        float32x4_t old1_0 = vld1q_f32(c + 1 * ldc + 0 * lanes);
        float32x4_t old2_0 = vld1q_f32(c + 2 * ldc + 0 * lanes);
        float32x4_t old3_0 = vld1q_f32(c + 3 * ldc + 0 * lanes);
        vst1q_f32(c + 0 * ldc + 0 * lanes, vfmaq_n_f32(old0_0, c0_0, alpha));
        vst1q_f32(c + 1 * ldc + 0 * lanes, vfmaq_n_f32(old1_0, c0_1, alpha));
        vst1q_f32(c + 2 * ldc + 0 * lanes, vfmaq_n_f32(old2_0, c0_2, alpha));
        vst1q_f32(c + 3 * ldc + 0 * lanes, vfmaq_n_f32(old3_0, c0_3, alpha));

    } else {
        float32x4_t old0_0 = vld1q_f32(c + 0 * ldc + 0 * lanes);
        float32x4_t old1_0 = vld1q_f32(c + 1 * ldc + 0 * lanes);
        float32x4_t old2_0 = vld1q_f32(c + 2 * ldc + 0 * lanes);
        float32x4_t old3_0 = vld1q_f32(c + 3 * ldc + 0 * lanes);
        vst1q_f32(c + 0 * ldc + 0 * lanes, vfmaq_n_f32(vmulq_n_f32(c0_0, alpha), old0_0, beta));
        vst1q_f32(c + 1 * ldc + 0 * lanes, vfmaq_n_f32(vmulq_n_f32(c0_1, alpha), old1_0, beta));
        vst1q_f32(c + 2 * ldc + 0 * lanes, vfmaq_n_f32(vmulq_n_f32(c0_2, alpha), old2_0, beta));
        vst1q_f32(c + 3 * ldc + 0 * lanes, vfmaq_n_f32(vmulq_n_f32(c0_3, alpha), old3_0, beta));
    }
}

#define neon_f32_lanes_0cde_ARGS                                                                             \
    size_t m, size_t k, const float *a, size_t lda, const float *b, size_t sb, float alpha, float beta,      \
        float *c, size_t ldc

static void neon_f32_lanes_0cde_packed_1x1(neon_f32_lanes_0cde_ARGS) {
    (void)sb, (void)lda;
    neon_f32_lanes_0cde_tile_1x1_tail(m, k, a, 1 * (4), b, 1, 1, alpha, beta, c, ldc);
}
static void neon_f32_lanes_0cde_packed_1x2(neon_f32_lanes_0cde_ARGS) {
    (void)sb, (void)lda;
    neon_f32_lanes_0cde_tile_1x2_tail(m, k, a, 1 * (4), b, 2, 1, alpha, beta, c, ldc);
}
static void neon_f32_lanes_0cde_packed_1x3(neon_f32_lanes_0cde_ARGS) {
    (void)sb, (void)lda;
    neon_f32_lanes_0cde_tile_1x3_tail(m, k, a, 1 * (4), b, 3, 1, alpha, beta, c, ldc);
}
static void neon_f32_lanes_0cde_packed_1x4(neon_f32_lanes_0cde_ARGS) {
    (void)sb, (void)lda;
    if (m == 1 * (4)) {
        neon_f32_lanes_0cde_tile_1x4(m, k, a, 1 * (4), b, 4, 1, alpha, beta, c, ldc);
        return;
    }
    neon_f32_lanes_0cde_tile_1x4_tail(m, k, a, 1 * (4), b, 4, 1, alpha, beta, c, ldc);
}

static void (*const neon_f32_lanes_0cde_packed[4][1])(neon_f32_lanes_0cde_ARGS) = {
    {neon_f32_lanes_0cde_packed_1x1},
    {neon_f32_lanes_0cde_packed_1x2},
    {neon_f32_lanes_0cde_packed_1x3},
    {neon_f32_lanes_0cde_packed_1x4},
};
