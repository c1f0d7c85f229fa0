/* neon_f32_lanes_e9f3: micro-kernel 'lanes' at fetch=16 halves=1 ku=2 mv=2 nr=2 (neon, f32)
 * rank-1 updates of an mv x nr register tile whose elements of B come a vector at a time and are taken from
 * its lanes; what a k step needs is loaded during the step before, a vector after every third FMA; with
 * `halves` vectors come as in-order cores issue them best: the low half by a vector load, the high one
 * through a general register beside FMAs, their union beside the next vector's low half; packed A is
 * prefetched `fetch` k steps ahead, and columns of B where they lie */
static inline __attribute__((always_inline)) void
neon_f32_lanes_e9f3_tile_1x1_tail(size_t m, size_t k, const float *restrict a, size_t lda,
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
    if (csb == 1) {
        float32x4_t a0_0, a1_0;
        uint64_t h0;

        float b0_0, b1_0;
        a0_0 = tensorop_load_low_f32(a + 0 * lda + 0 * lanes);

        b0_0 = b[0 * rsb + 0 * csb];

        h0 = tensorop_load_half_f32(a + 0 * lda + 0 * lanes + lanes / 2);

        a0_0 = tensorop_with_high_f32(a0_0, h0);

        size_t rounds = (k - 1) / 2;
        k -= rounds * 2;
        for (; rounds; --rounds) {

            a1_0 = tensorop_load_low_f32(a + 1 * lda + 0 * lanes);

            __builtin_prefetch(a + 16 * lda + 0 * lanes);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            c0_0 = vfmaq_n_f32(c0_0, a0_0, b0_0);
            h0 = tensorop_load_half_f32(a + 1 * lda + 0 * lanes + lanes / 2);

            a1_0 = tensorop_with_high_f32(a1_0, h0);

            b1_0 = b[1 * rsb + 0 * csb];

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            a0_0 = tensorop_load_low_f32(a + 2 * lda + 0 * lanes);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            c0_0 = vfmaq_n_f32(c0_0, a1_0, b1_0);
            h0 = tensorop_load_half_f32(a + 2 * lda + 0 * lanes + lanes / 2);

            a0_0 = tensorop_with_high_f32(a0_0, h0);

            b0_0 = b[2 * rsb + 0 * csb];

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            a += 2 * lda;
            b += 2 * rsb;
        }
        if (k > 1) {

            a1_0 = tensorop_load_low_f32(a + 1 * lda + 0 * lanes);

            __builtin_prefetch(a + 16 * lda + 0 * lanes);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            c0_0 = vfmaq_n_f32(c0_0, a0_0, b0_0);
            h0 = tensorop_load_half_f32(a + 1 * lda + 0 * lanes + lanes / 2);

            a1_0 = tensorop_with_high_f32(a1_0, h0);

            b1_0 = b[1 * rsb + 0 * csb];

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            c0_0 = vfmaq_n_f32(c0_0, a1_0, b1_0);

        } else {

            c0_0 = vfmaq_n_f32(c0_0, a0_0, b0_0);
        }

        k = 0;

    } else if (rsb == 1) {
        const size_t rest = k % 2; /* B is read 2 steps at a time, and not beyond the last one */
        k -= rest;
        if (k) {
            float32x4_t a0_0, a1_0;
            uint64_t h0;

            float32x4_t b0_0, b1_0;
            a0_0 = vld1q_f32(a + 0 * lda + 0 * lanes);

            size_t rounds = (k - 1) / 2;
            k -= rounds * 2;
            for (; rounds; --rounds) {
                b0_0 = tensorop_load_low_f32(b + 0 + 0 * csb);
                __builtin_prefetch(b + 32 + 0 * csb);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c0_0 = vfmaq_laneq_f32(c0_0, a0_0, b0_0, 0);
                a1_0 = tensorop_load_low_f32(a + 1 * lda + 0 * lanes);

                h0 = tensorop_load_half_f32(a + 1 * lda + 0 * lanes + lanes / 2);

                a1_0 = tensorop_with_high_f32(a1_0, h0);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                a0_0 = tensorop_load_low_f32(a + 2 * lda + 0 * lanes);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c0_0 = vfmaq_laneq_f32(c0_0, a1_0, b0_0, 1);
                h0 = tensorop_load_half_f32(a + 2 * lda + 0 * lanes + lanes / 2);

                a0_0 = tensorop_with_high_f32(a0_0, h0);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                a += 2 * lda;
                b += 2 * rsb;
            }
            if (k > 1) {
                b0_0 = tensorop_load_low_f32(b + 0 + 0 * csb);
                __builtin_prefetch(b + 32 + 0 * csb);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c0_0 = vfmaq_laneq_f32(c0_0, a0_0, b0_0, 0);
                a1_0 = tensorop_load_low_f32(a + 1 * lda + 0 * lanes);

                h0 = tensorop_load_half_f32(a + 1 * lda + 0 * lanes + lanes / 2);

                a1_0 = tensorop_with_high_f32(a1_0, h0);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c0_0 = vfmaq_laneq_f32(c0_0, a1_0, b0_0, 1);

            } else {
                b0_0 = tensorop_load_low_f32(b + 0 + 0 * csb);
                __builtin_prefetch(b + 32 + 0 * csb);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c0_0 = vfmaq_laneq_f32(c0_0, a0_0, b0_0, 0);
            }

            a += k * lda;
            b += k * rsb;
        }
        k = rest;
    }
    for (; k; --k) {
        const float32x4_t x0 = vld1q_f32(a + 0 * lanes);
        const float y0 = b[0 * rsb + 0 * csb];
        c0_0 = vfmaq_n_f32(c0_0, x0, y0);
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
neon_f32_lanes_e9f3_tile_2x1_tail(size_t m, size_t k, const float *restrict a, size_t lda,
                                  const float *restrict b, size_t rsb, size_t csb, float alpha, float beta,
                                  float *restrict c, size_t ldc) {
    const size_t lanes = 4;
    const size_t full = lanes;
    const size_t tail = ((size_t)(m - 1 * lanes));
    (void)m, (void)full, (void)lanes, (void)rsb;
    float32x4_t c0_0 = vdupq_n_f32(0);
    float32x4_t c1_0 = vdupq_n_f32(0);
    __builtin_prefetch(a + 0);
    __builtin_prefetch(a + 16);
    __builtin_prefetch(a + 32);
    __builtin_prefetch(a + 48);
    __builtin_prefetch(a + 64);
    __builtin_prefetch(a + 80);
    __builtin_prefetch(a + 96);
    __builtin_prefetch(a + 112);
    if (csb == 1) {
        float32x4_t a0_0, a1_0;
        float32x4_t a0_1, a1_1;
        uint64_t h0;
        uint64_t h2;

        float b0_0, b1_0;
        a0_0 = tensorop_load_low_f32(a + 0 * lda + 0 * lanes);

        b0_0 = b[0 * rsb + 0 * csb];

        a0_1 = tensorop_load_low_f32(a + 0 * lda + 1 * lanes);

        h0 = tensorop_load_half_f32(a + 0 * lda + 0 * lanes + lanes / 2);

        h2 = tensorop_load_half_f32(a + 0 * lda + 1 * lanes + lanes / 2);

        a0_0 = tensorop_with_high_f32(a0_0, h0);

        size_t rounds = (k - 1) / 2;
        k -= rounds * 2;
        for (; rounds; --rounds) {
            a0_1 = tensorop_with_high_f32(a0_1, h2);

            a1_0 = tensorop_load_low_f32(a + 1 * lda + 0 * lanes);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            c0_0 = vfmaq_n_f32(c0_0, a0_0, b0_0);
            h0 = tensorop_load_half_f32(a + 1 * lda + 0 * lanes + lanes / 2);

            a1_0 = tensorop_with_high_f32(a1_0, h0);

            b1_0 = b[1 * rsb + 0 * csb];

            __builtin_prefetch(a + 16 * lda + 0 * lanes);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            c1_0 = vfmaq_n_f32(c1_0, a0_1, b0_0);

            a1_1 = tensorop_load_low_f32(a + 1 * lda + 1 * lanes);

            h2 = tensorop_load_half_f32(a + 1 * lda + 1 * lanes + lanes / 2);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            a1_1 = tensorop_with_high_f32(a1_1, h2);

            a0_0 = tensorop_load_low_f32(a + 2 * lda + 0 * lanes);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            c0_0 = vfmaq_n_f32(c0_0, a1_0, b1_0);
            h0 = tensorop_load_half_f32(a + 2 * lda + 0 * lanes + lanes / 2);

            a0_0 = tensorop_with_high_f32(a0_0, h0);

            b0_0 = b[2 * rsb + 0 * csb];

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            c1_0 = vfmaq_n_f32(c1_0, a1_1, b1_0);

            a0_1 = tensorop_load_low_f32(a + 2 * lda + 1 * lanes);

            h2 = tensorop_load_half_f32(a + 2 * lda + 1 * lanes + lanes / 2);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            a += 2 * lda;
            b += 2 * rsb;
        }
        if (k > 1) {
            a0_1 = tensorop_with_high_f32(a0_1, h2);

            a1_0 = tensorop_load_low_f32(a + 1 * lda + 0 * lanes);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            c0_0 = vfmaq_n_f32(c0_0, a0_0, b0_0);
            h0 = tensorop_load_half_f32(a + 1 * lda + 0 * lanes + lanes / 2);

            a1_0 = tensorop_with_high_f32(a1_0, h0);

            b1_0 = b[1 * rsb + 0 * csb];

            __builtin_prefetch(a + 16 * lda + 0 * lanes);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            c1_0 = vfmaq_n_f32(c1_0, a0_1, b0_0);

            a1_1 = tensorop_load_low_f32(a + 1 * lda + 1 * lanes);

            h2 = tensorop_load_half_f32(a + 1 * lda + 1 * lanes + lanes / 2);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            a1_1 = tensorop_with_high_f32(a1_1, h2);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            c0_0 = vfmaq_n_f32(c0_0, a1_0, b1_0);

            c1_0 = vfmaq_n_f32(c1_0, a1_1, b1_0);

        } else {
            a0_1 = tensorop_with_high_f32(a0_1, h2);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            c0_0 = vfmaq_n_f32(c0_0, a0_0, b0_0);

            c1_0 = vfmaq_n_f32(c1_0, a0_1, b0_0);
        }

        k = 0;

    } else if (rsb == 1) {
        const size_t rest = k % 2; /* B is read 2 steps at a time, and not beyond the last one */
        k -= rest;
        if (k) {
            float32x4_t a0_0, a1_0;
            float32x4_t a0_1, a1_1;
            uint64_t h0;
            uint64_t h2;

            float32x4_t b0_0, b1_0;
            a0_0 = vld1q_f32(a + 0 * lda + 0 * lanes);

            a0_1 = vld1q_f32(a + 0 * lda + 1 * lanes);

            size_t rounds = (k - 1) / 2;
            k -= rounds * 2;
            for (; rounds; --rounds) {
                b0_0 = tensorop_load_low_f32(b + 0 + 0 * csb);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c0_0 = vfmaq_laneq_f32(c0_0, a0_0, b0_0, 0);
                __builtin_prefetch(b + 32 + 0 * csb);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c1_0 = vfmaq_laneq_f32(c1_0, a0_1, b0_0, 0);
                a1_0 = tensorop_load_low_f32(a + 1 * lda + 0 * lanes);

                h0 = tensorop_load_half_f32(a + 1 * lda + 0 * lanes + lanes / 2);

                a1_0 = tensorop_with_high_f32(a1_0, h0);

                a1_1 = tensorop_load_low_f32(a + 1 * lda + 1 * lanes);

                h2 = tensorop_load_half_f32(a + 1 * lda + 1 * lanes + lanes / 2);

                a1_1 = tensorop_with_high_f32(a1_1, h2);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                a0_0 = tensorop_load_low_f32(a + 2 * lda + 0 * lanes);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c0_0 = vfmaq_laneq_f32(c0_0, a1_0, b0_0, 1);
                h0 = tensorop_load_half_f32(a + 2 * lda + 0 * lanes + lanes / 2);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c1_0 = vfmaq_laneq_f32(c1_0, a1_1, b0_0, 1);
                a0_0 = tensorop_with_high_f32(a0_0, h0);

                a0_1 = tensorop_load_low_f32(a + 2 * lda + 1 * lanes);

                h2 = tensorop_load_half_f32(a + 2 * lda + 1 * lanes + lanes / 2);

                a0_1 = tensorop_with_high_f32(a0_1, h2);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                a += 2 * lda;
                b += 2 * rsb;
            }
            if (k > 1) {
                b0_0 = tensorop_load_low_f32(b + 0 + 0 * csb);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c0_0 = vfmaq_laneq_f32(c0_0, a0_0, b0_0, 0);
                __builtin_prefetch(b + 32 + 0 * csb);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c1_0 = vfmaq_laneq_f32(c1_0, a0_1, b0_0, 0);
                a1_0 = tensorop_load_low_f32(a + 1 * lda + 0 * lanes);

                h0 = tensorop_load_half_f32(a + 1 * lda + 0 * lanes + lanes / 2);

                a1_0 = tensorop_with_high_f32(a1_0, h0);

                a1_1 = tensorop_load_low_f32(a + 1 * lda + 1 * lanes);

                h2 = tensorop_load_half_f32(a + 1 * lda + 1 * lanes + lanes / 2);

                a1_1 = tensorop_with_high_f32(a1_1, h2);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c0_0 = vfmaq_laneq_f32(c0_0, a1_0, b0_0, 1);

                c1_0 = vfmaq_laneq_f32(c1_0, a1_1, b0_0, 1);

            } else {
                b0_0 = tensorop_load_low_f32(b + 0 + 0 * csb);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c0_0 = vfmaq_laneq_f32(c0_0, a0_0, b0_0, 0);
                __builtin_prefetch(b + 32 + 0 * csb);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c1_0 = vfmaq_laneq_f32(c1_0, a0_1, b0_0, 0);
            }

            a += k * lda;
            b += k * rsb;
        }
        k = rest;
    }
    for (; k; --k) {
        const float32x4_t x0 = vld1q_f32(a + 0 * lanes);
        const float32x4_t x1 = vld1q_f32(a + 1 * lanes);
        const float y0 = b[0 * rsb + 0 * csb];
        c0_0 = vfmaq_n_f32(c0_0, x0, y0);
        c1_0 = vfmaq_n_f32(c1_0, x1, y0);
        a += lda;
        b += rsb;
    }

    /* C = alpha * tile + beta * C; at beta = 0 C is not read */
    if (beta == 0) {
        vst1q_f32(c + 0 * ldc + 0 * lanes, vmulq_n_f32(c0_0, alpha));
        tensorop_store_tail_f32(c + 0 * ldc + 1 * lanes, vmulq_n_f32(c1_0, alpha), tail);
    } else if (beta == 1) {
        float32x4_t old0_0 = vld1q_f32(c + 0 * ldc + 0 * lanes);
        float32x4_t old0_1 = tensorop_load_tail_f32(c + 0 * ldc + 1 * lanes, tail);
        vst1q_f32(c + 0 * ldc + 0 * lanes, vfmaq_n_f32(old0_0, c0_0, alpha));
        tensorop_store_tail_f32(c + 0 * ldc + 1 * lanes, vfmaq_n_f32(old0_1, c1_0, alpha), tail);

    } else {
        float32x4_t old0_0 = vld1q_f32(c + 0 * ldc + 0 * lanes);
        float32x4_t old0_1 = tensorop_load_tail_f32(c + 0 * ldc + 1 * lanes, tail);
        vst1q_f32(c + 0 * ldc + 0 * lanes, vfmaq_n_f32(vmulq_n_f32(c0_0, alpha), old0_0, beta));
        tensorop_store_tail_f32(c + 0 * ldc + 1 * lanes, vfmaq_n_f32(vmulq_n_f32(c1_0, alpha), old0_1, beta),
                                tail);
    }
}

static inline __attribute__((always_inline)) void
neon_f32_lanes_e9f3_tile_1x2_tail(size_t m, size_t k, const float *restrict a, size_t lda,
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
    if (csb == 1) {
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

    } else if (rsb == 1) {
        const size_t rest = k % 2; /* B is read 2 steps at a time, and not beyond the last one */
        k -= rest;
        if (k) {
            float32x4_t a0_0, a1_0;
            uint64_t h0;

            float32x4_t b0_0, b1_0;
            float32x4_t b0_1, b1_1;
            a0_0 = vld1q_f32(a + 0 * lda + 0 * lanes);

            b0_0 = tensorop_load_low_f32(b + 0 + 0 * csb);
            size_t rounds = (k - 1) / 2;
            k -= rounds * 2;
            for (; rounds; --rounds) {
                b0_1 = tensorop_load_low_f32(b + 0 + 1 * csb);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c0_0 = vfmaq_laneq_f32(c0_0, a0_0, b0_0, 0);
                __builtin_prefetch(b + 32 + 0 * csb);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c0_1 = vfmaq_laneq_f32(c0_1, a0_0, b0_1, 0);
                a1_0 = tensorop_load_low_f32(a + 1 * lda + 0 * lanes);

                h0 = tensorop_load_half_f32(a + 1 * lda + 0 * lanes + lanes / 2);

                a1_0 = tensorop_with_high_f32(a1_0, h0);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                a0_0 = tensorop_load_low_f32(a + 2 * lda + 0 * lanes);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c0_0 = vfmaq_laneq_f32(c0_0, a1_0, b0_0, 1);
                h0 = tensorop_load_half_f32(a + 2 * lda + 0 * lanes + lanes / 2);

                __builtin_prefetch(b + 33 + 1 * csb);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c0_1 = vfmaq_laneq_f32(c0_1, a1_0, b0_1, 1);
                a0_0 = tensorop_with_high_f32(a0_0, h0);

                b1_0 = tensorop_load_low_f32(b + 2 + 0 * csb);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                a += 2 * lda;
                b += 2 * rsb;
            }
            if (k > 1) {
                b0_1 = tensorop_load_low_f32(b + 0 + 1 * csb);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c0_0 = vfmaq_laneq_f32(c0_0, a0_0, b0_0, 0);
                __builtin_prefetch(b + 32 + 0 * csb);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c0_1 = vfmaq_laneq_f32(c0_1, a0_0, b0_1, 0);
                a1_0 = tensorop_load_low_f32(a + 1 * lda + 0 * lanes);

                h0 = tensorop_load_half_f32(a + 1 * lda + 0 * lanes + lanes / 2);

                a1_0 = tensorop_with_high_f32(a1_0, h0);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c0_0 = vfmaq_laneq_f32(c0_0, a1_0, b0_0, 1);
                __builtin_prefetch(b + 33 + 1 * csb);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c0_1 = vfmaq_laneq_f32(c0_1, a1_0, b0_1, 1);

            } else {
                b0_1 = tensorop_load_low_f32(b + 0 + 1 * csb);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c0_0 = vfmaq_laneq_f32(c0_0, a0_0, b0_0, 0);
                __builtin_prefetch(b + 32 + 0 * csb);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c0_1 = vfmaq_laneq_f32(c0_1, a0_0, b0_1, 0);
            }

            a += k * lda;
            b += k * rsb;
        }
        k = rest;
    }
    for (; k; --k) {
        const float32x4_t x0 = vld1q_f32(a + 0 * lanes);
        const float y0 = b[0 * rsb + 0 * csb];
        c0_0 = vfmaq_n_f32(c0_0, x0, y0);
        const float y1 = b[0 * rsb + 1 * csb];
        c0_1 = vfmaq_n_f32(c0_1, x0, y1);
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
neon_f32_lanes_e9f3_tile_2x2_tail(size_t m, size_t k, const float *restrict a, size_t lda,
                                  const float *restrict b, size_t rsb, size_t csb, float alpha, float beta,
                                  float *restrict c, size_t ldc) {
    const size_t lanes = 4;
    const size_t full = lanes;
    const size_t tail = ((size_t)(m - 1 * lanes));
    (void)m, (void)full, (void)lanes, (void)rsb;
    float32x4_t c0_0 = vdupq_n_f32(0);
    float32x4_t c1_0 = vdupq_n_f32(0);
    float32x4_t c0_1 = vdupq_n_f32(0);
    float32x4_t c1_1 = vdupq_n_f32(0);
    __builtin_prefetch(a + 0);
    __builtin_prefetch(a + 16);
    __builtin_prefetch(a + 32);
    __builtin_prefetch(a + 48);
    __builtin_prefetch(a + 64);
    __builtin_prefetch(a + 80);
    __builtin_prefetch(a + 96);
    __builtin_prefetch(a + 112);
    if (csb == 1) {
        float32x4_t a0_0, a1_0;
        float32x4_t a0_1, a1_1;
        uint64_t h0;
        uint64_t h2;

        float32x4_t b0_0, b1_0;
        a0_0 = tensorop_load_low_f32(a + 0 * lda + 0 * lanes);

        b0_0 = tensorop_load_low_f32(b + 0 * rsb + 0);

        a0_1 = tensorop_load_low_f32(a + 0 * lda + 1 * lanes);

        h0 = tensorop_load_half_f32(a + 0 * lda + 0 * lanes + lanes / 2);

        h2 = tensorop_load_half_f32(a + 0 * lda + 1 * lanes + lanes / 2);

        a0_0 = tensorop_with_high_f32(a0_0, h0);

        size_t rounds = (k - 1) / 2;
        k -= rounds * 2;
        for (; rounds; --rounds) {
            a0_1 = tensorop_with_high_f32(a0_1, h2);

            a1_0 = tensorop_load_low_f32(a + 1 * lda + 0 * lanes);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            c0_0 = vfmaq_laneq_f32(c0_0, a0_0, b0_0, 0);
            h0 = tensorop_load_half_f32(a + 1 * lda + 0 * lanes + lanes / 2);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            c0_1 = vfmaq_laneq_f32(c0_1, a0_0, b0_0, 1);
            a1_0 = tensorop_with_high_f32(a1_0, h0);

            b1_0 = tensorop_load_low_f32(b + 1 * rsb + 0);

            __builtin_prefetch(a + 16 * lda + 0 * lanes);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            c1_0 = vfmaq_laneq_f32(c1_0, a0_1, b0_0, 0);

            c1_1 = vfmaq_laneq_f32(c1_1, a0_1, b0_0, 1);

            a1_1 = tensorop_load_low_f32(a + 1 * lda + 1 * lanes);

            h2 = tensorop_load_half_f32(a + 1 * lda + 1 * lanes + lanes / 2);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            a1_1 = tensorop_with_high_f32(a1_1, h2);

            a0_0 = tensorop_load_low_f32(a + 2 * lda + 0 * lanes);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            c0_0 = vfmaq_laneq_f32(c0_0, a1_0, b1_0, 0);
            h0 = tensorop_load_half_f32(a + 2 * lda + 0 * lanes + lanes / 2);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            c0_1 = vfmaq_laneq_f32(c0_1, a1_0, b1_0, 1);
            a0_0 = tensorop_with_high_f32(a0_0, h0);

            b0_0 = tensorop_load_low_f32(b + 2 * rsb + 0);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            c1_0 = vfmaq_laneq_f32(c1_0, a1_1, b1_0, 0);

            c1_1 = vfmaq_laneq_f32(c1_1, a1_1, b1_0, 1);

            a0_1 = tensorop_load_low_f32(a + 2 * lda + 1 * lanes);

            h2 = tensorop_load_half_f32(a + 2 * lda + 1 * lanes + lanes / 2);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            a += 2 * lda;
            b += 2 * rsb;
        }
        if (k > 1) {
            a0_1 = tensorop_with_high_f32(a0_1, h2);

            a1_0 = tensorop_load_low_f32(a + 1 * lda + 0 * lanes);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            c0_0 = vfmaq_laneq_f32(c0_0, a0_0, b0_0, 0);
            h0 = tensorop_load_half_f32(a + 1 * lda + 0 * lanes + lanes / 2);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            c0_1 = vfmaq_laneq_f32(c0_1, a0_0, b0_0, 1);
            a1_0 = tensorop_with_high_f32(a1_0, h0);

            b1_0 = tensorop_load_low_f32(b + 1 * rsb + 0);

            __builtin_prefetch(a + 16 * lda + 0 * lanes);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            c1_0 = vfmaq_laneq_f32(c1_0, a0_1, b0_0, 0);

            c1_1 = vfmaq_laneq_f32(c1_1, a0_1, b0_0, 1);

            a1_1 = tensorop_load_low_f32(a + 1 * lda + 1 * lanes);

            h2 = tensorop_load_half_f32(a + 1 * lda + 1 * lanes + lanes / 2);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            a1_1 = tensorop_with_high_f32(a1_1, h2);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            c0_0 = vfmaq_laneq_f32(c0_0, a1_0, b1_0, 0);

            c0_1 = vfmaq_laneq_f32(c0_1, a1_0, b1_0, 1);

            c1_0 = vfmaq_laneq_f32(c1_0, a1_1, b1_0, 0);

            c1_1 = vfmaq_laneq_f32(c1_1, a1_1, b1_0, 1);

        } else {
            a0_1 = tensorop_with_high_f32(a0_1, h2);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            c0_0 = vfmaq_laneq_f32(c0_0, a0_0, b0_0, 0);

            c0_1 = vfmaq_laneq_f32(c0_1, a0_0, b0_0, 1);

            c1_0 = vfmaq_laneq_f32(c1_0, a0_1, b0_0, 0);

            c1_1 = vfmaq_laneq_f32(c1_1, a0_1, b0_0, 1);
        }

        k = 0;

    } else if (rsb == 1) {
        const size_t rest = k % 2; /* B is read 2 steps at a time, and not beyond the last one */
        k -= rest;
        if (k) {
            float32x4_t a0_0, a1_0;
            float32x4_t a0_1, a1_1;
            uint64_t h0;
            uint64_t h2;

            float32x4_t b0_0, b1_0;
            float32x4_t b0_1, b1_1;
            a0_0 = vld1q_f32(a + 0 * lda + 0 * lanes);

            a0_1 = vld1q_f32(a + 0 * lda + 1 * lanes);

            b0_0 = tensorop_load_low_f32(b + 0 + 0 * csb);
            size_t rounds = (k - 1) / 2;
            k -= rounds * 2;
            for (; rounds; --rounds) {
                b0_1 = tensorop_load_low_f32(b + 0 + 1 * csb);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c0_0 = vfmaq_laneq_f32(c0_0, a0_0, b0_0, 0);

                c1_0 = vfmaq_laneq_f32(c1_0, a0_1, b0_0, 0);
                a1_0 = tensorop_load_low_f32(a + 1 * lda + 0 * lanes);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c0_1 = vfmaq_laneq_f32(c0_1, a0_0, b0_1, 0);
                h0 = tensorop_load_half_f32(a + 1 * lda + 0 * lanes + lanes / 2);

                __builtin_prefetch(b + 32 + 0 * csb);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c1_1 = vfmaq_laneq_f32(c1_1, a0_1, b0_1, 0);
                a1_0 = tensorop_with_high_f32(a1_0, h0);

                a1_1 = tensorop_load_low_f32(a + 1 * lda + 1 * lanes);

                h2 = tensorop_load_half_f32(a + 1 * lda + 1 * lanes + lanes / 2);

                a1_1 = tensorop_with_high_f32(a1_1, h2);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                a0_0 = tensorop_load_low_f32(a + 2 * lda + 0 * lanes);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c0_0 = vfmaq_laneq_f32(c0_0, a1_0, b0_0, 1);
                h0 = tensorop_load_half_f32(a + 2 * lda + 0 * lanes + lanes / 2);

                __builtin_prefetch(b + 33 + 1 * csb);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c1_0 = vfmaq_laneq_f32(c1_0, a1_1, b0_0, 1);

                c0_1 = vfmaq_laneq_f32(c0_1, a1_0, b0_1, 1);
                a0_1 = tensorop_load_low_f32(a + 2 * lda + 1 * lanes);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c1_1 = vfmaq_laneq_f32(c1_1, a1_1, b0_1, 1);
                a0_0 = tensorop_with_high_f32(a0_0, h0);

                h2 = tensorop_load_half_f32(a + 2 * lda + 1 * lanes + lanes / 2);

                a0_1 = tensorop_with_high_f32(a0_1, h2);

                b1_0 = tensorop_load_low_f32(b + 2 + 0 * csb);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                a += 2 * lda;
                b += 2 * rsb;
            }
            if (k > 1) {
                b0_1 = tensorop_load_low_f32(b + 0 + 1 * csb);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c0_0 = vfmaq_laneq_f32(c0_0, a0_0, b0_0, 0);

                c1_0 = vfmaq_laneq_f32(c1_0, a0_1, b0_0, 0);
                a1_0 = tensorop_load_low_f32(a + 1 * lda + 0 * lanes);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c0_1 = vfmaq_laneq_f32(c0_1, a0_0, b0_1, 0);
                h0 = tensorop_load_half_f32(a + 1 * lda + 0 * lanes + lanes / 2);

                __builtin_prefetch(b + 32 + 0 * csb);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c1_1 = vfmaq_laneq_f32(c1_1, a0_1, b0_1, 0);
                a1_0 = tensorop_with_high_f32(a1_0, h0);

                a1_1 = tensorop_load_low_f32(a + 1 * lda + 1 * lanes);

                h2 = tensorop_load_half_f32(a + 1 * lda + 1 * lanes + lanes / 2);

                a1_1 = tensorop_with_high_f32(a1_1, h2);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c0_0 = vfmaq_laneq_f32(c0_0, a1_0, b0_0, 1);
                __builtin_prefetch(b + 33 + 1 * csb);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c1_0 = vfmaq_laneq_f32(c1_0, a1_1, b0_0, 1);

                c0_1 = vfmaq_laneq_f32(c0_1, a1_0, b0_1, 1);

                c1_1 = vfmaq_laneq_f32(c1_1, a1_1, b0_1, 1);

            } else {
                b0_1 = tensorop_load_low_f32(b + 0 + 1 * csb);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c0_0 = vfmaq_laneq_f32(c0_0, a0_0, b0_0, 0);

                c1_0 = vfmaq_laneq_f32(c1_0, a0_1, b0_0, 0);

                c0_1 = vfmaq_laneq_f32(c0_1, a0_0, b0_1, 0);
                __builtin_prefetch(b + 32 + 0 * csb);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c1_1 = vfmaq_laneq_f32(c1_1, a0_1, b0_1, 0);
            }

            a += k * lda;
            b += k * rsb;
        }
        k = rest;
    }
    for (; k; --k) {
        const float32x4_t x0 = vld1q_f32(a + 0 * lanes);
        const float32x4_t x1 = vld1q_f32(a + 1 * lanes);
        const float y0 = b[0 * rsb + 0 * csb];
        c0_0 = vfmaq_n_f32(c0_0, x0, y0);
        c1_0 = vfmaq_n_f32(c1_0, x1, y0);
        const float y1 = b[0 * rsb + 1 * csb];
        c0_1 = vfmaq_n_f32(c0_1, x0, y1);
        c1_1 = vfmaq_n_f32(c1_1, x1, y1);
        a += lda;
        b += rsb;
    }

    /* C = alpha * tile + beta * C; at beta = 0 C is not read */
    if (beta == 0) {
        vst1q_f32(c + 0 * ldc + 0 * lanes, vmulq_n_f32(c0_0, alpha));
        tensorop_store_tail_f32(c + 0 * ldc + 1 * lanes, vmulq_n_f32(c1_0, alpha), tail);
        vst1q_f32(c + 1 * ldc + 0 * lanes, vmulq_n_f32(c0_1, alpha));
        tensorop_store_tail_f32(c + 1 * ldc + 1 * lanes, vmulq_n_f32(c1_1, alpha), tail);
    } else if (beta == 1) {
        float32x4_t old0_0 = vld1q_f32(c + 0 * ldc + 0 * lanes);
        float32x4_t old1_0 = vld1q_f32(c + 1 * ldc + 0 * lanes);
        float32x4_t old0_1 = tensorop_load_tail_f32(c + 0 * ldc + 1 * lanes, tail);
        float32x4_t old1_1 = tensorop_load_tail_f32(c + 1 * ldc + 1 * lanes, tail);
        vst1q_f32(c + 0 * ldc + 0 * lanes, vfmaq_n_f32(old0_0, c0_0, alpha));
        tensorop_store_tail_f32(c + 0 * ldc + 1 * lanes, vfmaq_n_f32(old0_1, c1_0, alpha), tail);
        vst1q_f32(c + 1 * ldc + 0 * lanes, vfmaq_n_f32(old1_0, c0_1, alpha));
        tensorop_store_tail_f32(c + 1 * ldc + 1 * lanes, vfmaq_n_f32(old1_1, c1_1, alpha), tail);

    } else {
        float32x4_t old0_0 = vld1q_f32(c + 0 * ldc + 0 * lanes);
        float32x4_t old1_0 = vld1q_f32(c + 1 * ldc + 0 * lanes);
        float32x4_t old0_1 = tensorop_load_tail_f32(c + 0 * ldc + 1 * lanes, tail);
        float32x4_t old1_1 = tensorop_load_tail_f32(c + 1 * ldc + 1 * lanes, tail);
        vst1q_f32(c + 0 * ldc + 0 * lanes, vfmaq_n_f32(vmulq_n_f32(c0_0, alpha), old0_0, beta));
        tensorop_store_tail_f32(c + 0 * ldc + 1 * lanes, vfmaq_n_f32(vmulq_n_f32(c1_0, alpha), old0_1, beta),
                                tail);
        vst1q_f32(c + 1 * ldc + 0 * lanes, vfmaq_n_f32(vmulq_n_f32(c0_1, alpha), old1_0, beta));
        tensorop_store_tail_f32(c + 1 * ldc + 1 * lanes, vfmaq_n_f32(vmulq_n_f32(c1_1, alpha), old1_1, beta),
                                tail);
    }
}

static inline __attribute__((always_inline)) void
neon_f32_lanes_e9f3_tile_2x2(size_t m, size_t k, const float *restrict a, size_t lda, const float *restrict b,
                             size_t rsb, size_t csb, float alpha, float beta, float *restrict c, size_t ldc) {
    const size_t lanes = 4;
    const size_t full = lanes;
    (void)m, (void)full, (void)lanes, (void)rsb;
    float32x4_t c0_0 = vdupq_n_f32(0);
    float32x4_t c1_0 = vdupq_n_f32(0);
    float32x4_t c0_1 = vdupq_n_f32(0);
    float32x4_t c1_1 = vdupq_n_f32(0);
    __builtin_prefetch(a + 0);
    __builtin_prefetch(a + 16);
    __builtin_prefetch(a + 32);
    __builtin_prefetch(a + 48);
    __builtin_prefetch(a + 64);
    __builtin_prefetch(a + 80);
    __builtin_prefetch(a + 96);
    __builtin_prefetch(a + 112);
    if (csb == 1) {
        float32x4_t a0_0, a1_0;
        float32x4_t a0_1, a1_1;
        uint64_t h0;
        uint64_t h2;

        float32x4_t b0_0, b1_0;
        a0_0 = tensorop_load_low_f32(a + 0 * lda + 0 * lanes);

        b0_0 = tensorop_load_low_f32(b + 0 * rsb + 0);

        a0_1 = tensorop_load_low_f32(a + 0 * lda + 1 * lanes);

        h0 = tensorop_load_half_f32(a + 0 * lda + 0 * lanes + lanes / 2);

        h2 = tensorop_load_half_f32(a + 0 * lda + 1 * lanes + lanes / 2);

        a0_0 = tensorop_with_high_f32(a0_0, h0);

        size_t rounds = (k - 1) / 2;
        k -= rounds * 2;
        for (; rounds; --rounds) {
            a0_1 = tensorop_with_high_f32(a0_1, h2);

            a1_0 = tensorop_load_low_f32(a + 1 * lda + 0 * lanes);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            c0_0 = vfmaq_laneq_f32(c0_0, a0_0, b0_0, 0);
            h0 = tensorop_load_half_f32(a + 1 * lda + 0 * lanes + lanes / 2);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            c0_1 = vfmaq_laneq_f32(c0_1, a0_0, b0_0, 1);
            a1_0 = tensorop_with_high_f32(a1_0, h0);

            b1_0 = tensorop_load_low_f32(b + 1 * rsb + 0);

            __builtin_prefetch(a + 16 * lda + 0 * lanes);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            c1_0 = vfmaq_laneq_f32(c1_0, a0_1, b0_0, 0);

            c1_1 = vfmaq_laneq_f32(c1_1, a0_1, b0_0, 1);

            a1_1 = tensorop_load_low_f32(a + 1 * lda + 1 * lanes);

            h2 = tensorop_load_half_f32(a + 1 * lda + 1 * lanes + lanes / 2);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            a1_1 = tensorop_with_high_f32(a1_1, h2);

            a0_0 = tensorop_load_low_f32(a + 2 * lda + 0 * lanes);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            c0_0 = vfmaq_laneq_f32(c0_0, a1_0, b1_0, 0);
            h0 = tensorop_load_half_f32(a + 2 * lda + 0 * lanes + lanes / 2);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            c0_1 = vfmaq_laneq_f32(c0_1, a1_0, b1_0, 1);
            a0_0 = tensorop_with_high_f32(a0_0, h0);

            b0_0 = tensorop_load_low_f32(b + 2 * rsb + 0);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            c1_0 = vfmaq_laneq_f32(c1_0, a1_1, b1_0, 0);

            c1_1 = vfmaq_laneq_f32(c1_1, a1_1, b1_0, 1);

            a0_1 = tensorop_load_low_f32(a + 2 * lda + 1 * lanes);

            h2 = tensorop_load_half_f32(a + 2 * lda + 1 * lanes + lanes / 2);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            a += 2 * lda;
            b += 2 * rsb;
        }
        if (k > 1) {
            a0_1 = tensorop_with_high_f32(a0_1, h2);

            a1_0 = tensorop_load_low_f32(a + 1 * lda + 0 * lanes);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            c0_0 = vfmaq_laneq_f32(c0_0, a0_0, b0_0, 0);
            h0 = tensorop_load_half_f32(a + 1 * lda + 0 * lanes + lanes / 2);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            c0_1 = vfmaq_laneq_f32(c0_1, a0_0, b0_0, 1);
            a1_0 = tensorop_with_high_f32(a1_0, h0);

            b1_0 = tensorop_load_low_f32(b + 1 * rsb + 0);

            __builtin_prefetch(a + 16 * lda + 0 * lanes);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            c1_0 = vfmaq_laneq_f32(c1_0, a0_1, b0_0, 0);

            c1_1 = vfmaq_laneq_f32(c1_1, a0_1, b0_0, 1);

            a1_1 = tensorop_load_low_f32(a + 1 * lda + 1 * lanes);

            h2 = tensorop_load_half_f32(a + 1 * lda + 1 * lanes + lanes / 2);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            a1_1 = tensorop_with_high_f32(a1_1, h2);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            c0_0 = vfmaq_laneq_f32(c0_0, a1_0, b1_0, 0);

            c0_1 = vfmaq_laneq_f32(c0_1, a1_0, b1_0, 1);

            c1_0 = vfmaq_laneq_f32(c1_0, a1_1, b1_0, 0);

            c1_1 = vfmaq_laneq_f32(c1_1, a1_1, b1_0, 1);

        } else {
            a0_1 = tensorop_with_high_f32(a0_1, h2);

            ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

            c0_0 = vfmaq_laneq_f32(c0_0, a0_0, b0_0, 0);

            c0_1 = vfmaq_laneq_f32(c0_1, a0_0, b0_0, 1);

            c1_0 = vfmaq_laneq_f32(c1_0, a0_1, b0_0, 0);

            c1_1 = vfmaq_laneq_f32(c1_1, a0_1, b0_0, 1);
        }

        k = 0;

    } else if (rsb == 1) {
        const size_t rest = k % 2; /* B is read 2 steps at a time, and not beyond the last one */
        k -= rest;
        if (k) {
            float32x4_t a0_0, a1_0;
            float32x4_t a0_1, a1_1;
            uint64_t h0;
            uint64_t h2;

            float32x4_t b0_0, b1_0;
            float32x4_t b0_1, b1_1;
            a0_0 = vld1q_f32(a + 0 * lda + 0 * lanes);

            a0_1 = vld1q_f32(a + 0 * lda + 1 * lanes);

            b0_0 = tensorop_load_low_f32(b + 0 + 0 * csb);
            size_t rounds = (k - 1) / 2;
            k -= rounds * 2;
            for (; rounds; --rounds) {
                b0_1 = tensorop_load_low_f32(b + 0 + 1 * csb);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c0_0 = vfmaq_laneq_f32(c0_0, a0_0, b0_0, 0);

                c1_0 = vfmaq_laneq_f32(c1_0, a0_1, b0_0, 0);
                a1_0 = tensorop_load_low_f32(a + 1 * lda + 0 * lanes);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c0_1 = vfmaq_laneq_f32(c0_1, a0_0, b0_1, 0);
                h0 = tensorop_load_half_f32(a + 1 * lda + 0 * lanes + lanes / 2);

                __builtin_prefetch(b + 32 + 0 * csb);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c1_1 = vfmaq_laneq_f32(c1_1, a0_1, b0_1, 0);
                a1_0 = tensorop_with_high_f32(a1_0, h0);

                a1_1 = tensorop_load_low_f32(a + 1 * lda + 1 * lanes);

                h2 = tensorop_load_half_f32(a + 1 * lda + 1 * lanes + lanes / 2);

                a1_1 = tensorop_with_high_f32(a1_1, h2);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                a0_0 = tensorop_load_low_f32(a + 2 * lda + 0 * lanes);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c0_0 = vfmaq_laneq_f32(c0_0, a1_0, b0_0, 1);
                h0 = tensorop_load_half_f32(a + 2 * lda + 0 * lanes + lanes / 2);

                __builtin_prefetch(b + 33 + 1 * csb);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c1_0 = vfmaq_laneq_f32(c1_0, a1_1, b0_0, 1);

                c0_1 = vfmaq_laneq_f32(c0_1, a1_0, b0_1, 1);
                a0_1 = tensorop_load_low_f32(a + 2 * lda + 1 * lanes);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c1_1 = vfmaq_laneq_f32(c1_1, a1_1, b0_1, 1);
                a0_0 = tensorop_with_high_f32(a0_0, h0);

                h2 = tensorop_load_half_f32(a + 2 * lda + 1 * lanes + lanes / 2);

                a0_1 = tensorop_with_high_f32(a0_1, h2);

                b1_0 = tensorop_load_low_f32(b + 2 + 0 * csb);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                a += 2 * lda;
                b += 2 * rsb;
            }
            if (k > 1) {
                b0_1 = tensorop_load_low_f32(b + 0 + 1 * csb);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c0_0 = vfmaq_laneq_f32(c0_0, a0_0, b0_0, 0);

                c1_0 = vfmaq_laneq_f32(c1_0, a0_1, b0_0, 0);
                a1_0 = tensorop_load_low_f32(a + 1 * lda + 0 * lanes);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c0_1 = vfmaq_laneq_f32(c0_1, a0_0, b0_1, 0);
                h0 = tensorop_load_half_f32(a + 1 * lda + 0 * lanes + lanes / 2);

                __builtin_prefetch(b + 32 + 0 * csb);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c1_1 = vfmaq_laneq_f32(c1_1, a0_1, b0_1, 0);
                a1_0 = tensorop_with_high_f32(a1_0, h0);

                a1_1 = tensorop_load_low_f32(a + 1 * lda + 1 * lanes);

                h2 = tensorop_load_half_f32(a + 1 * lda + 1 * lanes + lanes / 2);

                a1_1 = tensorop_with_high_f32(a1_1, h2);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c0_0 = vfmaq_laneq_f32(c0_0, a1_0, b0_0, 1);
                __builtin_prefetch(b + 33 + 1 * csb);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c1_0 = vfmaq_laneq_f32(c1_0, a1_1, b0_0, 1);

                c0_1 = vfmaq_laneq_f32(c0_1, a1_0, b0_1, 1);

                c1_1 = vfmaq_laneq_f32(c1_1, a1_1, b0_1, 1);

            } else {
                b0_1 = tensorop_load_low_f32(b + 0 + 1 * csb);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c0_0 = vfmaq_laneq_f32(c0_0, a0_0, b0_0, 0);

                c1_0 = vfmaq_laneq_f32(c1_0, a0_1, b0_0, 0);

                c0_1 = vfmaq_laneq_f32(c0_1, a0_0, b0_1, 0);
                __builtin_prefetch(b + 32 + 0 * csb);

                ((void)(a), __atomic_signal_fence(__ATOMIC_SEQ_CST));

                c1_1 = vfmaq_laneq_f32(c1_1, a0_1, b0_1, 0);
            }

            a += k * lda;
            b += k * rsb;
        }
        k = rest;
    }
    for (; k; --k) {
        const float32x4_t x0 = vld1q_f32(a + 0 * lanes);
        const float32x4_t x1 = vld1q_f32(a + 1 * lanes);
        const float y0 = b[0 * rsb + 0 * csb];
        c0_0 = vfmaq_n_f32(c0_0, x0, y0);
        c1_0 = vfmaq_n_f32(c1_0, x1, y0);
        const float y1 = b[0 * rsb + 1 * csb];
        c0_1 = vfmaq_n_f32(c0_1, x0, y1);
        c1_1 = vfmaq_n_f32(c1_1, x1, y1);
        a += lda;
        b += rsb;
    }

    /* C = alpha * tile + beta * C; at beta = 0 C is not read */
    if (beta == 0) {
        vst1q_f32(c + 0 * ldc + 0 * lanes, vmulq_n_f32(c0_0, alpha));
        vst1q_f32(c + 0 * ldc + 1 * lanes, vmulq_n_f32(c1_0, alpha));
        vst1q_f32(c + 1 * ldc + 0 * lanes, vmulq_n_f32(c0_1, alpha));
        vst1q_f32(c + 1 * ldc + 1 * lanes, vmulq_n_f32(c1_1, alpha));
    } else if (beta == 1) {
        float32x4_t old0_0 = vld1q_f32(c + 0 * ldc + 0 * lanes);
        float32x4_t old1_0 = vld1q_f32(c + 1 * ldc + 0 * lanes);
        float32x4_t old0_1 = vld1q_f32(c + 0 * ldc + 1 * lanes);
        float32x4_t old1_1 = vld1q_f32(c + 1 * ldc + 1 * lanes);
        vst1q_f32(c + 0 * ldc + 0 * lanes, vfmaq_n_f32(old0_0, c0_0, alpha));
        vst1q_f32(c + 0 * ldc + 1 * lanes, vfmaq_n_f32(old0_1, c1_0, alpha));
        vst1q_f32(c + 1 * ldc + 0 * lanes, vfmaq_n_f32(old1_0, c0_1, alpha));
        vst1q_f32(c + 1 * ldc + 1 * lanes, vfmaq_n_f32(old1_1, c1_1, alpha));

    } else {
        float32x4_t old0_0 = vld1q_f32(c + 0 * ldc + 0 * lanes);
        float32x4_t old1_0 = vld1q_f32(c + 1 * ldc + 0 * lanes);
        float32x4_t old0_1 = vld1q_f32(c + 0 * ldc + 1 * lanes);
        float32x4_t old1_1 = vld1q_f32(c + 1 * ldc + 1 * lanes);
        vst1q_f32(c + 0 * ldc + 0 * lanes, vfmaq_n_f32(vmulq_n_f32(c0_0, alpha), old0_0, beta));
        vst1q_f32(c + 0 * ldc + 1 * lanes, vfmaq_n_f32(vmulq_n_f32(c1_0, alpha), old0_1, beta));
        vst1q_f32(c + 1 * ldc + 0 * lanes, vfmaq_n_f32(vmulq_n_f32(c0_1, alpha), old1_0, beta));
        vst1q_f32(c + 1 * ldc + 1 * lanes, vfmaq_n_f32(vmulq_n_f32(c1_1, alpha), old1_1, beta));
    }
}

#define neon_f32_lanes_e9f3_ARGS                                                                             \
    size_t m, size_t k, const float *a, size_t lda, const float *b, size_t sb, float alpha, float beta,      \
        float *c, size_t ldc

static void neon_f32_lanes_e9f3_along_k_1x1(neon_f32_lanes_e9f3_ARGS) {
    (void)sb, (void)lda;
    neon_f32_lanes_e9f3_tile_1x1_tail(m, k, a, 1 * (4), b, 1, sb, alpha, beta, c, ldc);
}
static void neon_f32_lanes_e9f3_along_k_2x1(neon_f32_lanes_e9f3_ARGS) {
    (void)sb, (void)lda;
    neon_f32_lanes_e9f3_tile_2x1_tail(m, k, a, 2 * (4), b, 1, sb, alpha, beta, c, ldc);
}
static void neon_f32_lanes_e9f3_along_k_1x2(neon_f32_lanes_e9f3_ARGS) {
    (void)sb, (void)lda;
    neon_f32_lanes_e9f3_tile_1x2_tail(m, k, a, 1 * (4), b, 1, sb, alpha, beta, c, ldc);
}
static void neon_f32_lanes_e9f3_along_k_2x2(neon_f32_lanes_e9f3_ARGS) {
    (void)sb, (void)lda;
    if (m == 2 * (4)) {
        neon_f32_lanes_e9f3_tile_2x2(m, k, a, 2 * (4), b, 1, sb, alpha, beta, c, ldc);
        return;
    }
    neon_f32_lanes_e9f3_tile_2x2_tail(m, k, a, 2 * (4), b, 1, sb, alpha, beta, c, ldc);
}

static void (*const neon_f32_lanes_e9f3_along_k[2][2])(neon_f32_lanes_e9f3_ARGS) = {
    {neon_f32_lanes_e9f3_along_k_1x1, neon_f32_lanes_e9f3_along_k_2x1},
    {neon_f32_lanes_e9f3_along_k_1x2, neon_f32_lanes_e9f3_along_k_2x2},
};
static void neon_f32_lanes_e9f3_along_n_1x1(neon_f32_lanes_e9f3_ARGS) {
    (void)sb, (void)lda;
    neon_f32_lanes_e9f3_tile_1x1_tail(m, k, a, 1 * (4), b, sb, 1, alpha, beta, c, ldc);
}
static void neon_f32_lanes_e9f3_along_n_2x1(neon_f32_lanes_e9f3_ARGS) {
    (void)sb, (void)lda;
    neon_f32_lanes_e9f3_tile_2x1_tail(m, k, a, 2 * (4), b, sb, 1, alpha, beta, c, ldc);
}
static void neon_f32_lanes_e9f3_along_n_1x2(neon_f32_lanes_e9f3_ARGS) {
    (void)sb, (void)lda;
    neon_f32_lanes_e9f3_tile_1x2_tail(m, k, a, 1 * (4), b, sb, 1, alpha, beta, c, ldc);
}
static void neon_f32_lanes_e9f3_along_n_2x2(neon_f32_lanes_e9f3_ARGS) {
    (void)sb, (void)lda;
    if (m == 2 * (4)) {
        neon_f32_lanes_e9f3_tile_2x2(m, k, a, 2 * (4), b, sb, 1, alpha, beta, c, ldc);
        return;
    }
    neon_f32_lanes_e9f3_tile_2x2_tail(m, k, a, 2 * (4), b, sb, 1, alpha, beta, c, ldc);
}

static void (*const neon_f32_lanes_e9f3_along_n[2][2])(neon_f32_lanes_e9f3_ARGS) = {
    {neon_f32_lanes_e9f3_along_n_1x1, neon_f32_lanes_e9f3_along_n_2x1},
    {neon_f32_lanes_e9f3_along_n_1x2, neon_f32_lanes_e9f3_along_n_2x2},
};
