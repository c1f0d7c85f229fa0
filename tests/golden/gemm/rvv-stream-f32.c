/* rvv_f32_stream_f04e: micro-kernel 'stream' at fetch=4 ku=2 lmul=2 mr_vectors=64 nr=1 wide=2 (rvv, f32)
 * updates columns of C with `ku` columns of A at a time: A is read once, from one end to the other; C stays
 * in L1 and passes through registers; for products with few columns, where a register tile would stride
 * through A's pages; where prefetchers follow many streams, a single column takes four columns of A at a time
 * in pieces of many vectors */
static inline __attribute__((always_inline)) void
rvv_f32_stream_f04e_tile_1x1(size_t m, size_t k, const float *restrict a, size_t lda, const float *restrict b,
                             size_t rsb, size_t csb, float alpha, float beta, float *restrict c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e32m2();
    const size_t full = lanes;
    (void)m, (void)full, (void)lanes, (void)rsb;
    /* C = beta * C; at beta = 0 C is not read */
    if (beta != 1)
        for (size_t i = 0; i < m; i += lanes) {
            const size_t tail = ((size_t)(m - i < lanes ? m - i : lanes));
            if (beta == 0) {
                __riscv_vse32_v_f32m2(c + 0 * ldc + i, __riscv_vfmv_v_f_f32m2(0, tail), tail);
            } else {
                const vfloat32m2_t c0 = __riscv_vle32_v_f32m2(c + 0 * ldc + i, tail);
                __riscv_vse32_v_f32m2(c + 0 * ldc + i, __riscv_vfmul_vf_f32m2(c0, beta, tail), tail);
            }
        }
    for (; k >= 2; k -= 2) {
        const float b0_0 = alpha * b[0 * rsb + 0 * csb];
        const float b1_0 = alpha * b[1 * rsb + 0 * csb];

        size_t i = 0;
        for (; i + 2 * lanes <= m; i += 2 * lanes) {
            vfloat32m2_t c0_0 = __riscv_vle32_v_f32m2(c + 0 * ldc + i + 0 * lanes, full);
            vfloat32m2_t c0_1 = __riscv_vle32_v_f32m2(c + 0 * ldc + i + 1 * lanes, full);
            const vfloat32m2_t a0_0 = __riscv_vle32_v_f32m2(a + 0 * lda + i + 0 * lanes, full);
            __builtin_prefetch(a + 0 * lda + i + 0 * lanes + 64);
            if (lanes > 16) { /* a vector is longer than a cache line */
                __builtin_prefetch(a + 0 * lda + i + 0 * lanes + 80);
            }
            const vfloat32m2_t a0_1 = __riscv_vle32_v_f32m2(a + 0 * lda + i + 1 * lanes, full);
            __builtin_prefetch(a + 0 * lda + i + 1 * lanes + 64);
            if (lanes > 16) { /* a vector is longer than a cache line */
                __builtin_prefetch(a + 0 * lda + i + 1 * lanes + 80);
            }
            const vfloat32m2_t a1_0 = __riscv_vle32_v_f32m2(a + 1 * lda + i + 0 * lanes, full);
            __builtin_prefetch(a + 1 * lda + i + 0 * lanes + 64);
            if (lanes > 16) { /* a vector is longer than a cache line */
                __builtin_prefetch(a + 1 * lda + i + 0 * lanes + 80);
            }
            const vfloat32m2_t a1_1 = __riscv_vle32_v_f32m2(a + 1 * lda + i + 1 * lanes, full);
            __builtin_prefetch(a + 1 * lda + i + 1 * lanes + 64);
            if (lanes > 16) { /* a vector is longer than a cache line */
                __builtin_prefetch(a + 1 * lda + i + 1 * lanes + 80);
            }
            c0_0 = __riscv_vfmacc_vf_f32m2(c0_0, b0_0, a0_0, full);
            c0_1 = __riscv_vfmacc_vf_f32m2(c0_1, b0_0, a0_1, full);
            c0_0 = __riscv_vfmacc_vf_f32m2(c0_0, b1_0, a1_0, full);
            c0_1 = __riscv_vfmacc_vf_f32m2(c0_1, b1_0, a1_1, full);
            __riscv_vse32_v_f32m2(c + 0 * ldc + i + 0 * lanes, c0_0, full);
            __riscv_vse32_v_f32m2(c + 0 * ldc + i + 1 * lanes, c0_1, full);
        }
        for (; i < m; i += lanes) {
            const size_t tail = ((size_t)(m - i < lanes ? m - i : lanes));
            vfloat32m2_t c0_0 = __riscv_vle32_v_f32m2(c + 0 * ldc + i + 0 * lanes, tail);
            const vfloat32m2_t a0_0 = __riscv_vle32_v_f32m2(a + 0 * lda + i + 0 * lanes, tail);
            const vfloat32m2_t a1_0 = __riscv_vle32_v_f32m2(a + 1 * lda + i + 0 * lanes, tail);
            c0_0 = __riscv_vfmacc_vf_f32m2(c0_0, b0_0, a0_0, tail);
            c0_0 = __riscv_vfmacc_vf_f32m2(c0_0, b1_0, a1_0, tail);
            __riscv_vse32_v_f32m2(c + 0 * ldc + i + 0 * lanes, c0_0, tail);
        }
        a += 2 * lda;
        b += 2 * rsb;
    }
    for (; k; --k) {
        const float b0_0 = alpha * b[0 * rsb + 0 * csb];

        size_t i = 0;
        for (; i + 2 * lanes <= m; i += 2 * lanes) {
            vfloat32m2_t c0_0 = __riscv_vle32_v_f32m2(c + 0 * ldc + i + 0 * lanes, full);
            vfloat32m2_t c0_1 = __riscv_vle32_v_f32m2(c + 0 * ldc + i + 1 * lanes, full);
            const vfloat32m2_t a0_0 = __riscv_vle32_v_f32m2(a + 0 * lda + i + 0 * lanes, full);
            __builtin_prefetch(a + 0 * lda + i + 0 * lanes + 64);
            if (lanes > 16) { /* a vector is longer than a cache line */
                __builtin_prefetch(a + 0 * lda + i + 0 * lanes + 80);
            }
            const vfloat32m2_t a0_1 = __riscv_vle32_v_f32m2(a + 0 * lda + i + 1 * lanes, full);
            __builtin_prefetch(a + 0 * lda + i + 1 * lanes + 64);
            if (lanes > 16) { /* a vector is longer than a cache line */
                __builtin_prefetch(a + 0 * lda + i + 1 * lanes + 80);
            }
            c0_0 = __riscv_vfmacc_vf_f32m2(c0_0, b0_0, a0_0, full);
            c0_1 = __riscv_vfmacc_vf_f32m2(c0_1, b0_0, a0_1, full);
            __riscv_vse32_v_f32m2(c + 0 * ldc + i + 0 * lanes, c0_0, full);
            __riscv_vse32_v_f32m2(c + 0 * ldc + i + 1 * lanes, c0_1, full);
        }
        for (; i < m; i += lanes) {
            const size_t tail = ((size_t)(m - i < lanes ? m - i : lanes));
            vfloat32m2_t c0_0 = __riscv_vle32_v_f32m2(c + 0 * ldc + i + 0 * lanes, tail);
            const vfloat32m2_t a0_0 = __riscv_vle32_v_f32m2(a + 0 * lda + i + 0 * lanes, tail);
            c0_0 = __riscv_vfmacc_vf_f32m2(c0_0, b0_0, a0_0, tail);
            __riscv_vse32_v_f32m2(c + 0 * ldc + i + 0 * lanes, c0_0, tail);
        }
        a += 1 * lda;
        b += 1 * rsb;
    }
}

#define rvv_f32_stream_f04e_ARGS                                                                             \
    size_t m, size_t k, const float *a, size_t lda, const float *b, size_t sb, float alpha, float beta,      \
        float *c, size_t ldc

static void rvv_f32_stream_f04e_along_k_1x1(rvv_f32_stream_f04e_ARGS) {
    (void)sb, (void)lda;
    rvv_f32_stream_f04e_tile_1x1(m, k, a, lda, b, 1, sb, alpha, beta, c, ldc);
}

static void (*const rvv_f32_stream_f04e_along_k[1][1])(rvv_f32_stream_f04e_ARGS) = {
    {rvv_f32_stream_f04e_along_k_1x1},
};
static void rvv_f32_stream_f04e_along_n_1x1(rvv_f32_stream_f04e_ARGS) {
    (void)sb, (void)lda;
    rvv_f32_stream_f04e_tile_1x1(m, k, a, lda, b, sb, 1, alpha, beta, c, ldc);
}

static void (*const rvv_f32_stream_f04e_along_n[1][1])(rvv_f32_stream_f04e_ARGS) = {
    {rvv_f32_stream_f04e_along_n_1x1},
};
