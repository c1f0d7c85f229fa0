/* rvv_i8_outer_10df: micro-kernel 'outer' at ahead=1 c_ahead=0 fetch=6 ku=2 late=0 lead=2 lmul=2 mr_vectors=1
 * nr=2 (rvv, i8) rank-1 updates of an mr_vectors x nr register tile: vectors along m, one scalar of B per
 * column; to hide latency, A is loaded `ahead` k steps and B `lead` columns before their use; A's loads begin
 * after `late` columns, when the last readers of their registers are done; A is prefetched into L1 `fetch` k
 * steps before its loads; with `c_ahead`, columns of C are prefetched while the tile is computed */
static inline __attribute__((always_inline)) void
rvv_i8_outer_10df_tile_1x1_tail(size_t m, size_t k, const int16_t *restrict a, size_t lda,
                                const int16_t *restrict b, size_t rsb, size_t csb, int32_t alpha,
                                int32_t beta, int32_t *restrict c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e32m2();
    const size_t full = lanes;
    const size_t tail = ((size_t)(m - 0 * lanes));
    (void)m, (void)full, (void)lanes, (void)rsb;
    vint32m2_t c0_0 = __riscv_vmv_v_x_i32m2(0, tail);
    vint16m1_t a0_0 = __riscv_vle16_v_i16m1(a + 0 * lda + 0 * lanes, tail);
    vint16m1_t a1_0;
    int16_t b0;
    for (; k > 2; k -= 2) {
        a1_0 = __riscv_vle16_v_i16m1(a + 1 * lda + 0 * lanes, tail);
        __builtin_prefetch(a + 7 * lda + 0 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b0 = b[0 * rsb + 0 * csb];
        if (rsb == 1) { /* each column is a separate stream */
            __builtin_prefetch(b + 0 * rsb + 0 * csb + 40);
        }
        c0_0 = __riscv_vwmacc_vx_i32m2(c0_0, b0, a0_0, tail);
        a0_0 = __riscv_vle16_v_i16m1(a + 2 * lda + 0 * lanes, tail);
        __builtin_prefetch(a + 8 * lda + 0 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b0 = b[1 * rsb + 0 * csb];
        c0_0 = __riscv_vwmacc_vx_i32m2(c0_0, b0, a1_0, tail);
        a += 2 * lda;
        b += 2 * rsb;
    }
    b0 = b[0 * rsb + 0 * csb];
    c0_0 = __riscv_vwmacc_vx_i32m2(c0_0, b0, a0_0, tail);
    a += lda;
    b += rsb;
    --k;
    for (; k; --k) {
        const vint16m1_t a0 = __riscv_vle16_v_i16m1(a + 0 * lda + 0 * lanes, tail);
        const int16_t b0 = b[0 * rsb + 0 * csb];
        c0_0 = __riscv_vwmacc_vx_i32m2(c0_0, b0, a0, tail);
        a += lda;
        b += rsb;
    }
    /* C = alpha * tile + beta * C; at beta = 0 C is not read */
    if (beta == 0) {
        __riscv_vse32_v_i32m2(c + 0 * ldc + 0 * lanes, __riscv_vmul_vx_i32m2(c0_0, alpha, tail), tail);
    } else if (beta == 1) {
        vint32m2_t old0_0 = __riscv_vle32_v_i32m2(c + 0 * ldc + 0 * lanes, tail);
        __riscv_vse32_v_i32m2(c + 0 * ldc + 0 * lanes, __riscv_vmacc_vx_i32m2(old0_0, alpha, c0_0, tail),
                              tail);

    } else {
        vint32m2_t old0_0 = __riscv_vle32_v_i32m2(c + 0 * ldc + 0 * lanes, tail);
        __riscv_vse32_v_i32m2(
            c + 0 * ldc + 0 * lanes,
            __riscv_vmacc_vx_i32m2(__riscv_vmul_vx_i32m2(c0_0, alpha, tail), beta, old0_0, tail), tail);
    }
}

static inline __attribute__((always_inline)) void
rvv_i8_outer_10df_tile_1x2_tail(size_t m, size_t k, const int16_t *restrict a, size_t lda,
                                const int16_t *restrict b, size_t rsb, size_t csb, int32_t alpha,
                                int32_t beta, int32_t *restrict c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e32m2();
    const size_t full = lanes;
    const size_t tail = ((size_t)(m - 0 * lanes));
    (void)m, (void)full, (void)lanes, (void)rsb;
    vint32m2_t c0_0 = __riscv_vmv_v_x_i32m2(0, tail);
    vint32m2_t c0_1 = __riscv_vmv_v_x_i32m2(0, tail);
    vint16m1_t a0_0 = __riscv_vle16_v_i16m1(a + 0 * lda + 0 * lanes, tail);
    vint16m1_t a1_0;
    int16_t b0 = b[0 * rsb + 0 * csb];
    int16_t b1;
    for (; k > 2; k -= 2) {
        a1_0 = __riscv_vle16_v_i16m1(a + 1 * lda + 0 * lanes, tail);
        __builtin_prefetch(a + 7 * lda + 0 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b1 = b[0 * rsb + 1 * csb];
        if (rsb == 1) { /* each column is a separate stream */
            __builtin_prefetch(b + 0 * rsb + 0 * csb + 40);
        }
        c0_0 = __riscv_vwmacc_vx_i32m2(c0_0, b0, a0_0, tail);
        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b0 = b[1 * rsb + 0 * csb];
        c0_1 = __riscv_vwmacc_vx_i32m2(c0_1, b1, a0_0, tail);
        a0_0 = __riscv_vle16_v_i16m1(a + 2 * lda + 0 * lanes, tail);
        __builtin_prefetch(a + 8 * lda + 0 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b1 = b[1 * rsb + 1 * csb];
        c0_0 = __riscv_vwmacc_vx_i32m2(c0_0, b0, a1_0, tail);
        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b += 2 * rsb;
        b0 = b[0 * rsb + 0 * csb];
        if (rsb == 1) { /* each column is a separate stream */
            __builtin_prefetch(b + 0 * rsb + 1 * csb + 40);
        }
        c0_1 = __riscv_vwmacc_vx_i32m2(c0_1, b1, a1_0, tail);
        a += 2 * lda;
    }
    b1 = b[0 * rsb + 1 * csb];
    c0_0 = __riscv_vwmacc_vx_i32m2(c0_0, b0, a0_0, tail);
    c0_1 = __riscv_vwmacc_vx_i32m2(c0_1, b1, a0_0, tail);
    a += lda;
    b += rsb;
    --k;
    for (; k; --k) {
        const vint16m1_t a0 = __riscv_vle16_v_i16m1(a + 0 * lda + 0 * lanes, tail);
        const int16_t b0 = b[0 * rsb + 0 * csb];
        c0_0 = __riscv_vwmacc_vx_i32m2(c0_0, b0, a0, tail);
        const int16_t b1 = b[0 * rsb + 1 * csb];
        c0_1 = __riscv_vwmacc_vx_i32m2(c0_1, b1, a0, tail);
        a += lda;
        b += rsb;
    }
    /* C = alpha * tile + beta * C; at beta = 0 C is not read */
    if (beta == 0) {
        __riscv_vse32_v_i32m2(c + 0 * ldc + 0 * lanes, __riscv_vmul_vx_i32m2(c0_0, alpha, tail), tail);
        __riscv_vse32_v_i32m2(c + 1 * ldc + 0 * lanes, __riscv_vmul_vx_i32m2(c0_1, alpha, tail), tail);
    } else if (beta == 1) {
        vint32m2_t old0_0 = __riscv_vle32_v_i32m2(c + 0 * ldc + 0 * lanes, tail);
        vint32m2_t old1_0 = __riscv_vle32_v_i32m2(c + 1 * ldc + 0 * lanes, tail);
        __riscv_vse32_v_i32m2(c + 0 * ldc + 0 * lanes, __riscv_vmacc_vx_i32m2(old0_0, alpha, c0_0, tail),
                              tail);
        __riscv_vse32_v_i32m2(c + 1 * ldc + 0 * lanes, __riscv_vmacc_vx_i32m2(old1_0, alpha, c0_1, tail),
                              tail);

    } else {
        vint32m2_t old0_0 = __riscv_vle32_v_i32m2(c + 0 * ldc + 0 * lanes, tail);
        vint32m2_t old1_0 = __riscv_vle32_v_i32m2(c + 1 * ldc + 0 * lanes, tail);
        __riscv_vse32_v_i32m2(
            c + 0 * ldc + 0 * lanes,
            __riscv_vmacc_vx_i32m2(__riscv_vmul_vx_i32m2(c0_0, alpha, tail), beta, old0_0, tail), tail);
        __riscv_vse32_v_i32m2(
            c + 1 * ldc + 0 * lanes,
            __riscv_vmacc_vx_i32m2(__riscv_vmul_vx_i32m2(c0_1, alpha, tail), beta, old1_0, tail), tail);
    }
}

static inline __attribute__((always_inline)) void
rvv_i8_outer_10df_tile_1x2(size_t m, size_t k, const int16_t *restrict a, size_t lda,
                           const int16_t *restrict b, size_t rsb, size_t csb, int32_t alpha, int32_t beta,
                           int32_t *restrict c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e32m2();
    const size_t full = lanes;
    (void)m, (void)full, (void)lanes, (void)rsb;
    vint32m2_t c0_0 = __riscv_vmv_v_x_i32m2(0, full);
    vint32m2_t c0_1 = __riscv_vmv_v_x_i32m2(0, full);
    vint16m1_t a0_0 = __riscv_vle16_v_i16m1(a + 0 * lda + 0 * lanes, full);
    vint16m1_t a1_0;
    int16_t b0 = b[0 * rsb + 0 * csb];
    int16_t b1;
    for (; k > 2; k -= 2) {
        a1_0 = __riscv_vle16_v_i16m1(a + 1 * lda + 0 * lanes, full);
        __builtin_prefetch(a + 7 * lda + 0 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b1 = b[0 * rsb + 1 * csb];
        if (rsb == 1) { /* each column is a separate stream */
            __builtin_prefetch(b + 0 * rsb + 0 * csb + 40);
        }
        c0_0 = __riscv_vwmacc_vx_i32m2(c0_0, b0, a0_0, full);
        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b0 = b[1 * rsb + 0 * csb];
        c0_1 = __riscv_vwmacc_vx_i32m2(c0_1, b1, a0_0, full);
        a0_0 = __riscv_vle16_v_i16m1(a + 2 * lda + 0 * lanes, full);
        __builtin_prefetch(a + 8 * lda + 0 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b1 = b[1 * rsb + 1 * csb];
        c0_0 = __riscv_vwmacc_vx_i32m2(c0_0, b0, a1_0, full);
        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b += 2 * rsb;
        b0 = b[0 * rsb + 0 * csb];
        if (rsb == 1) { /* each column is a separate stream */
            __builtin_prefetch(b + 0 * rsb + 1 * csb + 40);
        }
        c0_1 = __riscv_vwmacc_vx_i32m2(c0_1, b1, a1_0, full);
        a += 2 * lda;
    }
    b1 = b[0 * rsb + 1 * csb];
    c0_0 = __riscv_vwmacc_vx_i32m2(c0_0, b0, a0_0, full);
    c0_1 = __riscv_vwmacc_vx_i32m2(c0_1, b1, a0_0, full);
    a += lda;
    b += rsb;
    --k;
    for (; k; --k) {
        const vint16m1_t a0 = __riscv_vle16_v_i16m1(a + 0 * lda + 0 * lanes, full);
        const int16_t b0 = b[0 * rsb + 0 * csb];
        c0_0 = __riscv_vwmacc_vx_i32m2(c0_0, b0, a0, full);
        const int16_t b1 = b[0 * rsb + 1 * csb];
        c0_1 = __riscv_vwmacc_vx_i32m2(c0_1, b1, a0, full);
        a += lda;
        b += rsb;
    }
    /* C = alpha * tile + beta * C; at beta = 0 C is not read */
    if (beta == 0) {
        __riscv_vse32_v_i32m2(c + 0 * ldc + 0 * lanes, __riscv_vmul_vx_i32m2(c0_0, alpha, full), full);
        __riscv_vse32_v_i32m2(c + 1 * ldc + 0 * lanes, __riscv_vmul_vx_i32m2(c0_1, alpha, full), full);
    } else if (beta == 1) {
        vint32m2_t old0_0 = __riscv_vle32_v_i32m2(c + 0 * ldc + 0 * lanes, full);
        vint32m2_t old1_0 = __riscv_vle32_v_i32m2(c + 1 * ldc + 0 * lanes, full);
        __riscv_vse32_v_i32m2(c + 0 * ldc + 0 * lanes, __riscv_vmacc_vx_i32m2(old0_0, alpha, c0_0, full),
                              full);
        __riscv_vse32_v_i32m2(c + 1 * ldc + 0 * lanes, __riscv_vmacc_vx_i32m2(old1_0, alpha, c0_1, full),
                              full);

    } else {
        vint32m2_t old0_0 = __riscv_vle32_v_i32m2(c + 0 * ldc + 0 * lanes, full);
        vint32m2_t old1_0 = __riscv_vle32_v_i32m2(c + 1 * ldc + 0 * lanes, full);
        __riscv_vse32_v_i32m2(
            c + 0 * ldc + 0 * lanes,
            __riscv_vmacc_vx_i32m2(__riscv_vmul_vx_i32m2(c0_0, alpha, full), beta, old0_0, full), full);
        __riscv_vse32_v_i32m2(
            c + 1 * ldc + 0 * lanes,
            __riscv_vmacc_vx_i32m2(__riscv_vmul_vx_i32m2(c0_1, alpha, full), beta, old1_0, full), full);
    }
}

#define rvv_i8_outer_10df_ARGS                                                                               \
    size_t m, size_t k, const int16_t *a, size_t lda, const int16_t *b, size_t sb, int32_t alpha,            \
        int32_t beta, int32_t *c, size_t ldc

static void rvv_i8_outer_10df_packed_1x1(rvv_i8_outer_10df_ARGS) {
    (void)sb, (void)lda;
    rvv_i8_outer_10df_tile_1x1_tail(m, k, a, lda, b, 1, 1, alpha, beta, c, ldc);
}
static void rvv_i8_outer_10df_packed_1x2(rvv_i8_outer_10df_ARGS) {
    (void)sb, (void)lda;
    if (m == 1 * (__riscv_vsetvlmax_e32m2())) {
        rvv_i8_outer_10df_tile_1x2(m, k, a, lda, b, 2, 1, alpha, beta, c, ldc);
        return;
    }
    rvv_i8_outer_10df_tile_1x2_tail(m, k, a, lda, b, 2, 1, alpha, beta, c, ldc);
}

static void (*const rvv_i8_outer_10df_packed[2][1])(rvv_i8_outer_10df_ARGS) = {
    {rvv_i8_outer_10df_packed_1x1},
    {rvv_i8_outer_10df_packed_1x2},
};
