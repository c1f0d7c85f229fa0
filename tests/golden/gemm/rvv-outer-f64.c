/* rvv_f64_outer_58ad: micro-kernel 'outer' at ahead=1 c_ahead=1 fetch=6 ku=2 late=0 lead=2 lmul=2
 * mr_vectors=1 nr=2 (rvv, f64) rank-1 updates of an mr_vectors x nr register tile: vectors along m, one
 * scalar of B per column; to hide latency, A is loaded `ahead` k steps and B `lead` columns before their use;
 * A's loads begin after `late` columns, when the last readers of their registers are done; A is prefetched
 * into L1 `fetch` k steps before its loads; with `c_ahead`, columns of C are prefetched while the tile is
 * computed */
static inline __attribute__((always_inline)) void
rvv_f64_outer_58ad_tile_1x1_tail(size_t m, size_t k, const double *restrict a, size_t lda,
                                 const double *restrict b, size_t rsb, size_t csb, double alpha, double beta,
                                 double *restrict c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e64m2();
    const size_t full = lanes;
    const size_t tail = ((size_t)(m - 0 * lanes));
    (void)m, (void)full, (void)lanes, (void)rsb;
    vfloat64m2_t c0_0 = __riscv_vfmv_v_f_f64m2(0, tail);
    vfloat64m2_t a0_0 = __riscv_vle64_v_f64m2(a + 0 * lda + 0 * lanes, tail);
    vfloat64m2_t a1_0;
    double b0;
    /* prefetches of C's columns are spread over the loop: a core has few outstanding misses, and A and B need
     * them too */
    const size_t apart = (1 << 16) / (k / 2 + 1);
    size_t asked = 0;
    for (; k > 2; k -= 2) {
        const size_t column = (asked >> 16) * ldc;
        asked += apart;
        a1_0 = __riscv_vle64_v_f64m2(a + 1 * lda + 0 * lanes, tail);
        __builtin_prefetch(a + 7 * lda + 0 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b0 = b[0 * rsb + 0 * csb];
        if (rsb == 1) { /* each column is a separate stream */
            __builtin_prefetch(b + 0 * rsb + 0 * csb + 40);
        }
        c0_0 = __riscv_vfmacc_vf_f64m2(c0_0, b0, a0_0, tail);
        {
            const volatile char *at_ = (const char *)(c + column);
            (void)*at_;
        };
        if (1 * lanes > 8) { /* a column has one more cache line */
            __builtin_prefetch(c + column + 8);
        }
        if (1 * lanes > 16) { /* a column has one more cache line */
            __builtin_prefetch(c + column + 16);
        }
        if (1 * lanes > 24) { /* a column has one more cache line */
            __builtin_prefetch(c + column + 24);
        }
        a0_0 = __riscv_vle64_v_f64m2(a + 2 * lda + 0 * lanes, tail);
        __builtin_prefetch(a + 8 * lda + 0 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b0 = b[1 * rsb + 0 * csb];
        c0_0 = __riscv_vfmacc_vf_f64m2(c0_0, b0, a1_0, tail);
        a += 2 * lda;
        b += 2 * rsb;
    }
    b0 = b[0 * rsb + 0 * csb];
    c0_0 = __riscv_vfmacc_vf_f64m2(c0_0, b0, a0_0, tail);
    a += lda;
    b += rsb;
    --k;
    for (; k; --k) {
        const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + 0 * lda + 0 * lanes, tail);
        const double b0 = b[0 * rsb + 0 * csb];
        c0_0 = __riscv_vfmacc_vf_f64m2(c0_0, b0, a0, tail);
        a += lda;
        b += rsb;
    }
    /* C = alpha * tile + beta * C; at beta = 0 C is not read */
    if (beta == 0) {
        __riscv_vse64_v_f64m2(c + 0 * ldc + 0 * lanes, __riscv_vfmul_vf_f64m2(c0_0, alpha, tail), tail);
    } else if (beta == 1) {
        vfloat64m2_t old0_0 = __riscv_vle64_v_f64m2(c + 0 * ldc + 0 * lanes, tail);
        __riscv_vse64_v_f64m2(c + 0 * ldc + 0 * lanes, __riscv_vfmacc_vf_f64m2(old0_0, alpha, c0_0, tail),
                              tail);

    } else {
        vfloat64m2_t old0_0 = __riscv_vle64_v_f64m2(c + 0 * ldc + 0 * lanes, tail);
        __riscv_vse64_v_f64m2(
            c + 0 * ldc + 0 * lanes,
            __riscv_vfmacc_vf_f64m2(__riscv_vfmul_vf_f64m2(c0_0, alpha, tail), beta, old0_0, tail), tail);
    }
}

static inline __attribute__((always_inline)) void
rvv_f64_outer_58ad_tile_1x2_tail(size_t m, size_t k, const double *restrict a, size_t lda,
                                 const double *restrict b, size_t rsb, size_t csb, double alpha, double beta,
                                 double *restrict c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e64m2();
    const size_t full = lanes;
    const size_t tail = ((size_t)(m - 0 * lanes));
    (void)m, (void)full, (void)lanes, (void)rsb;
    vfloat64m2_t c0_0 = __riscv_vfmv_v_f_f64m2(0, tail);
    vfloat64m2_t c0_1 = __riscv_vfmv_v_f_f64m2(0, tail);
    vfloat64m2_t a0_0 = __riscv_vle64_v_f64m2(a + 0 * lda + 0 * lanes, tail);
    vfloat64m2_t a1_0;
    double b0 = b[0 * rsb + 0 * csb];
    double b1;
    /* prefetches of C's columns are spread over the loop: a core has few outstanding misses, and A and B need
     * them too */
    const size_t apart = (2 << 16) / (k / 2 + 1);
    size_t asked = 0;
    for (; k > 2; k -= 2) {
        const size_t column = (asked >> 16) * ldc;
        asked += apart;
        a1_0 = __riscv_vle64_v_f64m2(a + 1 * lda + 0 * lanes, tail);
        __builtin_prefetch(a + 7 * lda + 0 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b1 = b[0 * rsb + 1 * csb];
        if (rsb == 1) { /* each column is a separate stream */
            __builtin_prefetch(b + 0 * rsb + 0 * csb + 40);
        }
        c0_0 = __riscv_vfmacc_vf_f64m2(c0_0, b0, a0_0, tail);
        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b0 = b[1 * rsb + 0 * csb];
        c0_1 = __riscv_vfmacc_vf_f64m2(c0_1, b1, a0_0, tail);
        {
            const volatile char *at_ = (const char *)(c + column);
            (void)*at_;
        };
        if (1 * lanes > 8) { /* a column has one more cache line */
            __builtin_prefetch(c + column + 8);
        }
        if (1 * lanes > 16) { /* a column has one more cache line */
            __builtin_prefetch(c + column + 16);
        }
        if (1 * lanes > 24) { /* a column has one more cache line */
            __builtin_prefetch(c + column + 24);
        }
        a0_0 = __riscv_vle64_v_f64m2(a + 2 * lda + 0 * lanes, tail);
        __builtin_prefetch(a + 8 * lda + 0 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b1 = b[1 * rsb + 1 * csb];
        c0_0 = __riscv_vfmacc_vf_f64m2(c0_0, b0, a1_0, tail);
        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b += 2 * rsb;
        b0 = b[0 * rsb + 0 * csb];
        if (rsb == 1) { /* each column is a separate stream */
            __builtin_prefetch(b + 0 * rsb + 1 * csb + 40);
        }
        c0_1 = __riscv_vfmacc_vf_f64m2(c0_1, b1, a1_0, tail);
        a += 2 * lda;
    }
    b1 = b[0 * rsb + 1 * csb];
    c0_0 = __riscv_vfmacc_vf_f64m2(c0_0, b0, a0_0, tail);
    c0_1 = __riscv_vfmacc_vf_f64m2(c0_1, b1, a0_0, tail);
    a += lda;
    b += rsb;
    --k;
    for (; k; --k) {
        const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + 0 * lda + 0 * lanes, tail);
        const double b0 = b[0 * rsb + 0 * csb];
        c0_0 = __riscv_vfmacc_vf_f64m2(c0_0, b0, a0, tail);
        const double b1 = b[0 * rsb + 1 * csb];
        c0_1 = __riscv_vfmacc_vf_f64m2(c0_1, b1, a0, tail);
        a += lda;
        b += rsb;
    }
    /* C = alpha * tile + beta * C; at beta = 0 C is not read */
    if (beta == 0) {
        __riscv_vse64_v_f64m2(c + 0 * ldc + 0 * lanes, __riscv_vfmul_vf_f64m2(c0_0, alpha, tail), tail);
        __riscv_vse64_v_f64m2(c + 1 * ldc + 0 * lanes, __riscv_vfmul_vf_f64m2(c0_1, alpha, tail), tail);
    } else if (beta == 1) {
        vfloat64m2_t old0_0 = __riscv_vle64_v_f64m2(c + 0 * ldc + 0 * lanes, tail);
        vfloat64m2_t old1_0 = __riscv_vle64_v_f64m2(c + 1 * ldc + 0 * lanes, tail);
        __riscv_vse64_v_f64m2(c + 0 * ldc + 0 * lanes, __riscv_vfmacc_vf_f64m2(old0_0, alpha, c0_0, tail),
                              tail);
        __riscv_vse64_v_f64m2(c + 1 * ldc + 0 * lanes, __riscv_vfmacc_vf_f64m2(old1_0, alpha, c0_1, tail),
                              tail);

    } else {
        vfloat64m2_t old0_0 = __riscv_vle64_v_f64m2(c + 0 * ldc + 0 * lanes, tail);
        vfloat64m2_t old1_0 = __riscv_vle64_v_f64m2(c + 1 * ldc + 0 * lanes, tail);
        __riscv_vse64_v_f64m2(
            c + 0 * ldc + 0 * lanes,
            __riscv_vfmacc_vf_f64m2(__riscv_vfmul_vf_f64m2(c0_0, alpha, tail), beta, old0_0, tail), tail);
        __riscv_vse64_v_f64m2(
            c + 1 * ldc + 0 * lanes,
            __riscv_vfmacc_vf_f64m2(__riscv_vfmul_vf_f64m2(c0_1, alpha, tail), beta, old1_0, tail), tail);
    }
}

static inline __attribute__((always_inline)) void
rvv_f64_outer_58ad_tile_1x2(size_t m, size_t k, const double *restrict a, size_t lda,
                            const double *restrict b, size_t rsb, size_t csb, double alpha, double beta,
                            double *restrict c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e64m2();
    const size_t full = lanes;
    (void)m, (void)full, (void)lanes, (void)rsb;
    vfloat64m2_t c0_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c0_1 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t a0_0 = __riscv_vle64_v_f64m2(a + 0 * lda + 0 * lanes, full);
    vfloat64m2_t a1_0;
    double b0 = b[0 * rsb + 0 * csb];
    double b1;
    /* prefetches of C's columns are spread over the loop: a core has few outstanding misses, and A and B need
     * them too */
    const size_t apart = (2 << 16) / (k / 2 + 1);
    size_t asked = 0;
    for (; k > 2; k -= 2) {
        const size_t column = (asked >> 16) * ldc;
        asked += apart;
        a1_0 = __riscv_vle64_v_f64m2(a + 1 * lda + 0 * lanes, full);
        __builtin_prefetch(a + 7 * lda + 0 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b1 = b[0 * rsb + 1 * csb];
        if (rsb == 1) { /* each column is a separate stream */
            __builtin_prefetch(b + 0 * rsb + 0 * csb + 40);
        }
        c0_0 = __riscv_vfmacc_vf_f64m2(c0_0, b0, a0_0, full);
        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b0 = b[1 * rsb + 0 * csb];
        c0_1 = __riscv_vfmacc_vf_f64m2(c0_1, b1, a0_0, full);
        {
            const volatile char *at_ = (const char *)(c + column);
            (void)*at_;
        };
        if (1 * lanes > 8) { /* a column has one more cache line */
            __builtin_prefetch(c + column + 8);
        }
        if (1 * lanes > 16) { /* a column has one more cache line */
            __builtin_prefetch(c + column + 16);
        }
        if (1 * lanes > 24) { /* a column has one more cache line */
            __builtin_prefetch(c + column + 24);
        }
        a0_0 = __riscv_vle64_v_f64m2(a + 2 * lda + 0 * lanes, full);
        __builtin_prefetch(a + 8 * lda + 0 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b1 = b[1 * rsb + 1 * csb];
        c0_0 = __riscv_vfmacc_vf_f64m2(c0_0, b0, a1_0, full);
        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b += 2 * rsb;
        b0 = b[0 * rsb + 0 * csb];
        if (rsb == 1) { /* each column is a separate stream */
            __builtin_prefetch(b + 0 * rsb + 1 * csb + 40);
        }
        c0_1 = __riscv_vfmacc_vf_f64m2(c0_1, b1, a1_0, full);
        a += 2 * lda;
    }
    b1 = b[0 * rsb + 1 * csb];
    c0_0 = __riscv_vfmacc_vf_f64m2(c0_0, b0, a0_0, full);
    c0_1 = __riscv_vfmacc_vf_f64m2(c0_1, b1, a0_0, full);
    a += lda;
    b += rsb;
    --k;
    for (; k; --k) {
        const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + 0 * lda + 0 * lanes, full);
        const double b0 = b[0 * rsb + 0 * csb];
        c0_0 = __riscv_vfmacc_vf_f64m2(c0_0, b0, a0, full);
        const double b1 = b[0 * rsb + 1 * csb];
        c0_1 = __riscv_vfmacc_vf_f64m2(c0_1, b1, a0, full);
        a += lda;
        b += rsb;
    }
    /* C = alpha * tile + beta * C; at beta = 0 C is not read */
    if (beta == 0) {
        __riscv_vse64_v_f64m2(c + 0 * ldc + 0 * lanes, __riscv_vfmul_vf_f64m2(c0_0, alpha, full), full);
        __riscv_vse64_v_f64m2(c + 1 * ldc + 0 * lanes, __riscv_vfmul_vf_f64m2(c0_1, alpha, full), full);
    } else if (beta == 1) {
        vfloat64m2_t old0_0 = __riscv_vle64_v_f64m2(c + 0 * ldc + 0 * lanes, full);
        vfloat64m2_t old1_0 = __riscv_vle64_v_f64m2(c + 1 * ldc + 0 * lanes, full);
        __riscv_vse64_v_f64m2(c + 0 * ldc + 0 * lanes, __riscv_vfmacc_vf_f64m2(old0_0, alpha, c0_0, full),
                              full);
        __riscv_vse64_v_f64m2(c + 1 * ldc + 0 * lanes, __riscv_vfmacc_vf_f64m2(old1_0, alpha, c0_1, full),
                              full);

    } else {
        vfloat64m2_t old0_0 = __riscv_vle64_v_f64m2(c + 0 * ldc + 0 * lanes, full);
        vfloat64m2_t old1_0 = __riscv_vle64_v_f64m2(c + 1 * ldc + 0 * lanes, full);
        __riscv_vse64_v_f64m2(
            c + 0 * ldc + 0 * lanes,
            __riscv_vfmacc_vf_f64m2(__riscv_vfmul_vf_f64m2(c0_0, alpha, full), beta, old0_0, full), full);
        __riscv_vse64_v_f64m2(
            c + 1 * ldc + 0 * lanes,
            __riscv_vfmacc_vf_f64m2(__riscv_vfmul_vf_f64m2(c0_1, alpha, full), beta, old1_0, full), full);
    }
}

#define rvv_f64_outer_58ad_ARGS                                                                              \
    size_t m, size_t k, const double *a, size_t lda, const double *b, size_t sb, double alpha, double beta,  \
        double *c, size_t ldc

static void rvv_f64_outer_58ad_packed_1x1(rvv_f64_outer_58ad_ARGS) {
    (void)sb, (void)lda;
    rvv_f64_outer_58ad_tile_1x1_tail(m, k, a, lda, b, 1, 1, alpha, beta, c, ldc);
}
static void rvv_f64_outer_58ad_packed_1x2(rvv_f64_outer_58ad_ARGS) {
    (void)sb, (void)lda;
    if (m == 1 * (__riscv_vsetvlmax_e64m2())) {
        rvv_f64_outer_58ad_tile_1x2(m, k, a, lda, b, 2, 1, alpha, beta, c, ldc);
        return;
    }
    rvv_f64_outer_58ad_tile_1x2_tail(m, k, a, lda, b, 2, 1, alpha, beta, c, ldc);
}

static void (*const rvv_f64_outer_58ad_packed[2][1])(rvv_f64_outer_58ad_ARGS) = {
    {rvv_f64_outer_58ad_packed_1x1},
    {rvv_f64_outer_58ad_packed_1x2},
};
