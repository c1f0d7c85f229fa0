/* rvv_f32_dot_a73c_vlen256: micro-kernel 'dot' at ahead=1 fetch=4 ku=1 late=4 lead=0 lmul=1 mr_vectors=2 nr=1
 * (spacemit-k1, f32) mr_vectors x nr inner products: vectors run along k in rows of A and columns of B; each
 * accumulator holds partial sums of one element of C and is reduced at the end; nothing is broadcast; no lane
 * is idle even with few rows or columns; B is loaded `lead` columns before its use, or (with `ahead`) A and B
 * are loaded one step of k early, between FMAs, into registers last read `late` FMAs before; rows and columns
 * are prefetched `fetch` cache lines ahead; with `straight`, a matrix that meets only a few rows or columns
 * is read from end to end */
static inline __attribute__((always_inline)) void
rvv_f32_dot_a73c_vlen256_tile_1x1(size_t m, size_t k, const float *restrict a, size_t lda,
                                  const float *restrict b, size_t rsb, size_t csb, float alpha, float beta,
                                  float *restrict c, size_t ldc) {
    const size_t lanes = (256 / 32 * 1);
    const size_t full = lanes;
    (void)m, (void)full, (void)lanes, (void)rsb;
    vfloat32m1_t c0_0 = __riscv_vfmv_v_f_f32m1(0, full);
    size_t p = 0;
    if (k >= 2 * lanes) {
        vfloat32m1_t v0 = __riscv_vle32_v_f32m1(b + 0 * csb + p + 0 * lanes, full);
        vfloat32m1_t h0_0 = __riscv_vle32_v_f32m1(a + 0 * lda + p + 0 * lanes, full), h1_0 = h0_0;
        for (; p + 3 * lanes <= k; p += 2 * lanes) {
            ((void)(c), __atomic_signal_fence(__ATOMIC_SEQ_CST));
            v0 = __riscv_vle32_tu(v0, b + 0 * csb + p + 0 * lanes, full);
            __builtin_prefetch(b + 0 * csb + p + 0 * lanes + 64);
            if (lanes > 16)
                __builtin_trap();

            ((void)(c), __atomic_signal_fence(__ATOMIC_SEQ_CST));
            h1_0 = __riscv_vle32_tu(h1_0, a + 0 * lda + p + 1 * lanes, full);
            if (lanes > 8)
                __builtin_trap();
            if (lanes > 16)
                __builtin_trap();

            c0_0 = __riscv_vfmacc_vv_f32m1_tu(c0_0, h0_0, v0, full);

            ((void)(c), __atomic_signal_fence(__ATOMIC_SEQ_CST));
            v0 = __riscv_vle32_tu(v0, b + 0 * csb + p + 1 * lanes, full);
            if (lanes > 8)
                __builtin_trap();
            if (lanes > 16)
                __builtin_trap();

            ((void)(c), __atomic_signal_fence(__ATOMIC_SEQ_CST));
            h0_0 = __riscv_vle32_tu(h0_0, a + 0 * lda + p + 2 * lanes, full);
            __builtin_prefetch(a + 0 * lda + p + 2 * lanes + 64);
            if (lanes > 16)
                __builtin_trap();

            c0_0 = __riscv_vfmacc_vv_f32m1_tu(c0_0, h1_0, v0, full);
        }
        for (; p + 2 * lanes <= k; p += lanes) {
            ((void)(c), __atomic_signal_fence(__ATOMIC_SEQ_CST));
            v0 = __riscv_vle32_tu(v0, b + 0 * csb + p + 0 * lanes, full);
            __builtin_prefetch(b + 0 * csb + p + 0 * lanes + 64);
            if (lanes > 16)
                __builtin_trap();

            ((void)(c), __atomic_signal_fence(__ATOMIC_SEQ_CST));
            h1_0 = __riscv_vle32_tu(h1_0, a + 0 * lda + p + 1 * lanes, full);
            if (lanes > 8)
                __builtin_trap();
            if (lanes > 16)
                __builtin_trap();

            c0_0 = __riscv_vfmacc_vv_f32m1_tu(c0_0, h0_0, v0, full);

            h0_0 = h1_0;
        }
        v0 = __riscv_vle32_v_f32m1(b + 0 * csb + p + 0 * lanes, full);
        c0_0 = __riscv_vfmacc_vv_f32m1_tu(c0_0, h0_0, v0, full);
        p += lanes;
    } else if (k >= lanes) {
        const vfloat32m1_t a0 = __riscv_vle32_v_f32m1(a + 0 * lda + p, full);
        const vfloat32m1_t b0 = __riscv_vle32_v_f32m1(b + 0 * csb + p, full);
        c0_0 = __riscv_vfmacc_vv_f32m1(c0_0, a0, b0, full);

        p += lanes;
    }
    if (p < k) {
        const size_t tail = ((size_t)(k - p));
        const vfloat32m1_t a0 = __riscv_vle32_v_f32m1(a + 0 * lda + p, tail);
        const vfloat32m1_t b0 = __riscv_vle32_v_f32m1(b + 0 * csb + p, tail);
        c0_0 = __riscv_vfmacc_vv_f32m1_tu(c0_0, a0, b0, tail);
    }
    const float dot0_0 = __riscv_vfmv_f_s_f32m1_f32(
        __riscv_vfredusum_vs_f32m1_f32m1(c0_0, __riscv_vfmv_v_f_f32m1(0, 1), lanes));
    if (beta == 0) { /* C is not read */
        ((void)(c),
         __atomic_signal_fence(
             __ATOMIC_SEQ_CST)); /* the compiler must not combine these stores into vectors: that is slower */
        c[0 + 0 * ldc] = alpha * dot0_0;
    } else {
        const float old0_0 = c[0 + 0 * ldc];
        ((void)(c), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        c[0 + 0 * ldc] = beta * old0_0 + alpha * dot0_0;
    }
}

static inline __attribute__((always_inline)) void
rvv_f32_dot_a73c_vlen256_tile_2x1(size_t m, size_t k, const float *restrict a, size_t lda,
                                  const float *restrict b, size_t rsb, size_t csb, float alpha, float beta,
                                  float *restrict c, size_t ldc) {
    const size_t lanes = (256 / 32 * 1);
    const size_t full = lanes;
    (void)m, (void)full, (void)lanes, (void)rsb;
    vfloat32m1_t c0_0 = __riscv_vfmv_v_f_f32m1(0, full);
    vfloat32m1_t c1_0 = __riscv_vfmv_v_f_f32m1(0, full);
    size_t p = 0;
    if (k >= 2 * lanes) {
        vfloat32m1_t v0 = __riscv_vle32_v_f32m1(a + 0 * lda + p + 0 * lanes, full);
        vfloat32m1_t v1 = __riscv_vle32_v_f32m1(a + 1 * lda + p + 0 * lanes, full);
        vfloat32m1_t h0_0 = __riscv_vle32_v_f32m1(b + 0 * csb + p + 0 * lanes, full), h1_0 = h0_0;
        for (; p + 3 * lanes <= k; p += 2 * lanes) {
            ((void)(c), __atomic_signal_fence(__ATOMIC_SEQ_CST));
            v0 = __riscv_vle32_tu(v0, a + 0 * lda + p + 0 * lanes, full);
            __builtin_prefetch(a + 0 * lda + p + 0 * lanes + 64);
            if (lanes > 16)
                __builtin_trap();

            ((void)(c), __atomic_signal_fence(__ATOMIC_SEQ_CST));
            h1_0 = __riscv_vle32_tu(h1_0, b + 0 * csb + p + 1 * lanes, full);
            if (lanes > 8)
                __builtin_trap();
            if (lanes > 16)
                __builtin_trap();

            c0_0 = __riscv_vfmacc_vv_f32m1_tu(c0_0, h0_0, v0, full);
            ((void)(c), __atomic_signal_fence(__ATOMIC_SEQ_CST));
            v1 = __riscv_vle32_tu(v1, a + 1 * lda + p + 0 * lanes, full);
            __builtin_prefetch(a + 1 * lda + p + 0 * lanes + 64);
            if (lanes > 16)
                __builtin_trap();

            c1_0 = __riscv_vfmacc_vv_f32m1_tu(c1_0, h0_0, v1, full);

            ((void)(c), __atomic_signal_fence(__ATOMIC_SEQ_CST));
            v0 = __riscv_vle32_tu(v0, a + 0 * lda + p + 1 * lanes, full);
            if (lanes > 8)
                __builtin_trap();
            if (lanes > 16)
                __builtin_trap();

            ((void)(c), __atomic_signal_fence(__ATOMIC_SEQ_CST));
            h0_0 = __riscv_vle32_tu(h0_0, b + 0 * csb + p + 2 * lanes, full);
            __builtin_prefetch(b + 0 * csb + p + 2 * lanes + 64);
            if (lanes > 16)
                __builtin_trap();

            c0_0 = __riscv_vfmacc_vv_f32m1_tu(c0_0, h1_0, v0, full);
            ((void)(c), __atomic_signal_fence(__ATOMIC_SEQ_CST));
            v1 = __riscv_vle32_tu(v1, a + 1 * lda + p + 1 * lanes, full);
            if (lanes > 8)
                __builtin_trap();
            if (lanes > 16)
                __builtin_trap();

            c1_0 = __riscv_vfmacc_vv_f32m1_tu(c1_0, h1_0, v1, full);
        }
        for (; p + 2 * lanes <= k; p += lanes) {
            ((void)(c), __atomic_signal_fence(__ATOMIC_SEQ_CST));
            v0 = __riscv_vle32_tu(v0, a + 0 * lda + p + 0 * lanes, full);
            __builtin_prefetch(a + 0 * lda + p + 0 * lanes + 64);
            if (lanes > 16)
                __builtin_trap();

            ((void)(c), __atomic_signal_fence(__ATOMIC_SEQ_CST));
            h1_0 = __riscv_vle32_tu(h1_0, b + 0 * csb + p + 1 * lanes, full);
            if (lanes > 8)
                __builtin_trap();
            if (lanes > 16)
                __builtin_trap();

            c0_0 = __riscv_vfmacc_vv_f32m1_tu(c0_0, h0_0, v0, full);
            ((void)(c), __atomic_signal_fence(__ATOMIC_SEQ_CST));
            v1 = __riscv_vle32_tu(v1, a + 1 * lda + p + 0 * lanes, full);
            __builtin_prefetch(a + 1 * lda + p + 0 * lanes + 64);
            if (lanes > 16)
                __builtin_trap();

            c1_0 = __riscv_vfmacc_vv_f32m1_tu(c1_0, h0_0, v1, full);

            h0_0 = h1_0;
        }
        v0 = __riscv_vle32_v_f32m1(a + 0 * lda + p + 0 * lanes, full);
        c0_0 = __riscv_vfmacc_vv_f32m1_tu(c0_0, h0_0, v0, full);
        v1 = __riscv_vle32_v_f32m1(a + 1 * lda + p + 0 * lanes, full);
        c1_0 = __riscv_vfmacc_vv_f32m1_tu(c1_0, h0_0, v1, full);
        p += lanes;
    } else if (k >= lanes) {
        const vfloat32m1_t a0 = __riscv_vle32_v_f32m1(a + 0 * lda + p, full);
        const vfloat32m1_t a1 = __riscv_vle32_v_f32m1(a + 1 * lda + p, full);
        const vfloat32m1_t b0 = __riscv_vle32_v_f32m1(b + 0 * csb + p, full);
        c0_0 = __riscv_vfmacc_vv_f32m1(c0_0, a0, b0, full);
        c1_0 = __riscv_vfmacc_vv_f32m1(c1_0, a1, b0, full);

        p += lanes;
    }
    if (p < k) {
        const size_t tail = ((size_t)(k - p));
        const vfloat32m1_t a0 = __riscv_vle32_v_f32m1(a + 0 * lda + p, tail);
        const vfloat32m1_t a1 = __riscv_vle32_v_f32m1(a + 1 * lda + p, tail);
        const vfloat32m1_t b0 = __riscv_vle32_v_f32m1(b + 0 * csb + p, tail);
        c0_0 = __riscv_vfmacc_vv_f32m1_tu(c0_0, a0, b0, tail);
        c1_0 = __riscv_vfmacc_vv_f32m1_tu(c1_0, a1, b0, tail);
    }
    const float dot0_0 = __riscv_vfmv_f_s_f32m1_f32(
        __riscv_vfredusum_vs_f32m1_f32m1(c0_0, __riscv_vfmv_v_f_f32m1(0, 1), lanes));
    const float dot1_0 = __riscv_vfmv_f_s_f32m1_f32(
        __riscv_vfredusum_vs_f32m1_f32m1(c1_0, __riscv_vfmv_v_f_f32m1(0, 1), lanes));
    if (beta == 0) { /* C is not read */
        ((void)(c),
         __atomic_signal_fence(
             __ATOMIC_SEQ_CST)); /* the compiler must not combine these stores into vectors: that is slower */
        c[0 + 0 * ldc] = alpha * dot0_0;
        ((void)(c),
         __atomic_signal_fence(
             __ATOMIC_SEQ_CST)); /* the compiler must not combine these stores into vectors: that is slower */
        c[1 + 0 * ldc] = alpha * dot1_0;
    } else {
        const float old0_0 = c[0 + 0 * ldc];
        const float old1_0 = c[1 + 0 * ldc];
        ((void)(c), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        c[0 + 0 * ldc] = beta * old0_0 + alpha * dot0_0;
        ((void)(c), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        c[1 + 0 * ldc] = beta * old1_0 + alpha * dot1_0;
    }
}

#define rvv_f32_dot_a73c_vlen256_ARGS                                                                        \
    size_t m, size_t k, const float *a, size_t lda, const float *b, size_t sb, float alpha, float beta,      \
        float *c, size_t ldc

static void rvv_f32_dot_a73c_vlen256_along_k_1x1(rvv_f32_dot_a73c_vlen256_ARGS) {
    (void)sb, (void)lda;
    rvv_f32_dot_a73c_vlen256_tile_1x1(m, k, a, lda, b, 1, sb, alpha, beta, c, ldc);
}
static void rvv_f32_dot_a73c_vlen256_along_k_2x1(rvv_f32_dot_a73c_vlen256_ARGS) {
    (void)sb, (void)lda;
    rvv_f32_dot_a73c_vlen256_tile_2x1(m, k, a, lda, b, 1, sb, alpha, beta, c, ldc);
}

static void (*const rvv_f32_dot_a73c_vlen256_along_k[1][2])(rvv_f32_dot_a73c_vlen256_ARGS) = {
    {rvv_f32_dot_a73c_vlen256_along_k_1x1, rvv_f32_dot_a73c_vlen256_along_k_2x1},
};
