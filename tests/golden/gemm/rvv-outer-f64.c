/* rvv_f64_outer_4031: micro-kernel 'outer' at ahead=1 c_ahead=1 fetch=6 ku=2 late=0 lead=2 lmul=2 mv=2 nr=3
 * (rvv, f64) rank-1 updates of an mv x nr register tile: vectors along m, one scalar of B a column; A is
 * loaded `ahead` k steps and B `lead` columns before their use, so that neither load's latency stands in the
 * FMAs' way; A's loads begin after `late` columns, when the last readers of the registers they overwrite are
 * done; `fetch` k steps before that they are prefetched into L1; with `c_ahead` columns of C are brought near
 * while the tile is computed */
static inline __attribute__((always_inline)) void
rvv_f64_outer_4031_tile_1x1_tail(size_t m, size_t k, const double *restrict a, size_t lda,
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
    /* C's columns are asked for one by one, all along: a core has few misses under way at a time, and A and B
     * need them too */
    const size_t apart = (1 << 16) / (k / 2 + 1);
    size_t asked = 0;
    for (; k > 2; k -= 2) {
        const size_t column = (asked >> 16) * ldc;
        asked += apart;
        a1_0 = __riscv_vle64_v_f64m2(a + 1 * lda + 0 * lanes, tail);
        __builtin_prefetch(a + 7 * lda + 0 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b0 = b[0 * rsb + 0 * csb];
        if (rsb == 1) { /* each column is a stream of its own */
            __builtin_prefetch(b + 0 * rsb + 0 * csb + 40);
        }
        c0_0 = __riscv_vfmacc_vf_f64m2(c0_0, b0, a0_0, tail);
        {
            const volatile char *at_ = (const char *)(c + column);
            (void)*at_;
        };
        if (1 * lanes > 8) { /* a column has another cache line */
            __builtin_prefetch(c + column + 8);
        }
        if (1 * lanes > 16) { /* a column has another cache line */
            __builtin_prefetch(c + column + 16);
        }
        if (1 * lanes > 24) { /* a column has another cache line */
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
rvv_f64_outer_4031_tile_2x1_tail(size_t m, size_t k, const double *restrict a, size_t lda,
                                 const double *restrict b, size_t rsb, size_t csb, double alpha, double beta,
                                 double *restrict c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e64m2();
    const size_t full = lanes;
    const size_t tail = ((size_t)(m - 1 * lanes));
    (void)m, (void)full, (void)lanes, (void)rsb;
    vfloat64m2_t c0_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c1_0 = __riscv_vfmv_v_f_f64m2(0, tail);
    vfloat64m2_t a0_0 = __riscv_vle64_v_f64m2(a + 0 * lda + 0 * lanes, full);
    vfloat64m2_t a0_1 = __riscv_vle64_v_f64m2(a + 0 * lda + 1 * lanes, tail);
    vfloat64m2_t a1_0;
    vfloat64m2_t a1_1;
    double b0;
    /* C's columns are asked for one by one, all along: a core has few misses under way at a time, and A and B
     * need them too */
    const size_t apart = (1 << 16) / (k / 2 + 1);
    size_t asked = 0;
    for (; k > 2; k -= 2) {
        const size_t column = (asked >> 16) * ldc;
        asked += apart;
        a1_0 = __riscv_vle64_v_f64m2(a + 1 * lda + 0 * lanes, full);
        __builtin_prefetch(a + 7 * lda + 0 * lanes);

        a1_1 = __riscv_vle64_v_f64m2(a + 1 * lda + 1 * lanes, tail);
        __builtin_prefetch(a + 7 * lda + 1 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b0 = b[0 * rsb + 0 * csb];
        if (rsb == 1) { /* each column is a stream of its own */
            __builtin_prefetch(b + 0 * rsb + 0 * csb + 40);
        }
        c0_0 = __riscv_vfmacc_vf_f64m2(c0_0, b0, a0_0, full);
        c1_0 = __riscv_vfmacc_vf_f64m2(c1_0, b0, a0_1, tail);
        {
            const volatile char *at_ = (const char *)(c + column);
            (void)*at_;
        };
        if (2 * lanes > 8) { /* a column has another cache line */
            __builtin_prefetch(c + column + 8);
        }
        if (2 * lanes > 16) { /* a column has another cache line */
            __builtin_prefetch(c + column + 16);
        }
        if (2 * lanes > 24) { /* a column has another cache line */
            __builtin_prefetch(c + column + 24);
        }
        a0_0 = __riscv_vle64_v_f64m2(a + 2 * lda + 0 * lanes, full);
        __builtin_prefetch(a + 8 * lda + 0 * lanes);

        a0_1 = __riscv_vle64_v_f64m2(a + 2 * lda + 1 * lanes, tail);
        __builtin_prefetch(a + 8 * lda + 1 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b0 = b[1 * rsb + 0 * csb];
        c0_0 = __riscv_vfmacc_vf_f64m2(c0_0, b0, a1_0, full);
        c1_0 = __riscv_vfmacc_vf_f64m2(c1_0, b0, a1_1, tail);
        a += 2 * lda;
        b += 2 * rsb;
    }
    b0 = b[0 * rsb + 0 * csb];
    c0_0 = __riscv_vfmacc_vf_f64m2(c0_0, b0, a0_0, full);
    c1_0 = __riscv_vfmacc_vf_f64m2(c1_0, b0, a0_1, tail);
    a += lda;
    b += rsb;
    --k;
    for (; k; --k) {
        const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + 0 * lda + 0 * lanes, full);
        const vfloat64m2_t a1 = __riscv_vle64_v_f64m2(a + 0 * lda + 1 * lanes, tail);
        const double b0 = b[0 * rsb + 0 * csb];
        c0_0 = __riscv_vfmacc_vf_f64m2(c0_0, b0, a0, full);
        c1_0 = __riscv_vfmacc_vf_f64m2(c1_0, b0, a1, tail);
        a += lda;
        b += rsb;
    }
    /* C = alpha * tile + beta * C; at beta = 0 C is not read */
    if (beta == 0) {
        __riscv_vse64_v_f64m2(c + 0 * ldc + 0 * lanes, __riscv_vfmul_vf_f64m2(c0_0, alpha, full), full);
        __riscv_vse64_v_f64m2(c + 0 * ldc + 1 * lanes, __riscv_vfmul_vf_f64m2(c1_0, alpha, tail), tail);
    } else if (beta == 1) {
        vfloat64m2_t old0_0 = __riscv_vle64_v_f64m2(c + 0 * ldc + 0 * lanes, full);
        vfloat64m2_t old0_1 = __riscv_vle64_v_f64m2(c + 0 * ldc + 1 * lanes, tail);
        __riscv_vse64_v_f64m2(c + 0 * ldc + 0 * lanes, __riscv_vfmacc_vf_f64m2(old0_0, alpha, c0_0, full),
                              full);
        __riscv_vse64_v_f64m2(c + 0 * ldc + 1 * lanes, __riscv_vfmacc_vf_f64m2(old0_1, alpha, c1_0, tail),
                              tail);

    } else {
        vfloat64m2_t old0_0 = __riscv_vle64_v_f64m2(c + 0 * ldc + 0 * lanes, full);
        vfloat64m2_t old0_1 = __riscv_vle64_v_f64m2(c + 0 * ldc + 1 * lanes, tail);
        __riscv_vse64_v_f64m2(
            c + 0 * ldc + 0 * lanes,
            __riscv_vfmacc_vf_f64m2(__riscv_vfmul_vf_f64m2(c0_0, alpha, full), beta, old0_0, full), full);
        __riscv_vse64_v_f64m2(
            c + 0 * ldc + 1 * lanes,
            __riscv_vfmacc_vf_f64m2(__riscv_vfmul_vf_f64m2(c1_0, alpha, tail), beta, old0_1, tail), tail);
    }
}

static inline __attribute__((always_inline)) void
rvv_f64_outer_4031_tile_1x2_tail(size_t m, size_t k, const double *restrict a, size_t lda,
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
    /* C's columns are asked for one by one, all along: a core has few misses under way at a time, and A and B
     * need them too */
    const size_t apart = (2 << 16) / (k / 2 + 1);
    size_t asked = 0;
    for (; k > 2; k -= 2) {
        const size_t column = (asked >> 16) * ldc;
        asked += apart;
        a1_0 = __riscv_vle64_v_f64m2(a + 1 * lda + 0 * lanes, tail);
        __builtin_prefetch(a + 7 * lda + 0 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b1 = b[0 * rsb + 1 * csb];
        if (rsb == 1) { /* each column is a stream of its own */
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
        if (1 * lanes > 8) { /* a column has another cache line */
            __builtin_prefetch(c + column + 8);
        }
        if (1 * lanes > 16) { /* a column has another cache line */
            __builtin_prefetch(c + column + 16);
        }
        if (1 * lanes > 24) { /* a column has another cache line */
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
        if (rsb == 1) { /* each column is a stream of its own */
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
rvv_f64_outer_4031_tile_2x2_tail(size_t m, size_t k, const double *restrict a, size_t lda,
                                 const double *restrict b, size_t rsb, size_t csb, double alpha, double beta,
                                 double *restrict c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e64m2();
    const size_t full = lanes;
    const size_t tail = ((size_t)(m - 1 * lanes));
    (void)m, (void)full, (void)lanes, (void)rsb;
    vfloat64m2_t c0_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c1_0 = __riscv_vfmv_v_f_f64m2(0, tail);
    vfloat64m2_t c0_1 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c1_1 = __riscv_vfmv_v_f_f64m2(0, tail);
    vfloat64m2_t a0_0 = __riscv_vle64_v_f64m2(a + 0 * lda + 0 * lanes, full);
    vfloat64m2_t a0_1 = __riscv_vle64_v_f64m2(a + 0 * lda + 1 * lanes, tail);
    vfloat64m2_t a1_0;
    vfloat64m2_t a1_1;
    double b0 = b[0 * rsb + 0 * csb];
    double b1;
    /* C's columns are asked for one by one, all along: a core has few misses under way at a time, and A and B
     * need them too */
    const size_t apart = (2 << 16) / (k / 2 + 1);
    size_t asked = 0;
    for (; k > 2; k -= 2) {
        const size_t column = (asked >> 16) * ldc;
        asked += apart;
        a1_0 = __riscv_vle64_v_f64m2(a + 1 * lda + 0 * lanes, full);
        __builtin_prefetch(a + 7 * lda + 0 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b1 = b[0 * rsb + 1 * csb];
        if (rsb == 1) { /* each column is a stream of its own */
            __builtin_prefetch(b + 0 * rsb + 0 * csb + 40);
        }
        c0_0 = __riscv_vfmacc_vf_f64m2(c0_0, b0, a0_0, full);
        c1_0 = __riscv_vfmacc_vf_f64m2(c1_0, b0, a0_1, tail);
        a1_1 = __riscv_vle64_v_f64m2(a + 1 * lda + 1 * lanes, tail);
        __builtin_prefetch(a + 7 * lda + 1 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b0 = b[1 * rsb + 0 * csb];
        c0_1 = __riscv_vfmacc_vf_f64m2(c0_1, b1, a0_0, full);
        c1_1 = __riscv_vfmacc_vf_f64m2(c1_1, b1, a0_1, tail);
        {
            const volatile char *at_ = (const char *)(c + column);
            (void)*at_;
        };
        if (2 * lanes > 8) { /* a column has another cache line */
            __builtin_prefetch(c + column + 8);
        }
        if (2 * lanes > 16) { /* a column has another cache line */
            __builtin_prefetch(c + column + 16);
        }
        if (2 * lanes > 24) { /* a column has another cache line */
            __builtin_prefetch(c + column + 24);
        }
        a0_0 = __riscv_vle64_v_f64m2(a + 2 * lda + 0 * lanes, full);
        __builtin_prefetch(a + 8 * lda + 0 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b1 = b[1 * rsb + 1 * csb];
        c0_0 = __riscv_vfmacc_vf_f64m2(c0_0, b0, a1_0, full);
        c1_0 = __riscv_vfmacc_vf_f64m2(c1_0, b0, a1_1, tail);
        a0_1 = __riscv_vle64_v_f64m2(a + 2 * lda + 1 * lanes, tail);
        __builtin_prefetch(a + 8 * lda + 1 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b += 2 * rsb;
        b0 = b[0 * rsb + 0 * csb];
        if (rsb == 1) { /* each column is a stream of its own */
            __builtin_prefetch(b + 0 * rsb + 1 * csb + 40);
        }
        c0_1 = __riscv_vfmacc_vf_f64m2(c0_1, b1, a1_0, full);
        c1_1 = __riscv_vfmacc_vf_f64m2(c1_1, b1, a1_1, tail);
        a += 2 * lda;
    }
    b1 = b[0 * rsb + 1 * csb];
    c0_0 = __riscv_vfmacc_vf_f64m2(c0_0, b0, a0_0, full);
    c1_0 = __riscv_vfmacc_vf_f64m2(c1_0, b0, a0_1, tail);
    c0_1 = __riscv_vfmacc_vf_f64m2(c0_1, b1, a0_0, full);
    c1_1 = __riscv_vfmacc_vf_f64m2(c1_1, b1, a0_1, tail);
    a += lda;
    b += rsb;
    --k;
    for (; k; --k) {
        const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + 0 * lda + 0 * lanes, full);
        const vfloat64m2_t a1 = __riscv_vle64_v_f64m2(a + 0 * lda + 1 * lanes, tail);
        const double b0 = b[0 * rsb + 0 * csb];
        c0_0 = __riscv_vfmacc_vf_f64m2(c0_0, b0, a0, full);
        c1_0 = __riscv_vfmacc_vf_f64m2(c1_0, b0, a1, tail);
        const double b1 = b[0 * rsb + 1 * csb];
        c0_1 = __riscv_vfmacc_vf_f64m2(c0_1, b1, a0, full);
        c1_1 = __riscv_vfmacc_vf_f64m2(c1_1, b1, a1, tail);
        a += lda;
        b += rsb;
    }
    /* C = alpha * tile + beta * C; at beta = 0 C is not read */
    if (beta == 0) {
        __riscv_vse64_v_f64m2(c + 0 * ldc + 0 * lanes, __riscv_vfmul_vf_f64m2(c0_0, alpha, full), full);
        __riscv_vse64_v_f64m2(c + 0 * ldc + 1 * lanes, __riscv_vfmul_vf_f64m2(c1_0, alpha, tail), tail);
        __riscv_vse64_v_f64m2(c + 1 * ldc + 0 * lanes, __riscv_vfmul_vf_f64m2(c0_1, alpha, full), full);
        __riscv_vse64_v_f64m2(c + 1 * ldc + 1 * lanes, __riscv_vfmul_vf_f64m2(c1_1, alpha, tail), tail);
    } else if (beta == 1) {
        vfloat64m2_t old0_0 = __riscv_vle64_v_f64m2(c + 0 * ldc + 0 * lanes, full);
        vfloat64m2_t old1_0 = __riscv_vle64_v_f64m2(c + 1 * ldc + 0 * lanes, full);
        vfloat64m2_t old0_1 = __riscv_vle64_v_f64m2(c + 0 * ldc + 1 * lanes, tail);
        vfloat64m2_t old1_1 = __riscv_vle64_v_f64m2(c + 1 * ldc + 1 * lanes, tail);
        __riscv_vse64_v_f64m2(c + 0 * ldc + 0 * lanes, __riscv_vfmacc_vf_f64m2(old0_0, alpha, c0_0, full),
                              full);
        __riscv_vse64_v_f64m2(c + 0 * ldc + 1 * lanes, __riscv_vfmacc_vf_f64m2(old0_1, alpha, c1_0, tail),
                              tail);
        __riscv_vse64_v_f64m2(c + 1 * ldc + 0 * lanes, __riscv_vfmacc_vf_f64m2(old1_0, alpha, c0_1, full),
                              full);
        __riscv_vse64_v_f64m2(c + 1 * ldc + 1 * lanes, __riscv_vfmacc_vf_f64m2(old1_1, alpha, c1_1, tail),
                              tail);

    } else {
        vfloat64m2_t old0_0 = __riscv_vle64_v_f64m2(c + 0 * ldc + 0 * lanes, full);
        vfloat64m2_t old1_0 = __riscv_vle64_v_f64m2(c + 1 * ldc + 0 * lanes, full);
        vfloat64m2_t old0_1 = __riscv_vle64_v_f64m2(c + 0 * ldc + 1 * lanes, tail);
        vfloat64m2_t old1_1 = __riscv_vle64_v_f64m2(c + 1 * ldc + 1 * lanes, tail);
        __riscv_vse64_v_f64m2(
            c + 0 * ldc + 0 * lanes,
            __riscv_vfmacc_vf_f64m2(__riscv_vfmul_vf_f64m2(c0_0, alpha, full), beta, old0_0, full), full);
        __riscv_vse64_v_f64m2(
            c + 0 * ldc + 1 * lanes,
            __riscv_vfmacc_vf_f64m2(__riscv_vfmul_vf_f64m2(c1_0, alpha, tail), beta, old0_1, tail), tail);
        __riscv_vse64_v_f64m2(
            c + 1 * ldc + 0 * lanes,
            __riscv_vfmacc_vf_f64m2(__riscv_vfmul_vf_f64m2(c0_1, alpha, full), beta, old1_0, full), full);
        __riscv_vse64_v_f64m2(
            c + 1 * ldc + 1 * lanes,
            __riscv_vfmacc_vf_f64m2(__riscv_vfmul_vf_f64m2(c1_1, alpha, tail), beta, old1_1, tail), tail);
    }
}

static inline __attribute__((always_inline)) void
rvv_f64_outer_4031_tile_1x3_tail(size_t m, size_t k, const double *restrict a, size_t lda,
                                 const double *restrict b, size_t rsb, size_t csb, double alpha, double beta,
                                 double *restrict c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e64m2();
    const size_t full = lanes;
    const size_t tail = ((size_t)(m - 0 * lanes));
    (void)m, (void)full, (void)lanes, (void)rsb;
    vfloat64m2_t c0_0 = __riscv_vfmv_v_f_f64m2(0, tail);
    vfloat64m2_t c0_1 = __riscv_vfmv_v_f_f64m2(0, tail);
    vfloat64m2_t c0_2 = __riscv_vfmv_v_f_f64m2(0, tail);
    vfloat64m2_t a0_0 = __riscv_vle64_v_f64m2(a + 0 * lda + 0 * lanes, tail);
    vfloat64m2_t a1_0;
    double b0 = b[0 * rsb + 0 * csb];
    double b1 = b[0 * rsb + 1 * csb];
    double b2;
    /* C's columns are asked for one by one, all along: a core has few misses under way at a time, and A and B
     * need them too */
    const size_t apart = (3 << 16) / (k / 2 + 1);
    size_t asked = 0;
    for (; k > 2; k -= 2) {
        const size_t column = (asked >> 16) * ldc;
        asked += apart;
        a1_0 = __riscv_vle64_v_f64m2(a + 1 * lda + 0 * lanes, tail);
        __builtin_prefetch(a + 7 * lda + 0 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b2 = b[0 * rsb + 2 * csb];
        if (rsb == 1) { /* each column is a stream of its own */
            __builtin_prefetch(b + 0 * rsb + 0 * csb + 40);
        }
        c0_0 = __riscv_vfmacc_vf_f64m2(c0_0, b0, a0_0, tail);
        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b0 = b[1 * rsb + 0 * csb];
        c0_1 = __riscv_vfmacc_vf_f64m2(c0_1, b1, a0_0, tail);
        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b1 = b[1 * rsb + 1 * csb];
        if (rsb == 1) { /* each column is a stream of its own */
            __builtin_prefetch(b + 0 * rsb + 2 * csb + 40);
        }
        c0_2 = __riscv_vfmacc_vf_f64m2(c0_2, b2, a0_0, tail);
        {
            const volatile char *at_ = (const char *)(c + column);
            (void)*at_;
        };
        if (1 * lanes > 8) { /* a column has another cache line */
            __builtin_prefetch(c + column + 8);
        }
        if (1 * lanes > 16) { /* a column has another cache line */
            __builtin_prefetch(c + column + 16);
        }
        if (1 * lanes > 24) { /* a column has another cache line */
            __builtin_prefetch(c + column + 24);
        }
        a0_0 = __riscv_vle64_v_f64m2(a + 2 * lda + 0 * lanes, tail);
        __builtin_prefetch(a + 8 * lda + 0 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b2 = b[1 * rsb + 2 * csb];
        c0_0 = __riscv_vfmacc_vf_f64m2(c0_0, b0, a1_0, tail);
        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b += 2 * rsb;
        b0 = b[0 * rsb + 0 * csb];
        if (rsb == 1) { /* each column is a stream of its own */
            __builtin_prefetch(b + 0 * rsb + 1 * csb + 40);
        }
        c0_1 = __riscv_vfmacc_vf_f64m2(c0_1, b1, a1_0, tail);
        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b1 = b[0 * rsb + 1 * csb];
        c0_2 = __riscv_vfmacc_vf_f64m2(c0_2, b2, a1_0, tail);
        a += 2 * lda;
    }
    b2 = b[0 * rsb + 2 * csb];
    c0_0 = __riscv_vfmacc_vf_f64m2(c0_0, b0, a0_0, tail);
    c0_1 = __riscv_vfmacc_vf_f64m2(c0_1, b1, a0_0, tail);
    c0_2 = __riscv_vfmacc_vf_f64m2(c0_2, b2, a0_0, tail);
    a += lda;
    b += rsb;
    --k;
    for (; k; --k) {
        const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + 0 * lda + 0 * lanes, tail);
        const double b0 = b[0 * rsb + 0 * csb];
        c0_0 = __riscv_vfmacc_vf_f64m2(c0_0, b0, a0, tail);
        const double b1 = b[0 * rsb + 1 * csb];
        c0_1 = __riscv_vfmacc_vf_f64m2(c0_1, b1, a0, tail);
        const double b2 = b[0 * rsb + 2 * csb];
        c0_2 = __riscv_vfmacc_vf_f64m2(c0_2, b2, a0, tail);
        a += lda;
        b += rsb;
    }
    /* C = alpha * tile + beta * C; at beta = 0 C is not read */
    if (beta == 0) {
        __riscv_vse64_v_f64m2(c + 0 * ldc + 0 * lanes, __riscv_vfmul_vf_f64m2(c0_0, alpha, tail), tail);
        __riscv_vse64_v_f64m2(c + 1 * ldc + 0 * lanes, __riscv_vfmul_vf_f64m2(c0_1, alpha, tail), tail);
        __riscv_vse64_v_f64m2(c + 2 * ldc + 0 * lanes, __riscv_vfmul_vf_f64m2(c0_2, alpha, tail), tail);
    } else if (beta == 1) {
        vfloat64m2_t old0_0 = __riscv_vle64_v_f64m2(c + 0 * ldc + 0 * lanes, tail);
        vfloat64m2_t old1_0 = __riscv_vle64_v_f64m2(c + 1 * ldc + 0 * lanes, tail);
        vfloat64m2_t old2_0 = __riscv_vle64_v_f64m2(c + 2 * ldc + 0 * lanes, tail);
        __riscv_vse64_v_f64m2(c + 0 * ldc + 0 * lanes, __riscv_vfmacc_vf_f64m2(old0_0, alpha, c0_0, tail),
                              tail);
        __riscv_vse64_v_f64m2(c + 1 * ldc + 0 * lanes, __riscv_vfmacc_vf_f64m2(old1_0, alpha, c0_1, tail),
                              tail);
        __riscv_vse64_v_f64m2(c + 2 * ldc + 0 * lanes, __riscv_vfmacc_vf_f64m2(old2_0, alpha, c0_2, tail),
                              tail);

    } else {
        vfloat64m2_t old0_0 = __riscv_vle64_v_f64m2(c + 0 * ldc + 0 * lanes, tail);
        vfloat64m2_t old1_0 = __riscv_vle64_v_f64m2(c + 1 * ldc + 0 * lanes, tail);
        vfloat64m2_t old2_0 = __riscv_vle64_v_f64m2(c + 2 * ldc + 0 * lanes, tail);
        __riscv_vse64_v_f64m2(
            c + 0 * ldc + 0 * lanes,
            __riscv_vfmacc_vf_f64m2(__riscv_vfmul_vf_f64m2(c0_0, alpha, tail), beta, old0_0, tail), tail);
        __riscv_vse64_v_f64m2(
            c + 1 * ldc + 0 * lanes,
            __riscv_vfmacc_vf_f64m2(__riscv_vfmul_vf_f64m2(c0_1, alpha, tail), beta, old1_0, tail), tail);
        __riscv_vse64_v_f64m2(
            c + 2 * ldc + 0 * lanes,
            __riscv_vfmacc_vf_f64m2(__riscv_vfmul_vf_f64m2(c0_2, alpha, tail), beta, old2_0, tail), tail);
    }
}

static inline __attribute__((always_inline)) void
rvv_f64_outer_4031_tile_2x3_tail(size_t m, size_t k, const double *restrict a, size_t lda,
                                 const double *restrict b, size_t rsb, size_t csb, double alpha, double beta,
                                 double *restrict c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e64m2();
    const size_t full = lanes;
    const size_t tail = ((size_t)(m - 1 * lanes));
    (void)m, (void)full, (void)lanes, (void)rsb;
    vfloat64m2_t c0_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c1_0 = __riscv_vfmv_v_f_f64m2(0, tail);
    vfloat64m2_t c0_1 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c1_1 = __riscv_vfmv_v_f_f64m2(0, tail);
    vfloat64m2_t c0_2 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c1_2 = __riscv_vfmv_v_f_f64m2(0, tail);
    vfloat64m2_t a0_0 = __riscv_vle64_v_f64m2(a + 0 * lda + 0 * lanes, full);
    vfloat64m2_t a0_1 = __riscv_vle64_v_f64m2(a + 0 * lda + 1 * lanes, tail);
    vfloat64m2_t a1_0;
    vfloat64m2_t a1_1;
    double b0 = b[0 * rsb + 0 * csb];
    double b1 = b[0 * rsb + 1 * csb];
    double b2;
    /* C's columns are asked for one by one, all along: a core has few misses under way at a time, and A and B
     * need them too */
    const size_t apart = (3 << 16) / (k / 2 + 1);
    size_t asked = 0;
    for (; k > 2; k -= 2) {
        const size_t column = (asked >> 16) * ldc;
        asked += apart;
        a1_0 = __riscv_vle64_v_f64m2(a + 1 * lda + 0 * lanes, full);
        __builtin_prefetch(a + 7 * lda + 0 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b2 = b[0 * rsb + 2 * csb];
        if (rsb == 1) { /* each column is a stream of its own */
            __builtin_prefetch(b + 0 * rsb + 0 * csb + 40);
        }
        c0_0 = __riscv_vfmacc_vf_f64m2(c0_0, b0, a0_0, full);
        c1_0 = __riscv_vfmacc_vf_f64m2(c1_0, b0, a0_1, tail);
        a1_1 = __riscv_vle64_v_f64m2(a + 1 * lda + 1 * lanes, tail);
        __builtin_prefetch(a + 7 * lda + 1 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b0 = b[1 * rsb + 0 * csb];
        c0_1 = __riscv_vfmacc_vf_f64m2(c0_1, b1, a0_0, full);
        c1_1 = __riscv_vfmacc_vf_f64m2(c1_1, b1, a0_1, tail);
        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b1 = b[1 * rsb + 1 * csb];
        if (rsb == 1) { /* each column is a stream of its own */
            __builtin_prefetch(b + 0 * rsb + 2 * csb + 40);
        }
        c0_2 = __riscv_vfmacc_vf_f64m2(c0_2, b2, a0_0, full);
        c1_2 = __riscv_vfmacc_vf_f64m2(c1_2, b2, a0_1, tail);
        {
            const volatile char *at_ = (const char *)(c + column);
            (void)*at_;
        };
        if (2 * lanes > 8) { /* a column has another cache line */
            __builtin_prefetch(c + column + 8);
        }
        if (2 * lanes > 16) { /* a column has another cache line */
            __builtin_prefetch(c + column + 16);
        }
        if (2 * lanes > 24) { /* a column has another cache line */
            __builtin_prefetch(c + column + 24);
        }
        a0_0 = __riscv_vle64_v_f64m2(a + 2 * lda + 0 * lanes, full);
        __builtin_prefetch(a + 8 * lda + 0 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b2 = b[1 * rsb + 2 * csb];
        c0_0 = __riscv_vfmacc_vf_f64m2(c0_0, b0, a1_0, full);
        c1_0 = __riscv_vfmacc_vf_f64m2(c1_0, b0, a1_1, tail);
        a0_1 = __riscv_vle64_v_f64m2(a + 2 * lda + 1 * lanes, tail);
        __builtin_prefetch(a + 8 * lda + 1 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b += 2 * rsb;
        b0 = b[0 * rsb + 0 * csb];
        if (rsb == 1) { /* each column is a stream of its own */
            __builtin_prefetch(b + 0 * rsb + 1 * csb + 40);
        }
        c0_1 = __riscv_vfmacc_vf_f64m2(c0_1, b1, a1_0, full);
        c1_1 = __riscv_vfmacc_vf_f64m2(c1_1, b1, a1_1, tail);
        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b1 = b[0 * rsb + 1 * csb];
        c0_2 = __riscv_vfmacc_vf_f64m2(c0_2, b2, a1_0, full);
        c1_2 = __riscv_vfmacc_vf_f64m2(c1_2, b2, a1_1, tail);
        a += 2 * lda;
    }
    b2 = b[0 * rsb + 2 * csb];
    c0_0 = __riscv_vfmacc_vf_f64m2(c0_0, b0, a0_0, full);
    c1_0 = __riscv_vfmacc_vf_f64m2(c1_0, b0, a0_1, tail);
    c0_1 = __riscv_vfmacc_vf_f64m2(c0_1, b1, a0_0, full);
    c1_1 = __riscv_vfmacc_vf_f64m2(c1_1, b1, a0_1, tail);
    c0_2 = __riscv_vfmacc_vf_f64m2(c0_2, b2, a0_0, full);
    c1_2 = __riscv_vfmacc_vf_f64m2(c1_2, b2, a0_1, tail);
    a += lda;
    b += rsb;
    --k;
    for (; k; --k) {
        const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + 0 * lda + 0 * lanes, full);
        const vfloat64m2_t a1 = __riscv_vle64_v_f64m2(a + 0 * lda + 1 * lanes, tail);
        const double b0 = b[0 * rsb + 0 * csb];
        c0_0 = __riscv_vfmacc_vf_f64m2(c0_0, b0, a0, full);
        c1_0 = __riscv_vfmacc_vf_f64m2(c1_0, b0, a1, tail);
        const double b1 = b[0 * rsb + 1 * csb];
        c0_1 = __riscv_vfmacc_vf_f64m2(c0_1, b1, a0, full);
        c1_1 = __riscv_vfmacc_vf_f64m2(c1_1, b1, a1, tail);
        const double b2 = b[0 * rsb + 2 * csb];
        c0_2 = __riscv_vfmacc_vf_f64m2(c0_2, b2, a0, full);
        c1_2 = __riscv_vfmacc_vf_f64m2(c1_2, b2, a1, tail);
        a += lda;
        b += rsb;
    }
    /* C = alpha * tile + beta * C; at beta = 0 C is not read */
    if (beta == 0) {
        __riscv_vse64_v_f64m2(c + 0 * ldc + 0 * lanes, __riscv_vfmul_vf_f64m2(c0_0, alpha, full), full);
        __riscv_vse64_v_f64m2(c + 0 * ldc + 1 * lanes, __riscv_vfmul_vf_f64m2(c1_0, alpha, tail), tail);
        __riscv_vse64_v_f64m2(c + 1 * ldc + 0 * lanes, __riscv_vfmul_vf_f64m2(c0_1, alpha, full), full);
        __riscv_vse64_v_f64m2(c + 1 * ldc + 1 * lanes, __riscv_vfmul_vf_f64m2(c1_1, alpha, tail), tail);
        __riscv_vse64_v_f64m2(c + 2 * ldc + 0 * lanes, __riscv_vfmul_vf_f64m2(c0_2, alpha, full), full);
        __riscv_vse64_v_f64m2(c + 2 * ldc + 1 * lanes, __riscv_vfmul_vf_f64m2(c1_2, alpha, tail), tail);
    } else if (beta == 1) {
        vfloat64m2_t old0_0 = __riscv_vle64_v_f64m2(c + 0 * ldc + 0 * lanes, full);
        vfloat64m2_t old1_0 = __riscv_vle64_v_f64m2(c + 1 * ldc + 0 * lanes, full);
        vfloat64m2_t old2_0 = __riscv_vle64_v_f64m2(c + 2 * ldc + 0 * lanes, full);
        vfloat64m2_t old0_1 = __riscv_vle64_v_f64m2(c + 0 * ldc + 1 * lanes, tail);
        vfloat64m2_t old1_1 = __riscv_vle64_v_f64m2(c + 1 * ldc + 1 * lanes, tail);
        vfloat64m2_t old2_1 = __riscv_vle64_v_f64m2(c + 2 * ldc + 1 * lanes, tail);
        __riscv_vse64_v_f64m2(c + 0 * ldc + 0 * lanes, __riscv_vfmacc_vf_f64m2(old0_0, alpha, c0_0, full),
                              full);
        __riscv_vse64_v_f64m2(c + 0 * ldc + 1 * lanes, __riscv_vfmacc_vf_f64m2(old0_1, alpha, c1_0, tail),
                              tail);
        __riscv_vse64_v_f64m2(c + 1 * ldc + 0 * lanes, __riscv_vfmacc_vf_f64m2(old1_0, alpha, c0_1, full),
                              full);
        __riscv_vse64_v_f64m2(c + 1 * ldc + 1 * lanes, __riscv_vfmacc_vf_f64m2(old1_1, alpha, c1_1, tail),
                              tail);
        __riscv_vse64_v_f64m2(c + 2 * ldc + 0 * lanes, __riscv_vfmacc_vf_f64m2(old2_0, alpha, c0_2, full),
                              full);
        __riscv_vse64_v_f64m2(c + 2 * ldc + 1 * lanes, __riscv_vfmacc_vf_f64m2(old2_1, alpha, c1_2, tail),
                              tail);

    } else {
        vfloat64m2_t old0_0 = __riscv_vle64_v_f64m2(c + 0 * ldc + 0 * lanes, full);
        vfloat64m2_t old1_0 = __riscv_vle64_v_f64m2(c + 1 * ldc + 0 * lanes, full);
        vfloat64m2_t old2_0 = __riscv_vle64_v_f64m2(c + 2 * ldc + 0 * lanes, full);
        vfloat64m2_t old0_1 = __riscv_vle64_v_f64m2(c + 0 * ldc + 1 * lanes, tail);
        vfloat64m2_t old1_1 = __riscv_vle64_v_f64m2(c + 1 * ldc + 1 * lanes, tail);
        vfloat64m2_t old2_1 = __riscv_vle64_v_f64m2(c + 2 * ldc + 1 * lanes, tail);
        __riscv_vse64_v_f64m2(
            c + 0 * ldc + 0 * lanes,
            __riscv_vfmacc_vf_f64m2(__riscv_vfmul_vf_f64m2(c0_0, alpha, full), beta, old0_0, full), full);
        __riscv_vse64_v_f64m2(
            c + 0 * ldc + 1 * lanes,
            __riscv_vfmacc_vf_f64m2(__riscv_vfmul_vf_f64m2(c1_0, alpha, tail), beta, old0_1, tail), tail);
        __riscv_vse64_v_f64m2(
            c + 1 * ldc + 0 * lanes,
            __riscv_vfmacc_vf_f64m2(__riscv_vfmul_vf_f64m2(c0_1, alpha, full), beta, old1_0, full), full);
        __riscv_vse64_v_f64m2(
            c + 1 * ldc + 1 * lanes,
            __riscv_vfmacc_vf_f64m2(__riscv_vfmul_vf_f64m2(c1_1, alpha, tail), beta, old1_1, tail), tail);
        __riscv_vse64_v_f64m2(
            c + 2 * ldc + 0 * lanes,
            __riscv_vfmacc_vf_f64m2(__riscv_vfmul_vf_f64m2(c0_2, alpha, full), beta, old2_0, full), full);
        __riscv_vse64_v_f64m2(
            c + 2 * ldc + 1 * lanes,
            __riscv_vfmacc_vf_f64m2(__riscv_vfmul_vf_f64m2(c1_2, alpha, tail), beta, old2_1, tail), tail);
    }
}

static inline __attribute__((always_inline)) void
rvv_f64_outer_4031_tile_2x3(size_t m, size_t k, const double *restrict a, size_t lda,
                            const double *restrict b, size_t rsb, size_t csb, double alpha, double beta,
                            double *restrict c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e64m2();
    const size_t full = lanes;
    (void)m, (void)full, (void)lanes, (void)rsb;
    vfloat64m2_t c0_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c1_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c0_1 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c1_1 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c0_2 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c1_2 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t a0_0 = __riscv_vle64_v_f64m2(a + 0 * lda + 0 * lanes, full);
    vfloat64m2_t a0_1 = __riscv_vle64_v_f64m2(a + 0 * lda + 1 * lanes, full);
    vfloat64m2_t a1_0;
    vfloat64m2_t a1_1;
    double b0 = b[0 * rsb + 0 * csb];
    double b1 = b[0 * rsb + 1 * csb];
    double b2;
    /* C's columns are asked for one by one, all along: a core has few misses under way at a time, and A and B
     * need them too */
    const size_t apart = (3 << 16) / (k / 2 + 1);
    size_t asked = 0;
    for (; k > 2; k -= 2) {
        const size_t column = (asked >> 16) * ldc;
        asked += apart;
        a1_0 = __riscv_vle64_v_f64m2(a + 1 * lda + 0 * lanes, full);
        __builtin_prefetch(a + 7 * lda + 0 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b2 = b[0 * rsb + 2 * csb];
        if (rsb == 1) { /* each column is a stream of its own */
            __builtin_prefetch(b + 0 * rsb + 0 * csb + 40);
        }
        c0_0 = __riscv_vfmacc_vf_f64m2(c0_0, b0, a0_0, full);
        c1_0 = __riscv_vfmacc_vf_f64m2(c1_0, b0, a0_1, full);
        a1_1 = __riscv_vle64_v_f64m2(a + 1 * lda + 1 * lanes, full);
        __builtin_prefetch(a + 7 * lda + 1 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b0 = b[1 * rsb + 0 * csb];
        c0_1 = __riscv_vfmacc_vf_f64m2(c0_1, b1, a0_0, full);
        c1_1 = __riscv_vfmacc_vf_f64m2(c1_1, b1, a0_1, full);
        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b1 = b[1 * rsb + 1 * csb];
        if (rsb == 1) { /* each column is a stream of its own */
            __builtin_prefetch(b + 0 * rsb + 2 * csb + 40);
        }
        c0_2 = __riscv_vfmacc_vf_f64m2(c0_2, b2, a0_0, full);
        c1_2 = __riscv_vfmacc_vf_f64m2(c1_2, b2, a0_1, full);
        {
            const volatile char *at_ = (const char *)(c + column);
            (void)*at_;
        };
        if (2 * lanes > 8) { /* a column has another cache line */
            __builtin_prefetch(c + column + 8);
        }
        if (2 * lanes > 16) { /* a column has another cache line */
            __builtin_prefetch(c + column + 16);
        }
        if (2 * lanes > 24) { /* a column has another cache line */
            __builtin_prefetch(c + column + 24);
        }
        a0_0 = __riscv_vle64_v_f64m2(a + 2 * lda + 0 * lanes, full);
        __builtin_prefetch(a + 8 * lda + 0 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b2 = b[1 * rsb + 2 * csb];
        c0_0 = __riscv_vfmacc_vf_f64m2(c0_0, b0, a1_0, full);
        c1_0 = __riscv_vfmacc_vf_f64m2(c1_0, b0, a1_1, full);
        a0_1 = __riscv_vle64_v_f64m2(a + 2 * lda + 1 * lanes, full);
        __builtin_prefetch(a + 8 * lda + 1 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b += 2 * rsb;
        b0 = b[0 * rsb + 0 * csb];
        if (rsb == 1) { /* each column is a stream of its own */
            __builtin_prefetch(b + 0 * rsb + 1 * csb + 40);
        }
        c0_1 = __riscv_vfmacc_vf_f64m2(c0_1, b1, a1_0, full);
        c1_1 = __riscv_vfmacc_vf_f64m2(c1_1, b1, a1_1, full);
        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b1 = b[0 * rsb + 1 * csb];
        c0_2 = __riscv_vfmacc_vf_f64m2(c0_2, b2, a1_0, full);
        c1_2 = __riscv_vfmacc_vf_f64m2(c1_2, b2, a1_1, full);
        a += 2 * lda;
    }
    b2 = b[0 * rsb + 2 * csb];
    c0_0 = __riscv_vfmacc_vf_f64m2(c0_0, b0, a0_0, full);
    c1_0 = __riscv_vfmacc_vf_f64m2(c1_0, b0, a0_1, full);
    c0_1 = __riscv_vfmacc_vf_f64m2(c0_1, b1, a0_0, full);
    c1_1 = __riscv_vfmacc_vf_f64m2(c1_1, b1, a0_1, full);
    c0_2 = __riscv_vfmacc_vf_f64m2(c0_2, b2, a0_0, full);
    c1_2 = __riscv_vfmacc_vf_f64m2(c1_2, b2, a0_1, full);
    a += lda;
    b += rsb;
    --k;
    for (; k; --k) {
        const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + 0 * lda + 0 * lanes, full);
        const vfloat64m2_t a1 = __riscv_vle64_v_f64m2(a + 0 * lda + 1 * lanes, full);
        const double b0 = b[0 * rsb + 0 * csb];
        c0_0 = __riscv_vfmacc_vf_f64m2(c0_0, b0, a0, full);
        c1_0 = __riscv_vfmacc_vf_f64m2(c1_0, b0, a1, full);
        const double b1 = b[0 * rsb + 1 * csb];
        c0_1 = __riscv_vfmacc_vf_f64m2(c0_1, b1, a0, full);
        c1_1 = __riscv_vfmacc_vf_f64m2(c1_1, b1, a1, full);
        const double b2 = b[0 * rsb + 2 * csb];
        c0_2 = __riscv_vfmacc_vf_f64m2(c0_2, b2, a0, full);
        c1_2 = __riscv_vfmacc_vf_f64m2(c1_2, b2, a1, full);
        a += lda;
        b += rsb;
    }
    /* C = alpha * tile + beta * C; at beta = 0 C is not read */
    if (beta == 0) {
        __riscv_vse64_v_f64m2(c + 0 * ldc + 0 * lanes, __riscv_vfmul_vf_f64m2(c0_0, alpha, full), full);
        __riscv_vse64_v_f64m2(c + 0 * ldc + 1 * lanes, __riscv_vfmul_vf_f64m2(c1_0, alpha, full), full);
        __riscv_vse64_v_f64m2(c + 1 * ldc + 0 * lanes, __riscv_vfmul_vf_f64m2(c0_1, alpha, full), full);
        __riscv_vse64_v_f64m2(c + 1 * ldc + 1 * lanes, __riscv_vfmul_vf_f64m2(c1_1, alpha, full), full);
        __riscv_vse64_v_f64m2(c + 2 * ldc + 0 * lanes, __riscv_vfmul_vf_f64m2(c0_2, alpha, full), full);
        __riscv_vse64_v_f64m2(c + 2 * ldc + 1 * lanes, __riscv_vfmul_vf_f64m2(c1_2, alpha, full), full);
    } else if (beta == 1) {
        vfloat64m2_t old0_0 = __riscv_vle64_v_f64m2(c + 0 * ldc + 0 * lanes, full);
        vfloat64m2_t old1_0 = __riscv_vle64_v_f64m2(c + 1 * ldc + 0 * lanes, full);
        vfloat64m2_t old2_0 = __riscv_vle64_v_f64m2(c + 2 * ldc + 0 * lanes, full);
        vfloat64m2_t old0_1 = __riscv_vle64_v_f64m2(c + 0 * ldc + 1 * lanes, full);
        vfloat64m2_t old1_1 = __riscv_vle64_v_f64m2(c + 1 * ldc + 1 * lanes, full);
        vfloat64m2_t old2_1 = __riscv_vle64_v_f64m2(c + 2 * ldc + 1 * lanes, full);
        __riscv_vse64_v_f64m2(c + 0 * ldc + 0 * lanes, __riscv_vfmacc_vf_f64m2(old0_0, alpha, c0_0, full),
                              full);
        __riscv_vse64_v_f64m2(c + 0 * ldc + 1 * lanes, __riscv_vfmacc_vf_f64m2(old0_1, alpha, c1_0, full),
                              full);
        __riscv_vse64_v_f64m2(c + 1 * ldc + 0 * lanes, __riscv_vfmacc_vf_f64m2(old1_0, alpha, c0_1, full),
                              full);
        __riscv_vse64_v_f64m2(c + 1 * ldc + 1 * lanes, __riscv_vfmacc_vf_f64m2(old1_1, alpha, c1_1, full),
                              full);
        __riscv_vse64_v_f64m2(c + 2 * ldc + 0 * lanes, __riscv_vfmacc_vf_f64m2(old2_0, alpha, c0_2, full),
                              full);
        __riscv_vse64_v_f64m2(c + 2 * ldc + 1 * lanes, __riscv_vfmacc_vf_f64m2(old2_1, alpha, c1_2, full),
                              full);

    } else {
        vfloat64m2_t old0_0 = __riscv_vle64_v_f64m2(c + 0 * ldc + 0 * lanes, full);
        vfloat64m2_t old1_0 = __riscv_vle64_v_f64m2(c + 1 * ldc + 0 * lanes, full);
        vfloat64m2_t old2_0 = __riscv_vle64_v_f64m2(c + 2 * ldc + 0 * lanes, full);
        vfloat64m2_t old0_1 = __riscv_vle64_v_f64m2(c + 0 * ldc + 1 * lanes, full);
        vfloat64m2_t old1_1 = __riscv_vle64_v_f64m2(c + 1 * ldc + 1 * lanes, full);
        vfloat64m2_t old2_1 = __riscv_vle64_v_f64m2(c + 2 * ldc + 1 * lanes, full);
        __riscv_vse64_v_f64m2(
            c + 0 * ldc + 0 * lanes,
            __riscv_vfmacc_vf_f64m2(__riscv_vfmul_vf_f64m2(c0_0, alpha, full), beta, old0_0, full), full);
        __riscv_vse64_v_f64m2(
            c + 0 * ldc + 1 * lanes,
            __riscv_vfmacc_vf_f64m2(__riscv_vfmul_vf_f64m2(c1_0, alpha, full), beta, old0_1, full), full);
        __riscv_vse64_v_f64m2(
            c + 1 * ldc + 0 * lanes,
            __riscv_vfmacc_vf_f64m2(__riscv_vfmul_vf_f64m2(c0_1, alpha, full), beta, old1_0, full), full);
        __riscv_vse64_v_f64m2(
            c + 1 * ldc + 1 * lanes,
            __riscv_vfmacc_vf_f64m2(__riscv_vfmul_vf_f64m2(c1_1, alpha, full), beta, old1_1, full), full);
        __riscv_vse64_v_f64m2(
            c + 2 * ldc + 0 * lanes,
            __riscv_vfmacc_vf_f64m2(__riscv_vfmul_vf_f64m2(c0_2, alpha, full), beta, old2_0, full), full);
        __riscv_vse64_v_f64m2(
            c + 2 * ldc + 1 * lanes,
            __riscv_vfmacc_vf_f64m2(__riscv_vfmul_vf_f64m2(c1_2, alpha, full), beta, old2_1, full), full);
    }
}

#define rvv_f64_outer_4031_ARGS                                                                              \
    size_t m, size_t k, const double *a, size_t lda, const double *b, size_t sb, double alpha, double beta,  \
        double *c, size_t ldc

static void rvv_f64_outer_4031_packed_1x1(rvv_f64_outer_4031_ARGS) {
    (void)sb, (void)lda;
    rvv_f64_outer_4031_tile_1x1_tail(m, k, a, 1 * (__riscv_vsetvlmax_e64m2()), b, 1, 1, alpha, beta, c, ldc);
}
static void rvv_f64_outer_4031_packed_2x1(rvv_f64_outer_4031_ARGS) {
    (void)sb, (void)lda;
    rvv_f64_outer_4031_tile_2x1_tail(m, k, a, 2 * (__riscv_vsetvlmax_e64m2()), b, 1, 1, alpha, beta, c, ldc);
}
static void rvv_f64_outer_4031_packed_1x2(rvv_f64_outer_4031_ARGS) {
    (void)sb, (void)lda;
    rvv_f64_outer_4031_tile_1x2_tail(m, k, a, 1 * (__riscv_vsetvlmax_e64m2()), b, 2, 1, alpha, beta, c, ldc);
}
static void rvv_f64_outer_4031_packed_2x2(rvv_f64_outer_4031_ARGS) {
    (void)sb, (void)lda;
    rvv_f64_outer_4031_tile_2x2_tail(m, k, a, 2 * (__riscv_vsetvlmax_e64m2()), b, 2, 1, alpha, beta, c, ldc);
}
static void rvv_f64_outer_4031_packed_1x3(rvv_f64_outer_4031_ARGS) {
    (void)sb, (void)lda;
    rvv_f64_outer_4031_tile_1x3_tail(m, k, a, 1 * (__riscv_vsetvlmax_e64m2()), b, 3, 1, alpha, beta, c, ldc);
}
static void rvv_f64_outer_4031_packed_2x3(rvv_f64_outer_4031_ARGS) {
    (void)sb, (void)lda;
    if (m == 2 * (__riscv_vsetvlmax_e64m2())) {
        rvv_f64_outer_4031_tile_2x3(m, k, a, 2 * (__riscv_vsetvlmax_e64m2()), b, 3, 1, alpha, beta, c, ldc);
        return;
    }
    rvv_f64_outer_4031_tile_2x3_tail(m, k, a, 2 * (__riscv_vsetvlmax_e64m2()), b, 3, 1, alpha, beta, c, ldc);
}

static void (*const rvv_f64_outer_4031_packed[3][2])(rvv_f64_outer_4031_ARGS) = {
    {rvv_f64_outer_4031_packed_1x1, rvv_f64_outer_4031_packed_2x1},
    {rvv_f64_outer_4031_packed_1x2, rvv_f64_outer_4031_packed_2x2},
    {rvv_f64_outer_4031_packed_1x3, rvv_f64_outer_4031_packed_2x3},
};

#ifndef TENSOROP_RVV_F64_M1
#define TENSOROP_RVV_F64_M1
/* dst[j * ldd + i] = src[i * lds + j] for i < rows <= lanes, j < cols: neighbours by pairs, as segments */
static inline void tensorop_transpose_f64m1(double *dst, size_t ldd, const double *src, size_t lds,
                                            size_t rows, size_t cols) {
    const ptrdiff_t stride = (ptrdiff_t)(lds * sizeof(double)), apart = (ptrdiff_t)(ldd * sizeof(double));
    size_t i = 0, j = 0;
    if (rows < cols) { /* fuller vectors along a row, stored apart */
        for (; i + 2 <= rows; i += 2)
            __riscv_vssseg2e64_v_f64m1x2(
                dst + i, apart,
                __riscv_vcreate_v_f64m1x2(__riscv_vle64_v_f64m1(src + i * lds, cols),
                                          __riscv_vle64_v_f64m1(src + (i + 1) * lds, cols)),
                cols);
        if (i < rows)
            __riscv_vsse64_v_f64m1(dst + i, apart, __riscv_vle64_v_f64m1(src + i * lds, cols), cols);
        return;
    }
    for (; j + 2 <= cols; j += 2) {
        const vfloat64m1x2_t pair = __riscv_vlsseg2e64_v_f64m1x2(src + j, stride, rows);
        __riscv_vse64_v_f64m1(dst + j * ldd, __riscv_vget_v_f64m1x2_f64m1(pair, 0), rows);
        __riscv_vse64_v_f64m1(dst + (j + 1) * ldd, __riscv_vget_v_f64m1x2_f64m1(pair, 1), rows);
    }
    if (j < cols)
        __riscv_vse64_v_f64m1(dst + j * ldd, __riscv_vlse64_v_f64m1(src + j, stride, rows), rows);
}
#endif

/* rvv_f64_outer_4031_edge: micro-kernel 'outer' at ahead=1 c_ahead=1 fetch=6 ku=2 late=0 lead=2 lmul=1 mv=2
 * nr=3 (rvv, f64) rank-1 updates of an mv x nr register tile: vectors along m, one scalar of B a column; A is
 * loaded `ahead` k steps and B `lead` columns before their use, so that neither load's latency stands in the
 * FMAs' way; A's loads begin after `late` columns, when the last readers of the registers they overwrite are
 * done; `fetch` k steps before that they are prefetched into L1; with `c_ahead` columns of C are brought near
 * while the tile is computed */
static inline __attribute__((always_inline)) void
rvv_f64_outer_4031_edge_tile_1x1_tail(size_t m, size_t k, const double *restrict a, size_t lda,
                                      const double *restrict b, size_t rsb, size_t csb, double alpha,
                                      double beta, double *restrict c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e64m1();
    const size_t full = lanes;
    const size_t tail = ((size_t)(m - 0 * lanes));
    (void)m, (void)full, (void)lanes, (void)rsb;
    vfloat64m1_t c0_0 = __riscv_vfmv_v_f_f64m1(0, tail);
    vfloat64m1_t a0_0 = __riscv_vle64_v_f64m1(a + 0 * lda + 0 * lanes, tail);
    vfloat64m1_t a1_0;
    double b0;
    /* C's columns are asked for one by one, all along: a core has few misses under way at a time, and A and B
     * need them too */
    const size_t apart = (1 << 16) / (k / 2 + 1);
    size_t asked = 0;
    for (; k > 2; k -= 2) {
        const size_t column = (asked >> 16) * ldc;
        asked += apart;
        a1_0 = __riscv_vle64_v_f64m1(a + 1 * lda + 0 * lanes, tail);
        __builtin_prefetch(a + 7 * lda + 0 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b0 = b[0 * rsb + 0 * csb];
        if (rsb == 1) { /* each column is a stream of its own */
            __builtin_prefetch(b + 0 * rsb + 0 * csb + 40);
        }
        c0_0 = __riscv_vfmacc_vf_f64m1(c0_0, b0, a0_0, tail);
        {
            const volatile char *at_ = (const char *)(c + column);
            (void)*at_;
        };
        if (1 * lanes > 8) { /* a column has another cache line */
            __builtin_prefetch(c + column + 8);
        }
        if (1 * lanes > 16) { /* a column has another cache line */
            __builtin_prefetch(c + column + 16);
        }
        if (1 * lanes > 24) { /* a column has another cache line */
            __builtin_prefetch(c + column + 24);
        }
        a0_0 = __riscv_vle64_v_f64m1(a + 2 * lda + 0 * lanes, tail);
        __builtin_prefetch(a + 8 * lda + 0 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b0 = b[1 * rsb + 0 * csb];
        c0_0 = __riscv_vfmacc_vf_f64m1(c0_0, b0, a1_0, tail);
        a += 2 * lda;
        b += 2 * rsb;
    }
    b0 = b[0 * rsb + 0 * csb];
    c0_0 = __riscv_vfmacc_vf_f64m1(c0_0, b0, a0_0, tail);
    a += lda;
    b += rsb;
    --k;
    for (; k; --k) {
        const vfloat64m1_t a0 = __riscv_vle64_v_f64m1(a + 0 * lda + 0 * lanes, tail);
        const double b0 = b[0 * rsb + 0 * csb];
        c0_0 = __riscv_vfmacc_vf_f64m1(c0_0, b0, a0, tail);
        a += lda;
        b += rsb;
    }
    /* C = alpha * tile + beta * C; at beta = 0 C is not read */
    if (beta == 0) {
        __riscv_vse64_v_f64m1(c + 0 * ldc + 0 * lanes, __riscv_vfmul_vf_f64m1(c0_0, alpha, tail), tail);
    } else if (beta == 1) {
        vfloat64m1_t old0_0 = __riscv_vle64_v_f64m1(c + 0 * ldc + 0 * lanes, tail);
        __riscv_vse64_v_f64m1(c + 0 * ldc + 0 * lanes, __riscv_vfmacc_vf_f64m1(old0_0, alpha, c0_0, tail),
                              tail);

    } else {
        vfloat64m1_t old0_0 = __riscv_vle64_v_f64m1(c + 0 * ldc + 0 * lanes, tail);
        __riscv_vse64_v_f64m1(
            c + 0 * ldc + 0 * lanes,
            __riscv_vfmacc_vf_f64m1(__riscv_vfmul_vf_f64m1(c0_0, alpha, tail), beta, old0_0, tail), tail);
    }
}

static inline __attribute__((always_inline)) void
rvv_f64_outer_4031_edge_tile_2x1_tail(size_t m, size_t k, const double *restrict a, size_t lda,
                                      const double *restrict b, size_t rsb, size_t csb, double alpha,
                                      double beta, double *restrict c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e64m1();
    const size_t full = lanes;
    const size_t tail = ((size_t)(m - 1 * lanes));
    (void)m, (void)full, (void)lanes, (void)rsb;
    vfloat64m1_t c0_0 = __riscv_vfmv_v_f_f64m1(0, full);
    vfloat64m1_t c1_0 = __riscv_vfmv_v_f_f64m1(0, tail);
    vfloat64m1_t a0_0 = __riscv_vle64_v_f64m1(a + 0 * lda + 0 * lanes, full);
    vfloat64m1_t a0_1 = __riscv_vle64_v_f64m1(a + 0 * lda + 1 * lanes, tail);
    vfloat64m1_t a1_0;
    vfloat64m1_t a1_1;
    double b0;
    /* C's columns are asked for one by one, all along: a core has few misses under way at a time, and A and B
     * need them too */
    const size_t apart = (1 << 16) / (k / 2 + 1);
    size_t asked = 0;
    for (; k > 2; k -= 2) {
        const size_t column = (asked >> 16) * ldc;
        asked += apart;
        a1_0 = __riscv_vle64_v_f64m1(a + 1 * lda + 0 * lanes, full);
        __builtin_prefetch(a + 7 * lda + 0 * lanes);

        a1_1 = __riscv_vle64_v_f64m1(a + 1 * lda + 1 * lanes, tail);
        __builtin_prefetch(a + 7 * lda + 1 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b0 = b[0 * rsb + 0 * csb];
        if (rsb == 1) { /* each column is a stream of its own */
            __builtin_prefetch(b + 0 * rsb + 0 * csb + 40);
        }
        c0_0 = __riscv_vfmacc_vf_f64m1(c0_0, b0, a0_0, full);
        c1_0 = __riscv_vfmacc_vf_f64m1(c1_0, b0, a0_1, tail);
        {
            const volatile char *at_ = (const char *)(c + column);
            (void)*at_;
        };
        if (2 * lanes > 8) { /* a column has another cache line */
            __builtin_prefetch(c + column + 8);
        }
        if (2 * lanes > 16) { /* a column has another cache line */
            __builtin_prefetch(c + column + 16);
        }
        if (2 * lanes > 24) { /* a column has another cache line */
            __builtin_prefetch(c + column + 24);
        }
        a0_0 = __riscv_vle64_v_f64m1(a + 2 * lda + 0 * lanes, full);
        __builtin_prefetch(a + 8 * lda + 0 * lanes);

        a0_1 = __riscv_vle64_v_f64m1(a + 2 * lda + 1 * lanes, tail);
        __builtin_prefetch(a + 8 * lda + 1 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b0 = b[1 * rsb + 0 * csb];
        c0_0 = __riscv_vfmacc_vf_f64m1(c0_0, b0, a1_0, full);
        c1_0 = __riscv_vfmacc_vf_f64m1(c1_0, b0, a1_1, tail);
        a += 2 * lda;
        b += 2 * rsb;
    }
    b0 = b[0 * rsb + 0 * csb];
    c0_0 = __riscv_vfmacc_vf_f64m1(c0_0, b0, a0_0, full);
    c1_0 = __riscv_vfmacc_vf_f64m1(c1_0, b0, a0_1, tail);
    a += lda;
    b += rsb;
    --k;
    for (; k; --k) {
        const vfloat64m1_t a0 = __riscv_vle64_v_f64m1(a + 0 * lda + 0 * lanes, full);
        const vfloat64m1_t a1 = __riscv_vle64_v_f64m1(a + 0 * lda + 1 * lanes, tail);
        const double b0 = b[0 * rsb + 0 * csb];
        c0_0 = __riscv_vfmacc_vf_f64m1(c0_0, b0, a0, full);
        c1_0 = __riscv_vfmacc_vf_f64m1(c1_0, b0, a1, tail);
        a += lda;
        b += rsb;
    }
    /* C = alpha * tile + beta * C; at beta = 0 C is not read */
    if (beta == 0) {
        __riscv_vse64_v_f64m1(c + 0 * ldc + 0 * lanes, __riscv_vfmul_vf_f64m1(c0_0, alpha, full), full);
        __riscv_vse64_v_f64m1(c + 0 * ldc + 1 * lanes, __riscv_vfmul_vf_f64m1(c1_0, alpha, tail), tail);
    } else if (beta == 1) {
        vfloat64m1_t old0_0 = __riscv_vle64_v_f64m1(c + 0 * ldc + 0 * lanes, full);
        vfloat64m1_t old0_1 = __riscv_vle64_v_f64m1(c + 0 * ldc + 1 * lanes, tail);
        __riscv_vse64_v_f64m1(c + 0 * ldc + 0 * lanes, __riscv_vfmacc_vf_f64m1(old0_0, alpha, c0_0, full),
                              full);
        __riscv_vse64_v_f64m1(c + 0 * ldc + 1 * lanes, __riscv_vfmacc_vf_f64m1(old0_1, alpha, c1_0, tail),
                              tail);

    } else {
        vfloat64m1_t old0_0 = __riscv_vle64_v_f64m1(c + 0 * ldc + 0 * lanes, full);
        vfloat64m1_t old0_1 = __riscv_vle64_v_f64m1(c + 0 * ldc + 1 * lanes, tail);
        __riscv_vse64_v_f64m1(
            c + 0 * ldc + 0 * lanes,
            __riscv_vfmacc_vf_f64m1(__riscv_vfmul_vf_f64m1(c0_0, alpha, full), beta, old0_0, full), full);
        __riscv_vse64_v_f64m1(
            c + 0 * ldc + 1 * lanes,
            __riscv_vfmacc_vf_f64m1(__riscv_vfmul_vf_f64m1(c1_0, alpha, tail), beta, old0_1, tail), tail);
    }
}

static inline __attribute__((always_inline)) void
rvv_f64_outer_4031_edge_tile_1x2_tail(size_t m, size_t k, const double *restrict a, size_t lda,
                                      const double *restrict b, size_t rsb, size_t csb, double alpha,
                                      double beta, double *restrict c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e64m1();
    const size_t full = lanes;
    const size_t tail = ((size_t)(m - 0 * lanes));
    (void)m, (void)full, (void)lanes, (void)rsb;
    vfloat64m1_t c0_0 = __riscv_vfmv_v_f_f64m1(0, tail);
    vfloat64m1_t c0_1 = __riscv_vfmv_v_f_f64m1(0, tail);
    vfloat64m1_t a0_0 = __riscv_vle64_v_f64m1(a + 0 * lda + 0 * lanes, tail);
    vfloat64m1_t a1_0;
    double b0 = b[0 * rsb + 0 * csb];
    double b1;
    /* C's columns are asked for one by one, all along: a core has few misses under way at a time, and A and B
     * need them too */
    const size_t apart = (2 << 16) / (k / 2 + 1);
    size_t asked = 0;
    for (; k > 2; k -= 2) {
        const size_t column = (asked >> 16) * ldc;
        asked += apart;
        a1_0 = __riscv_vle64_v_f64m1(a + 1 * lda + 0 * lanes, tail);
        __builtin_prefetch(a + 7 * lda + 0 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b1 = b[0 * rsb + 1 * csb];
        if (rsb == 1) { /* each column is a stream of its own */
            __builtin_prefetch(b + 0 * rsb + 0 * csb + 40);
        }
        c0_0 = __riscv_vfmacc_vf_f64m1(c0_0, b0, a0_0, tail);
        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b0 = b[1 * rsb + 0 * csb];
        c0_1 = __riscv_vfmacc_vf_f64m1(c0_1, b1, a0_0, tail);
        {
            const volatile char *at_ = (const char *)(c + column);
            (void)*at_;
        };
        if (1 * lanes > 8) { /* a column has another cache line */
            __builtin_prefetch(c + column + 8);
        }
        if (1 * lanes > 16) { /* a column has another cache line */
            __builtin_prefetch(c + column + 16);
        }
        if (1 * lanes > 24) { /* a column has another cache line */
            __builtin_prefetch(c + column + 24);
        }
        a0_0 = __riscv_vle64_v_f64m1(a + 2 * lda + 0 * lanes, tail);
        __builtin_prefetch(a + 8 * lda + 0 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b1 = b[1 * rsb + 1 * csb];
        c0_0 = __riscv_vfmacc_vf_f64m1(c0_0, b0, a1_0, tail);
        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b += 2 * rsb;
        b0 = b[0 * rsb + 0 * csb];
        if (rsb == 1) { /* each column is a stream of its own */
            __builtin_prefetch(b + 0 * rsb + 1 * csb + 40);
        }
        c0_1 = __riscv_vfmacc_vf_f64m1(c0_1, b1, a1_0, tail);
        a += 2 * lda;
    }
    b1 = b[0 * rsb + 1 * csb];
    c0_0 = __riscv_vfmacc_vf_f64m1(c0_0, b0, a0_0, tail);
    c0_1 = __riscv_vfmacc_vf_f64m1(c0_1, b1, a0_0, tail);
    a += lda;
    b += rsb;
    --k;
    for (; k; --k) {
        const vfloat64m1_t a0 = __riscv_vle64_v_f64m1(a + 0 * lda + 0 * lanes, tail);
        const double b0 = b[0 * rsb + 0 * csb];
        c0_0 = __riscv_vfmacc_vf_f64m1(c0_0, b0, a0, tail);
        const double b1 = b[0 * rsb + 1 * csb];
        c0_1 = __riscv_vfmacc_vf_f64m1(c0_1, b1, a0, tail);
        a += lda;
        b += rsb;
    }
    /* C = alpha * tile + beta * C; at beta = 0 C is not read */
    if (beta == 0) {
        __riscv_vse64_v_f64m1(c + 0 * ldc + 0 * lanes, __riscv_vfmul_vf_f64m1(c0_0, alpha, tail), tail);
        __riscv_vse64_v_f64m1(c + 1 * ldc + 0 * lanes, __riscv_vfmul_vf_f64m1(c0_1, alpha, tail), tail);
    } else if (beta == 1) {
        vfloat64m1_t old0_0 = __riscv_vle64_v_f64m1(c + 0 * ldc + 0 * lanes, tail);
        vfloat64m1_t old1_0 = __riscv_vle64_v_f64m1(c + 1 * ldc + 0 * lanes, tail);
        __riscv_vse64_v_f64m1(c + 0 * ldc + 0 * lanes, __riscv_vfmacc_vf_f64m1(old0_0, alpha, c0_0, tail),
                              tail);
        __riscv_vse64_v_f64m1(c + 1 * ldc + 0 * lanes, __riscv_vfmacc_vf_f64m1(old1_0, alpha, c0_1, tail),
                              tail);

    } else {
        vfloat64m1_t old0_0 = __riscv_vle64_v_f64m1(c + 0 * ldc + 0 * lanes, tail);
        vfloat64m1_t old1_0 = __riscv_vle64_v_f64m1(c + 1 * ldc + 0 * lanes, tail);
        __riscv_vse64_v_f64m1(
            c + 0 * ldc + 0 * lanes,
            __riscv_vfmacc_vf_f64m1(__riscv_vfmul_vf_f64m1(c0_0, alpha, tail), beta, old0_0, tail), tail);
        __riscv_vse64_v_f64m1(
            c + 1 * ldc + 0 * lanes,
            __riscv_vfmacc_vf_f64m1(__riscv_vfmul_vf_f64m1(c0_1, alpha, tail), beta, old1_0, tail), tail);
    }
}

static inline __attribute__((always_inline)) void
rvv_f64_outer_4031_edge_tile_2x2_tail(size_t m, size_t k, const double *restrict a, size_t lda,
                                      const double *restrict b, size_t rsb, size_t csb, double alpha,
                                      double beta, double *restrict c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e64m1();
    const size_t full = lanes;
    const size_t tail = ((size_t)(m - 1 * lanes));
    (void)m, (void)full, (void)lanes, (void)rsb;
    vfloat64m1_t c0_0 = __riscv_vfmv_v_f_f64m1(0, full);
    vfloat64m1_t c1_0 = __riscv_vfmv_v_f_f64m1(0, tail);
    vfloat64m1_t c0_1 = __riscv_vfmv_v_f_f64m1(0, full);
    vfloat64m1_t c1_1 = __riscv_vfmv_v_f_f64m1(0, tail);
    vfloat64m1_t a0_0 = __riscv_vle64_v_f64m1(a + 0 * lda + 0 * lanes, full);
    vfloat64m1_t a0_1 = __riscv_vle64_v_f64m1(a + 0 * lda + 1 * lanes, tail);
    vfloat64m1_t a1_0;
    vfloat64m1_t a1_1;
    double b0 = b[0 * rsb + 0 * csb];
    double b1;
    /* C's columns are asked for one by one, all along: a core has few misses under way at a time, and A and B
     * need them too */
    const size_t apart = (2 << 16) / (k / 2 + 1);
    size_t asked = 0;
    for (; k > 2; k -= 2) {
        const size_t column = (asked >> 16) * ldc;
        asked += apart;
        a1_0 = __riscv_vle64_v_f64m1(a + 1 * lda + 0 * lanes, full);
        __builtin_prefetch(a + 7 * lda + 0 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b1 = b[0 * rsb + 1 * csb];
        if (rsb == 1) { /* each column is a stream of its own */
            __builtin_prefetch(b + 0 * rsb + 0 * csb + 40);
        }
        c0_0 = __riscv_vfmacc_vf_f64m1(c0_0, b0, a0_0, full);
        c1_0 = __riscv_vfmacc_vf_f64m1(c1_0, b0, a0_1, tail);
        a1_1 = __riscv_vle64_v_f64m1(a + 1 * lda + 1 * lanes, tail);
        __builtin_prefetch(a + 7 * lda + 1 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b0 = b[1 * rsb + 0 * csb];
        c0_1 = __riscv_vfmacc_vf_f64m1(c0_1, b1, a0_0, full);
        c1_1 = __riscv_vfmacc_vf_f64m1(c1_1, b1, a0_1, tail);
        {
            const volatile char *at_ = (const char *)(c + column);
            (void)*at_;
        };
        if (2 * lanes > 8) { /* a column has another cache line */
            __builtin_prefetch(c + column + 8);
        }
        if (2 * lanes > 16) { /* a column has another cache line */
            __builtin_prefetch(c + column + 16);
        }
        if (2 * lanes > 24) { /* a column has another cache line */
            __builtin_prefetch(c + column + 24);
        }
        a0_0 = __riscv_vle64_v_f64m1(a + 2 * lda + 0 * lanes, full);
        __builtin_prefetch(a + 8 * lda + 0 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b1 = b[1 * rsb + 1 * csb];
        c0_0 = __riscv_vfmacc_vf_f64m1(c0_0, b0, a1_0, full);
        c1_0 = __riscv_vfmacc_vf_f64m1(c1_0, b0, a1_1, tail);
        a0_1 = __riscv_vle64_v_f64m1(a + 2 * lda + 1 * lanes, tail);
        __builtin_prefetch(a + 8 * lda + 1 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b += 2 * rsb;
        b0 = b[0 * rsb + 0 * csb];
        if (rsb == 1) { /* each column is a stream of its own */
            __builtin_prefetch(b + 0 * rsb + 1 * csb + 40);
        }
        c0_1 = __riscv_vfmacc_vf_f64m1(c0_1, b1, a1_0, full);
        c1_1 = __riscv_vfmacc_vf_f64m1(c1_1, b1, a1_1, tail);
        a += 2 * lda;
    }
    b1 = b[0 * rsb + 1 * csb];
    c0_0 = __riscv_vfmacc_vf_f64m1(c0_0, b0, a0_0, full);
    c1_0 = __riscv_vfmacc_vf_f64m1(c1_0, b0, a0_1, tail);
    c0_1 = __riscv_vfmacc_vf_f64m1(c0_1, b1, a0_0, full);
    c1_1 = __riscv_vfmacc_vf_f64m1(c1_1, b1, a0_1, tail);
    a += lda;
    b += rsb;
    --k;
    for (; k; --k) {
        const vfloat64m1_t a0 = __riscv_vle64_v_f64m1(a + 0 * lda + 0 * lanes, full);
        const vfloat64m1_t a1 = __riscv_vle64_v_f64m1(a + 0 * lda + 1 * lanes, tail);
        const double b0 = b[0 * rsb + 0 * csb];
        c0_0 = __riscv_vfmacc_vf_f64m1(c0_0, b0, a0, full);
        c1_0 = __riscv_vfmacc_vf_f64m1(c1_0, b0, a1, tail);
        const double b1 = b[0 * rsb + 1 * csb];
        c0_1 = __riscv_vfmacc_vf_f64m1(c0_1, b1, a0, full);
        c1_1 = __riscv_vfmacc_vf_f64m1(c1_1, b1, a1, tail);
        a += lda;
        b += rsb;
    }
    /* C = alpha * tile + beta * C; at beta = 0 C is not read */
    if (beta == 0) {
        __riscv_vse64_v_f64m1(c + 0 * ldc + 0 * lanes, __riscv_vfmul_vf_f64m1(c0_0, alpha, full), full);
        __riscv_vse64_v_f64m1(c + 0 * ldc + 1 * lanes, __riscv_vfmul_vf_f64m1(c1_0, alpha, tail), tail);
        __riscv_vse64_v_f64m1(c + 1 * ldc + 0 * lanes, __riscv_vfmul_vf_f64m1(c0_1, alpha, full), full);
        __riscv_vse64_v_f64m1(c + 1 * ldc + 1 * lanes, __riscv_vfmul_vf_f64m1(c1_1, alpha, tail), tail);
    } else if (beta == 1) {
        vfloat64m1_t old0_0 = __riscv_vle64_v_f64m1(c + 0 * ldc + 0 * lanes, full);
        vfloat64m1_t old1_0 = __riscv_vle64_v_f64m1(c + 1 * ldc + 0 * lanes, full);
        vfloat64m1_t old0_1 = __riscv_vle64_v_f64m1(c + 0 * ldc + 1 * lanes, tail);
        vfloat64m1_t old1_1 = __riscv_vle64_v_f64m1(c + 1 * ldc + 1 * lanes, tail);
        __riscv_vse64_v_f64m1(c + 0 * ldc + 0 * lanes, __riscv_vfmacc_vf_f64m1(old0_0, alpha, c0_0, full),
                              full);
        __riscv_vse64_v_f64m1(c + 0 * ldc + 1 * lanes, __riscv_vfmacc_vf_f64m1(old0_1, alpha, c1_0, tail),
                              tail);
        __riscv_vse64_v_f64m1(c + 1 * ldc + 0 * lanes, __riscv_vfmacc_vf_f64m1(old1_0, alpha, c0_1, full),
                              full);
        __riscv_vse64_v_f64m1(c + 1 * ldc + 1 * lanes, __riscv_vfmacc_vf_f64m1(old1_1, alpha, c1_1, tail),
                              tail);

    } else {
        vfloat64m1_t old0_0 = __riscv_vle64_v_f64m1(c + 0 * ldc + 0 * lanes, full);
        vfloat64m1_t old1_0 = __riscv_vle64_v_f64m1(c + 1 * ldc + 0 * lanes, full);
        vfloat64m1_t old0_1 = __riscv_vle64_v_f64m1(c + 0 * ldc + 1 * lanes, tail);
        vfloat64m1_t old1_1 = __riscv_vle64_v_f64m1(c + 1 * ldc + 1 * lanes, tail);
        __riscv_vse64_v_f64m1(
            c + 0 * ldc + 0 * lanes,
            __riscv_vfmacc_vf_f64m1(__riscv_vfmul_vf_f64m1(c0_0, alpha, full), beta, old0_0, full), full);
        __riscv_vse64_v_f64m1(
            c + 0 * ldc + 1 * lanes,
            __riscv_vfmacc_vf_f64m1(__riscv_vfmul_vf_f64m1(c1_0, alpha, tail), beta, old0_1, tail), tail);
        __riscv_vse64_v_f64m1(
            c + 1 * ldc + 0 * lanes,
            __riscv_vfmacc_vf_f64m1(__riscv_vfmul_vf_f64m1(c0_1, alpha, full), beta, old1_0, full), full);
        __riscv_vse64_v_f64m1(
            c + 1 * ldc + 1 * lanes,
            __riscv_vfmacc_vf_f64m1(__riscv_vfmul_vf_f64m1(c1_1, alpha, tail), beta, old1_1, tail), tail);
    }
}

static inline __attribute__((always_inline)) void
rvv_f64_outer_4031_edge_tile_1x3_tail(size_t m, size_t k, const double *restrict a, size_t lda,
                                      const double *restrict b, size_t rsb, size_t csb, double alpha,
                                      double beta, double *restrict c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e64m1();
    const size_t full = lanes;
    const size_t tail = ((size_t)(m - 0 * lanes));
    (void)m, (void)full, (void)lanes, (void)rsb;
    vfloat64m1_t c0_0 = __riscv_vfmv_v_f_f64m1(0, tail);
    vfloat64m1_t c0_1 = __riscv_vfmv_v_f_f64m1(0, tail);
    vfloat64m1_t c0_2 = __riscv_vfmv_v_f_f64m1(0, tail);
    vfloat64m1_t a0_0 = __riscv_vle64_v_f64m1(a + 0 * lda + 0 * lanes, tail);
    vfloat64m1_t a1_0;
    double b0 = b[0 * rsb + 0 * csb];
    double b1 = b[0 * rsb + 1 * csb];
    double b2;
    /* C's columns are asked for one by one, all along: a core has few misses under way at a time, and A and B
     * need them too */
    const size_t apart = (3 << 16) / (k / 2 + 1);
    size_t asked = 0;
    for (; k > 2; k -= 2) {
        const size_t column = (asked >> 16) * ldc;
        asked += apart;
        a1_0 = __riscv_vle64_v_f64m1(a + 1 * lda + 0 * lanes, tail);
        __builtin_prefetch(a + 7 * lda + 0 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b2 = b[0 * rsb + 2 * csb];
        if (rsb == 1) { /* each column is a stream of its own */
            __builtin_prefetch(b + 0 * rsb + 0 * csb + 40);
        }
        c0_0 = __riscv_vfmacc_vf_f64m1(c0_0, b0, a0_0, tail);
        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b0 = b[1 * rsb + 0 * csb];
        c0_1 = __riscv_vfmacc_vf_f64m1(c0_1, b1, a0_0, tail);
        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b1 = b[1 * rsb + 1 * csb];
        if (rsb == 1) { /* each column is a stream of its own */
            __builtin_prefetch(b + 0 * rsb + 2 * csb + 40);
        }
        c0_2 = __riscv_vfmacc_vf_f64m1(c0_2, b2, a0_0, tail);
        {
            const volatile char *at_ = (const char *)(c + column);
            (void)*at_;
        };
        if (1 * lanes > 8) { /* a column has another cache line */
            __builtin_prefetch(c + column + 8);
        }
        if (1 * lanes > 16) { /* a column has another cache line */
            __builtin_prefetch(c + column + 16);
        }
        if (1 * lanes > 24) { /* a column has another cache line */
            __builtin_prefetch(c + column + 24);
        }
        a0_0 = __riscv_vle64_v_f64m1(a + 2 * lda + 0 * lanes, tail);
        __builtin_prefetch(a + 8 * lda + 0 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b2 = b[1 * rsb + 2 * csb];
        c0_0 = __riscv_vfmacc_vf_f64m1(c0_0, b0, a1_0, tail);
        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b += 2 * rsb;
        b0 = b[0 * rsb + 0 * csb];
        if (rsb == 1) { /* each column is a stream of its own */
            __builtin_prefetch(b + 0 * rsb + 1 * csb + 40);
        }
        c0_1 = __riscv_vfmacc_vf_f64m1(c0_1, b1, a1_0, tail);
        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b1 = b[0 * rsb + 1 * csb];
        c0_2 = __riscv_vfmacc_vf_f64m1(c0_2, b2, a1_0, tail);
        a += 2 * lda;
    }
    b2 = b[0 * rsb + 2 * csb];
    c0_0 = __riscv_vfmacc_vf_f64m1(c0_0, b0, a0_0, tail);
    c0_1 = __riscv_vfmacc_vf_f64m1(c0_1, b1, a0_0, tail);
    c0_2 = __riscv_vfmacc_vf_f64m1(c0_2, b2, a0_0, tail);
    a += lda;
    b += rsb;
    --k;
    for (; k; --k) {
        const vfloat64m1_t a0 = __riscv_vle64_v_f64m1(a + 0 * lda + 0 * lanes, tail);
        const double b0 = b[0 * rsb + 0 * csb];
        c0_0 = __riscv_vfmacc_vf_f64m1(c0_0, b0, a0, tail);
        const double b1 = b[0 * rsb + 1 * csb];
        c0_1 = __riscv_vfmacc_vf_f64m1(c0_1, b1, a0, tail);
        const double b2 = b[0 * rsb + 2 * csb];
        c0_2 = __riscv_vfmacc_vf_f64m1(c0_2, b2, a0, tail);
        a += lda;
        b += rsb;
    }
    /* C = alpha * tile + beta * C; at beta = 0 C is not read */
    if (beta == 0) {
        __riscv_vse64_v_f64m1(c + 0 * ldc + 0 * lanes, __riscv_vfmul_vf_f64m1(c0_0, alpha, tail), tail);
        __riscv_vse64_v_f64m1(c + 1 * ldc + 0 * lanes, __riscv_vfmul_vf_f64m1(c0_1, alpha, tail), tail);
        __riscv_vse64_v_f64m1(c + 2 * ldc + 0 * lanes, __riscv_vfmul_vf_f64m1(c0_2, alpha, tail), tail);
    } else if (beta == 1) {
        vfloat64m1_t old0_0 = __riscv_vle64_v_f64m1(c + 0 * ldc + 0 * lanes, tail);
        vfloat64m1_t old1_0 = __riscv_vle64_v_f64m1(c + 1 * ldc + 0 * lanes, tail);
        vfloat64m1_t old2_0 = __riscv_vle64_v_f64m1(c + 2 * ldc + 0 * lanes, tail);
        __riscv_vse64_v_f64m1(c + 0 * ldc + 0 * lanes, __riscv_vfmacc_vf_f64m1(old0_0, alpha, c0_0, tail),
                              tail);
        __riscv_vse64_v_f64m1(c + 1 * ldc + 0 * lanes, __riscv_vfmacc_vf_f64m1(old1_0, alpha, c0_1, tail),
                              tail);
        __riscv_vse64_v_f64m1(c + 2 * ldc + 0 * lanes, __riscv_vfmacc_vf_f64m1(old2_0, alpha, c0_2, tail),
                              tail);

    } else {
        vfloat64m1_t old0_0 = __riscv_vle64_v_f64m1(c + 0 * ldc + 0 * lanes, tail);
        vfloat64m1_t old1_0 = __riscv_vle64_v_f64m1(c + 1 * ldc + 0 * lanes, tail);
        vfloat64m1_t old2_0 = __riscv_vle64_v_f64m1(c + 2 * ldc + 0 * lanes, tail);
        __riscv_vse64_v_f64m1(
            c + 0 * ldc + 0 * lanes,
            __riscv_vfmacc_vf_f64m1(__riscv_vfmul_vf_f64m1(c0_0, alpha, tail), beta, old0_0, tail), tail);
        __riscv_vse64_v_f64m1(
            c + 1 * ldc + 0 * lanes,
            __riscv_vfmacc_vf_f64m1(__riscv_vfmul_vf_f64m1(c0_1, alpha, tail), beta, old1_0, tail), tail);
        __riscv_vse64_v_f64m1(
            c + 2 * ldc + 0 * lanes,
            __riscv_vfmacc_vf_f64m1(__riscv_vfmul_vf_f64m1(c0_2, alpha, tail), beta, old2_0, tail), tail);
    }
}

static inline __attribute__((always_inline)) void
rvv_f64_outer_4031_edge_tile_2x3_tail(size_t m, size_t k, const double *restrict a, size_t lda,
                                      const double *restrict b, size_t rsb, size_t csb, double alpha,
                                      double beta, double *restrict c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e64m1();
    const size_t full = lanes;
    const size_t tail = ((size_t)(m - 1 * lanes));
    (void)m, (void)full, (void)lanes, (void)rsb;
    vfloat64m1_t c0_0 = __riscv_vfmv_v_f_f64m1(0, full);
    vfloat64m1_t c1_0 = __riscv_vfmv_v_f_f64m1(0, tail);
    vfloat64m1_t c0_1 = __riscv_vfmv_v_f_f64m1(0, full);
    vfloat64m1_t c1_1 = __riscv_vfmv_v_f_f64m1(0, tail);
    vfloat64m1_t c0_2 = __riscv_vfmv_v_f_f64m1(0, full);
    vfloat64m1_t c1_2 = __riscv_vfmv_v_f_f64m1(0, tail);
    vfloat64m1_t a0_0 = __riscv_vle64_v_f64m1(a + 0 * lda + 0 * lanes, full);
    vfloat64m1_t a0_1 = __riscv_vle64_v_f64m1(a + 0 * lda + 1 * lanes, tail);
    vfloat64m1_t a1_0;
    vfloat64m1_t a1_1;
    double b0 = b[0 * rsb + 0 * csb];
    double b1 = b[0 * rsb + 1 * csb];
    double b2;
    /* C's columns are asked for one by one, all along: a core has few misses under way at a time, and A and B
     * need them too */
    const size_t apart = (3 << 16) / (k / 2 + 1);
    size_t asked = 0;
    for (; k > 2; k -= 2) {
        const size_t column = (asked >> 16) * ldc;
        asked += apart;
        a1_0 = __riscv_vle64_v_f64m1(a + 1 * lda + 0 * lanes, full);
        __builtin_prefetch(a + 7 * lda + 0 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b2 = b[0 * rsb + 2 * csb];
        if (rsb == 1) { /* each column is a stream of its own */
            __builtin_prefetch(b + 0 * rsb + 0 * csb + 40);
        }
        c0_0 = __riscv_vfmacc_vf_f64m1(c0_0, b0, a0_0, full);
        c1_0 = __riscv_vfmacc_vf_f64m1(c1_0, b0, a0_1, tail);
        a1_1 = __riscv_vle64_v_f64m1(a + 1 * lda + 1 * lanes, tail);
        __builtin_prefetch(a + 7 * lda + 1 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b0 = b[1 * rsb + 0 * csb];
        c0_1 = __riscv_vfmacc_vf_f64m1(c0_1, b1, a0_0, full);
        c1_1 = __riscv_vfmacc_vf_f64m1(c1_1, b1, a0_1, tail);
        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b1 = b[1 * rsb + 1 * csb];
        if (rsb == 1) { /* each column is a stream of its own */
            __builtin_prefetch(b + 0 * rsb + 2 * csb + 40);
        }
        c0_2 = __riscv_vfmacc_vf_f64m1(c0_2, b2, a0_0, full);
        c1_2 = __riscv_vfmacc_vf_f64m1(c1_2, b2, a0_1, tail);
        {
            const volatile char *at_ = (const char *)(c + column);
            (void)*at_;
        };
        if (2 * lanes > 8) { /* a column has another cache line */
            __builtin_prefetch(c + column + 8);
        }
        if (2 * lanes > 16) { /* a column has another cache line */
            __builtin_prefetch(c + column + 16);
        }
        if (2 * lanes > 24) { /* a column has another cache line */
            __builtin_prefetch(c + column + 24);
        }
        a0_0 = __riscv_vle64_v_f64m1(a + 2 * lda + 0 * lanes, full);
        __builtin_prefetch(a + 8 * lda + 0 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b2 = b[1 * rsb + 2 * csb];
        c0_0 = __riscv_vfmacc_vf_f64m1(c0_0, b0, a1_0, full);
        c1_0 = __riscv_vfmacc_vf_f64m1(c1_0, b0, a1_1, tail);
        a0_1 = __riscv_vle64_v_f64m1(a + 2 * lda + 1 * lanes, tail);
        __builtin_prefetch(a + 8 * lda + 1 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b += 2 * rsb;
        b0 = b[0 * rsb + 0 * csb];
        if (rsb == 1) { /* each column is a stream of its own */
            __builtin_prefetch(b + 0 * rsb + 1 * csb + 40);
        }
        c0_1 = __riscv_vfmacc_vf_f64m1(c0_1, b1, a1_0, full);
        c1_1 = __riscv_vfmacc_vf_f64m1(c1_1, b1, a1_1, tail);
        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b1 = b[0 * rsb + 1 * csb];
        c0_2 = __riscv_vfmacc_vf_f64m1(c0_2, b2, a1_0, full);
        c1_2 = __riscv_vfmacc_vf_f64m1(c1_2, b2, a1_1, tail);
        a += 2 * lda;
    }
    b2 = b[0 * rsb + 2 * csb];
    c0_0 = __riscv_vfmacc_vf_f64m1(c0_0, b0, a0_0, full);
    c1_0 = __riscv_vfmacc_vf_f64m1(c1_0, b0, a0_1, tail);
    c0_1 = __riscv_vfmacc_vf_f64m1(c0_1, b1, a0_0, full);
    c1_1 = __riscv_vfmacc_vf_f64m1(c1_1, b1, a0_1, tail);
    c0_2 = __riscv_vfmacc_vf_f64m1(c0_2, b2, a0_0, full);
    c1_2 = __riscv_vfmacc_vf_f64m1(c1_2, b2, a0_1, tail);
    a += lda;
    b += rsb;
    --k;
    for (; k; --k) {
        const vfloat64m1_t a0 = __riscv_vle64_v_f64m1(a + 0 * lda + 0 * lanes, full);
        const vfloat64m1_t a1 = __riscv_vle64_v_f64m1(a + 0 * lda + 1 * lanes, tail);
        const double b0 = b[0 * rsb + 0 * csb];
        c0_0 = __riscv_vfmacc_vf_f64m1(c0_0, b0, a0, full);
        c1_0 = __riscv_vfmacc_vf_f64m1(c1_0, b0, a1, tail);
        const double b1 = b[0 * rsb + 1 * csb];
        c0_1 = __riscv_vfmacc_vf_f64m1(c0_1, b1, a0, full);
        c1_1 = __riscv_vfmacc_vf_f64m1(c1_1, b1, a1, tail);
        const double b2 = b[0 * rsb + 2 * csb];
        c0_2 = __riscv_vfmacc_vf_f64m1(c0_2, b2, a0, full);
        c1_2 = __riscv_vfmacc_vf_f64m1(c1_2, b2, a1, tail);
        a += lda;
        b += rsb;
    }
    /* C = alpha * tile + beta * C; at beta = 0 C is not read */
    if (beta == 0) {
        __riscv_vse64_v_f64m1(c + 0 * ldc + 0 * lanes, __riscv_vfmul_vf_f64m1(c0_0, alpha, full), full);
        __riscv_vse64_v_f64m1(c + 0 * ldc + 1 * lanes, __riscv_vfmul_vf_f64m1(c1_0, alpha, tail), tail);
        __riscv_vse64_v_f64m1(c + 1 * ldc + 0 * lanes, __riscv_vfmul_vf_f64m1(c0_1, alpha, full), full);
        __riscv_vse64_v_f64m1(c + 1 * ldc + 1 * lanes, __riscv_vfmul_vf_f64m1(c1_1, alpha, tail), tail);
        __riscv_vse64_v_f64m1(c + 2 * ldc + 0 * lanes, __riscv_vfmul_vf_f64m1(c0_2, alpha, full), full);
        __riscv_vse64_v_f64m1(c + 2 * ldc + 1 * lanes, __riscv_vfmul_vf_f64m1(c1_2, alpha, tail), tail);
    } else if (beta == 1) {
        vfloat64m1_t old0_0 = __riscv_vle64_v_f64m1(c + 0 * ldc + 0 * lanes, full);
        vfloat64m1_t old1_0 = __riscv_vle64_v_f64m1(c + 1 * ldc + 0 * lanes, full);
        vfloat64m1_t old2_0 = __riscv_vle64_v_f64m1(c + 2 * ldc + 0 * lanes, full);
        vfloat64m1_t old0_1 = __riscv_vle64_v_f64m1(c + 0 * ldc + 1 * lanes, tail);
        vfloat64m1_t old1_1 = __riscv_vle64_v_f64m1(c + 1 * ldc + 1 * lanes, tail);
        vfloat64m1_t old2_1 = __riscv_vle64_v_f64m1(c + 2 * ldc + 1 * lanes, tail);
        __riscv_vse64_v_f64m1(c + 0 * ldc + 0 * lanes, __riscv_vfmacc_vf_f64m1(old0_0, alpha, c0_0, full),
                              full);
        __riscv_vse64_v_f64m1(c + 0 * ldc + 1 * lanes, __riscv_vfmacc_vf_f64m1(old0_1, alpha, c1_0, tail),
                              tail);
        __riscv_vse64_v_f64m1(c + 1 * ldc + 0 * lanes, __riscv_vfmacc_vf_f64m1(old1_0, alpha, c0_1, full),
                              full);
        __riscv_vse64_v_f64m1(c + 1 * ldc + 1 * lanes, __riscv_vfmacc_vf_f64m1(old1_1, alpha, c1_1, tail),
                              tail);
        __riscv_vse64_v_f64m1(c + 2 * ldc + 0 * lanes, __riscv_vfmacc_vf_f64m1(old2_0, alpha, c0_2, full),
                              full);
        __riscv_vse64_v_f64m1(c + 2 * ldc + 1 * lanes, __riscv_vfmacc_vf_f64m1(old2_1, alpha, c1_2, tail),
                              tail);

    } else {
        vfloat64m1_t old0_0 = __riscv_vle64_v_f64m1(c + 0 * ldc + 0 * lanes, full);
        vfloat64m1_t old1_0 = __riscv_vle64_v_f64m1(c + 1 * ldc + 0 * lanes, full);
        vfloat64m1_t old2_0 = __riscv_vle64_v_f64m1(c + 2 * ldc + 0 * lanes, full);
        vfloat64m1_t old0_1 = __riscv_vle64_v_f64m1(c + 0 * ldc + 1 * lanes, tail);
        vfloat64m1_t old1_1 = __riscv_vle64_v_f64m1(c + 1 * ldc + 1 * lanes, tail);
        vfloat64m1_t old2_1 = __riscv_vle64_v_f64m1(c + 2 * ldc + 1 * lanes, tail);
        __riscv_vse64_v_f64m1(
            c + 0 * ldc + 0 * lanes,
            __riscv_vfmacc_vf_f64m1(__riscv_vfmul_vf_f64m1(c0_0, alpha, full), beta, old0_0, full), full);
        __riscv_vse64_v_f64m1(
            c + 0 * ldc + 1 * lanes,
            __riscv_vfmacc_vf_f64m1(__riscv_vfmul_vf_f64m1(c1_0, alpha, tail), beta, old0_1, tail), tail);
        __riscv_vse64_v_f64m1(
            c + 1 * ldc + 0 * lanes,
            __riscv_vfmacc_vf_f64m1(__riscv_vfmul_vf_f64m1(c0_1, alpha, full), beta, old1_0, full), full);
        __riscv_vse64_v_f64m1(
            c + 1 * ldc + 1 * lanes,
            __riscv_vfmacc_vf_f64m1(__riscv_vfmul_vf_f64m1(c1_1, alpha, tail), beta, old1_1, tail), tail);
        __riscv_vse64_v_f64m1(
            c + 2 * ldc + 0 * lanes,
            __riscv_vfmacc_vf_f64m1(__riscv_vfmul_vf_f64m1(c0_2, alpha, full), beta, old2_0, full), full);
        __riscv_vse64_v_f64m1(
            c + 2 * ldc + 1 * lanes,
            __riscv_vfmacc_vf_f64m1(__riscv_vfmul_vf_f64m1(c1_2, alpha, tail), beta, old2_1, tail), tail);
    }
}

static inline __attribute__((always_inline)) void
rvv_f64_outer_4031_edge_tile_2x3(size_t m, size_t k, const double *restrict a, size_t lda,
                                 const double *restrict b, size_t rsb, size_t csb, double alpha, double beta,
                                 double *restrict c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e64m1();
    const size_t full = lanes;
    (void)m, (void)full, (void)lanes, (void)rsb;
    vfloat64m1_t c0_0 = __riscv_vfmv_v_f_f64m1(0, full);
    vfloat64m1_t c1_0 = __riscv_vfmv_v_f_f64m1(0, full);
    vfloat64m1_t c0_1 = __riscv_vfmv_v_f_f64m1(0, full);
    vfloat64m1_t c1_1 = __riscv_vfmv_v_f_f64m1(0, full);
    vfloat64m1_t c0_2 = __riscv_vfmv_v_f_f64m1(0, full);
    vfloat64m1_t c1_2 = __riscv_vfmv_v_f_f64m1(0, full);
    vfloat64m1_t a0_0 = __riscv_vle64_v_f64m1(a + 0 * lda + 0 * lanes, full);
    vfloat64m1_t a0_1 = __riscv_vle64_v_f64m1(a + 0 * lda + 1 * lanes, full);
    vfloat64m1_t a1_0;
    vfloat64m1_t a1_1;
    double b0 = b[0 * rsb + 0 * csb];
    double b1 = b[0 * rsb + 1 * csb];
    double b2;
    /* C's columns are asked for one by one, all along: a core has few misses under way at a time, and A and B
     * need them too */
    const size_t apart = (3 << 16) / (k / 2 + 1);
    size_t asked = 0;
    for (; k > 2; k -= 2) {
        const size_t column = (asked >> 16) * ldc;
        asked += apart;
        a1_0 = __riscv_vle64_v_f64m1(a + 1 * lda + 0 * lanes, full);
        __builtin_prefetch(a + 7 * lda + 0 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b2 = b[0 * rsb + 2 * csb];
        if (rsb == 1) { /* each column is a stream of its own */
            __builtin_prefetch(b + 0 * rsb + 0 * csb + 40);
        }
        c0_0 = __riscv_vfmacc_vf_f64m1(c0_0, b0, a0_0, full);
        c1_0 = __riscv_vfmacc_vf_f64m1(c1_0, b0, a0_1, full);
        a1_1 = __riscv_vle64_v_f64m1(a + 1 * lda + 1 * lanes, full);
        __builtin_prefetch(a + 7 * lda + 1 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b0 = b[1 * rsb + 0 * csb];
        c0_1 = __riscv_vfmacc_vf_f64m1(c0_1, b1, a0_0, full);
        c1_1 = __riscv_vfmacc_vf_f64m1(c1_1, b1, a0_1, full);
        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b1 = b[1 * rsb + 1 * csb];
        if (rsb == 1) { /* each column is a stream of its own */
            __builtin_prefetch(b + 0 * rsb + 2 * csb + 40);
        }
        c0_2 = __riscv_vfmacc_vf_f64m1(c0_2, b2, a0_0, full);
        c1_2 = __riscv_vfmacc_vf_f64m1(c1_2, b2, a0_1, full);
        {
            const volatile char *at_ = (const char *)(c + column);
            (void)*at_;
        };
        if (2 * lanes > 8) { /* a column has another cache line */
            __builtin_prefetch(c + column + 8);
        }
        if (2 * lanes > 16) { /* a column has another cache line */
            __builtin_prefetch(c + column + 16);
        }
        if (2 * lanes > 24) { /* a column has another cache line */
            __builtin_prefetch(c + column + 24);
        }
        a0_0 = __riscv_vle64_v_f64m1(a + 2 * lda + 0 * lanes, full);
        __builtin_prefetch(a + 8 * lda + 0 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b2 = b[1 * rsb + 2 * csb];
        c0_0 = __riscv_vfmacc_vf_f64m1(c0_0, b0, a1_0, full);
        c1_0 = __riscv_vfmacc_vf_f64m1(c1_0, b0, a1_1, full);
        a0_1 = __riscv_vle64_v_f64m1(a + 2 * lda + 1 * lanes, full);
        __builtin_prefetch(a + 8 * lda + 1 * lanes);

        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b += 2 * rsb;
        b0 = b[0 * rsb + 0 * csb];
        if (rsb == 1) { /* each column is a stream of its own */
            __builtin_prefetch(b + 0 * rsb + 1 * csb + 40);
        }
        c0_1 = __riscv_vfmacc_vf_f64m1(c0_1, b1, a1_0, full);
        c1_1 = __riscv_vfmacc_vf_f64m1(c1_1, b1, a1_1, full);
        ((void)(b), __atomic_signal_fence(__ATOMIC_SEQ_CST));
        b1 = b[0 * rsb + 1 * csb];
        c0_2 = __riscv_vfmacc_vf_f64m1(c0_2, b2, a1_0, full);
        c1_2 = __riscv_vfmacc_vf_f64m1(c1_2, b2, a1_1, full);
        a += 2 * lda;
    }
    b2 = b[0 * rsb + 2 * csb];
    c0_0 = __riscv_vfmacc_vf_f64m1(c0_0, b0, a0_0, full);
    c1_0 = __riscv_vfmacc_vf_f64m1(c1_0, b0, a0_1, full);
    c0_1 = __riscv_vfmacc_vf_f64m1(c0_1, b1, a0_0, full);
    c1_1 = __riscv_vfmacc_vf_f64m1(c1_1, b1, a0_1, full);
    c0_2 = __riscv_vfmacc_vf_f64m1(c0_2, b2, a0_0, full);
    c1_2 = __riscv_vfmacc_vf_f64m1(c1_2, b2, a0_1, full);
    a += lda;
    b += rsb;
    --k;
    for (; k; --k) {
        const vfloat64m1_t a0 = __riscv_vle64_v_f64m1(a + 0 * lda + 0 * lanes, full);
        const vfloat64m1_t a1 = __riscv_vle64_v_f64m1(a + 0 * lda + 1 * lanes, full);
        const double b0 = b[0 * rsb + 0 * csb];
        c0_0 = __riscv_vfmacc_vf_f64m1(c0_0, b0, a0, full);
        c1_0 = __riscv_vfmacc_vf_f64m1(c1_0, b0, a1, full);
        const double b1 = b[0 * rsb + 1 * csb];
        c0_1 = __riscv_vfmacc_vf_f64m1(c0_1, b1, a0, full);
        c1_1 = __riscv_vfmacc_vf_f64m1(c1_1, b1, a1, full);
        const double b2 = b[0 * rsb + 2 * csb];
        c0_2 = __riscv_vfmacc_vf_f64m1(c0_2, b2, a0, full);
        c1_2 = __riscv_vfmacc_vf_f64m1(c1_2, b2, a1, full);
        a += lda;
        b += rsb;
    }
    /* C = alpha * tile + beta * C; at beta = 0 C is not read */
    if (beta == 0) {
        __riscv_vse64_v_f64m1(c + 0 * ldc + 0 * lanes, __riscv_vfmul_vf_f64m1(c0_0, alpha, full), full);
        __riscv_vse64_v_f64m1(c + 0 * ldc + 1 * lanes, __riscv_vfmul_vf_f64m1(c1_0, alpha, full), full);
        __riscv_vse64_v_f64m1(c + 1 * ldc + 0 * lanes, __riscv_vfmul_vf_f64m1(c0_1, alpha, full), full);
        __riscv_vse64_v_f64m1(c + 1 * ldc + 1 * lanes, __riscv_vfmul_vf_f64m1(c1_1, alpha, full), full);
        __riscv_vse64_v_f64m1(c + 2 * ldc + 0 * lanes, __riscv_vfmul_vf_f64m1(c0_2, alpha, full), full);
        __riscv_vse64_v_f64m1(c + 2 * ldc + 1 * lanes, __riscv_vfmul_vf_f64m1(c1_2, alpha, full), full);
    } else if (beta == 1) {
        vfloat64m1_t old0_0 = __riscv_vle64_v_f64m1(c + 0 * ldc + 0 * lanes, full);
        vfloat64m1_t old1_0 = __riscv_vle64_v_f64m1(c + 1 * ldc + 0 * lanes, full);
        vfloat64m1_t old2_0 = __riscv_vle64_v_f64m1(c + 2 * ldc + 0 * lanes, full);
        vfloat64m1_t old0_1 = __riscv_vle64_v_f64m1(c + 0 * ldc + 1 * lanes, full);
        vfloat64m1_t old1_1 = __riscv_vle64_v_f64m1(c + 1 * ldc + 1 * lanes, full);
        vfloat64m1_t old2_1 = __riscv_vle64_v_f64m1(c + 2 * ldc + 1 * lanes, full);
        __riscv_vse64_v_f64m1(c + 0 * ldc + 0 * lanes, __riscv_vfmacc_vf_f64m1(old0_0, alpha, c0_0, full),
                              full);
        __riscv_vse64_v_f64m1(c + 0 * ldc + 1 * lanes, __riscv_vfmacc_vf_f64m1(old0_1, alpha, c1_0, full),
                              full);
        __riscv_vse64_v_f64m1(c + 1 * ldc + 0 * lanes, __riscv_vfmacc_vf_f64m1(old1_0, alpha, c0_1, full),
                              full);
        __riscv_vse64_v_f64m1(c + 1 * ldc + 1 * lanes, __riscv_vfmacc_vf_f64m1(old1_1, alpha, c1_1, full),
                              full);
        __riscv_vse64_v_f64m1(c + 2 * ldc + 0 * lanes, __riscv_vfmacc_vf_f64m1(old2_0, alpha, c0_2, full),
                              full);
        __riscv_vse64_v_f64m1(c + 2 * ldc + 1 * lanes, __riscv_vfmacc_vf_f64m1(old2_1, alpha, c1_2, full),
                              full);

    } else {
        vfloat64m1_t old0_0 = __riscv_vle64_v_f64m1(c + 0 * ldc + 0 * lanes, full);
        vfloat64m1_t old1_0 = __riscv_vle64_v_f64m1(c + 1 * ldc + 0 * lanes, full);
        vfloat64m1_t old2_0 = __riscv_vle64_v_f64m1(c + 2 * ldc + 0 * lanes, full);
        vfloat64m1_t old0_1 = __riscv_vle64_v_f64m1(c + 0 * ldc + 1 * lanes, full);
        vfloat64m1_t old1_1 = __riscv_vle64_v_f64m1(c + 1 * ldc + 1 * lanes, full);
        vfloat64m1_t old2_1 = __riscv_vle64_v_f64m1(c + 2 * ldc + 1 * lanes, full);
        __riscv_vse64_v_f64m1(
            c + 0 * ldc + 0 * lanes,
            __riscv_vfmacc_vf_f64m1(__riscv_vfmul_vf_f64m1(c0_0, alpha, full), beta, old0_0, full), full);
        __riscv_vse64_v_f64m1(
            c + 0 * ldc + 1 * lanes,
            __riscv_vfmacc_vf_f64m1(__riscv_vfmul_vf_f64m1(c1_0, alpha, full), beta, old0_1, full), full);
        __riscv_vse64_v_f64m1(
            c + 1 * ldc + 0 * lanes,
            __riscv_vfmacc_vf_f64m1(__riscv_vfmul_vf_f64m1(c0_1, alpha, full), beta, old1_0, full), full);
        __riscv_vse64_v_f64m1(
            c + 1 * ldc + 1 * lanes,
            __riscv_vfmacc_vf_f64m1(__riscv_vfmul_vf_f64m1(c1_1, alpha, full), beta, old1_1, full), full);
        __riscv_vse64_v_f64m1(
            c + 2 * ldc + 0 * lanes,
            __riscv_vfmacc_vf_f64m1(__riscv_vfmul_vf_f64m1(c0_2, alpha, full), beta, old2_0, full), full);
        __riscv_vse64_v_f64m1(
            c + 2 * ldc + 1 * lanes,
            __riscv_vfmacc_vf_f64m1(__riscv_vfmul_vf_f64m1(c1_2, alpha, full), beta, old2_1, full), full);
    }
}

#define rvv_f64_outer_4031_edge_ARGS                                                                         \
    size_t m, size_t k, const double *a, size_t lda, const double *b, size_t sb, double alpha, double beta,  \
        double *c, size_t ldc

static void rvv_f64_outer_4031_edge_packed_1x1(rvv_f64_outer_4031_edge_ARGS) {
    (void)sb, (void)lda;
    rvv_f64_outer_4031_edge_tile_1x1_tail(m, k, a, 1 * (__riscv_vsetvlmax_e64m1()), b, 1, 1, alpha, beta, c,
                                          ldc);
}
static void rvv_f64_outer_4031_edge_packed_2x1(rvv_f64_outer_4031_edge_ARGS) {
    (void)sb, (void)lda;
    rvv_f64_outer_4031_edge_tile_2x1_tail(m, k, a, 2 * (__riscv_vsetvlmax_e64m1()), b, 1, 1, alpha, beta, c,
                                          ldc);
}
static void rvv_f64_outer_4031_edge_packed_1x2(rvv_f64_outer_4031_edge_ARGS) {
    (void)sb, (void)lda;
    rvv_f64_outer_4031_edge_tile_1x2_tail(m, k, a, 1 * (__riscv_vsetvlmax_e64m1()), b, 2, 1, alpha, beta, c,
                                          ldc);
}
static void rvv_f64_outer_4031_edge_packed_2x2(rvv_f64_outer_4031_edge_ARGS) {
    (void)sb, (void)lda;
    rvv_f64_outer_4031_edge_tile_2x2_tail(m, k, a, 2 * (__riscv_vsetvlmax_e64m1()), b, 2, 1, alpha, beta, c,
                                          ldc);
}
static void rvv_f64_outer_4031_edge_packed_1x3(rvv_f64_outer_4031_edge_ARGS) {
    (void)sb, (void)lda;
    rvv_f64_outer_4031_edge_tile_1x3_tail(m, k, a, 1 * (__riscv_vsetvlmax_e64m1()), b, 3, 1, alpha, beta, c,
                                          ldc);
}
static void rvv_f64_outer_4031_edge_packed_2x3(rvv_f64_outer_4031_edge_ARGS) {
    (void)sb, (void)lda;
    if (m == 2 * (__riscv_vsetvlmax_e64m1())) {
        rvv_f64_outer_4031_edge_tile_2x3(m, k, a, 2 * (__riscv_vsetvlmax_e64m1()), b, 3, 1, alpha, beta, c,
                                         ldc);
        return;
    }
    rvv_f64_outer_4031_edge_tile_2x3_tail(m, k, a, 2 * (__riscv_vsetvlmax_e64m1()), b, 3, 1, alpha, beta, c,
                                          ldc);
}

static void (*const rvv_f64_outer_4031_edge_packed[3][2])(rvv_f64_outer_4031_edge_ARGS) = {
    {rvv_f64_outer_4031_edge_packed_1x1, rvv_f64_outer_4031_edge_packed_2x1},
    {rvv_f64_outer_4031_edge_packed_1x2, rvv_f64_outer_4031_edge_packed_2x2},
    {rvv_f64_outer_4031_edge_packed_1x3, rvv_f64_outer_4031_edge_packed_2x3},
};

/* 1 row of C, n columns: vectors run along n, so that few rows take few instructions. B's n is contiguous,
 * its steps of k `sb` apart. */
static void rvv_f64_outer_4031_edge_few_1(size_t n, size_t k, const double *a, size_t lda, const double *b,
                                          size_t sb, double alpha, double beta, double *c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e64m1();
    const size_t full = lanes;
    const size_t most = lanes < 64 ? lanes : 64;
    double row[64];
    (void)full;
    for (size_t j = 0; j < n; j += most) {
        const size_t width = n - j < most ? n - j : most;
        const size_t part = ((size_t)(width));
        vfloat64m1_t even0 = __riscv_vfmv_v_f_f64m1(0, part), odd0 = __riscv_vfmv_v_f_f64m1(0, part);
        const double *x = a, *y = b + j;
        size_t p = k;
        for (; p >= 8; p -= 8) {
            const vfloat64m1_t b0 = __riscv_vle64_v_f64m1(y, part);
            __builtin_prefetch(y + 64);
            y += sb;
            even0 = __riscv_vfmacc_vf_f64m1(even0, x[0], b0, part);
            x += lda;
            const vfloat64m1_t b1 = __riscv_vle64_v_f64m1(y, part);
            y += sb;
            odd0 = __riscv_vfmacc_vf_f64m1(odd0, x[0], b1, part);
            x += lda;
            const vfloat64m1_t b2 = __riscv_vle64_v_f64m1(y, part);
            y += sb;
            even0 = __riscv_vfmacc_vf_f64m1(even0, x[0], b2, part);
            x += lda;
            const vfloat64m1_t b3 = __riscv_vle64_v_f64m1(y, part);
            __builtin_prefetch(y + 64);
            y += sb;
            odd0 = __riscv_vfmacc_vf_f64m1(odd0, x[0], b3, part);
            x += lda;
            const vfloat64m1_t b4 = __riscv_vle64_v_f64m1(y, part);
            y += sb;
            even0 = __riscv_vfmacc_vf_f64m1(even0, x[0], b4, part);
            x += lda;
            const vfloat64m1_t b5 = __riscv_vle64_v_f64m1(y, part);
            y += sb;
            odd0 = __riscv_vfmacc_vf_f64m1(odd0, x[0], b5, part);
            x += lda;
            const vfloat64m1_t b6 = __riscv_vle64_v_f64m1(y, part);
            __builtin_prefetch(y + 64);
            y += sb;
            even0 = __riscv_vfmacc_vf_f64m1(even0, x[0], b6, part);
            x += lda;
            const vfloat64m1_t b7 = __riscv_vle64_v_f64m1(y, part);
            y += sb;
            odd0 = __riscv_vfmacc_vf_f64m1(odd0, x[0], b7, part);
            x += lda;
        }
        for (; p >= 1; p -= 1) {
            const vfloat64m1_t b0 = __riscv_vle64_v_f64m1(y, part);
            y += sb;
            even0 = __riscv_vfmacc_vf_f64m1(even0, x[0], b0, part);
            x += lda;
        }
        __riscv_vse64_v_f64m1(row, __riscv_vfadd_vv_f64m1(even0, odd0, part), part);
        for (size_t q = 0; q < width; ++q)
            c[0 + (j + q) * ldc] = beta == 0 ? alpha * row[q] : alpha * row[q] + beta * c[0 + (j + q) * ldc];
    }
}

/* 2 rows of C, n columns: vectors run along n, so that few rows take few instructions. B's n is contiguous,
 * its steps of k `sb` apart. */
static void rvv_f64_outer_4031_edge_few_2(size_t n, size_t k, const double *a, size_t lda, const double *b,
                                          size_t sb, double alpha, double beta, double *c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e64m1();
    const size_t full = lanes;
    const size_t most = lanes < 64 ? lanes : 64;
    double row[64];
    (void)full;
    for (size_t j = 0; j < n; j += most) {
        const size_t width = n - j < most ? n - j : most;
        const size_t part = ((size_t)(width));
        vfloat64m1_t even0 = __riscv_vfmv_v_f_f64m1(0, part), odd0 = __riscv_vfmv_v_f_f64m1(0, part);
        vfloat64m1_t even1 = __riscv_vfmv_v_f_f64m1(0, part), odd1 = __riscv_vfmv_v_f_f64m1(0, part);
        const double *x = a, *y = b + j;
        size_t p = k;
        for (; p >= 8; p -= 8) {
            const vfloat64m1_t b0 = __riscv_vle64_v_f64m1(y, part);
            __builtin_prefetch(y + 64);
            y += sb;
            even0 = __riscv_vfmacc_vf_f64m1(even0, x[0], b0, part);
            even1 = __riscv_vfmacc_vf_f64m1(even1, x[1], b0, part);
            x += lda;
            const vfloat64m1_t b1 = __riscv_vle64_v_f64m1(y, part);
            y += sb;
            odd0 = __riscv_vfmacc_vf_f64m1(odd0, x[0], b1, part);
            odd1 = __riscv_vfmacc_vf_f64m1(odd1, x[1], b1, part);
            x += lda;
            const vfloat64m1_t b2 = __riscv_vle64_v_f64m1(y, part);
            y += sb;
            even0 = __riscv_vfmacc_vf_f64m1(even0, x[0], b2, part);
            even1 = __riscv_vfmacc_vf_f64m1(even1, x[1], b2, part);
            x += lda;
            const vfloat64m1_t b3 = __riscv_vle64_v_f64m1(y, part);
            __builtin_prefetch(y + 64);
            y += sb;
            odd0 = __riscv_vfmacc_vf_f64m1(odd0, x[0], b3, part);
            odd1 = __riscv_vfmacc_vf_f64m1(odd1, x[1], b3, part);
            x += lda;
            const vfloat64m1_t b4 = __riscv_vle64_v_f64m1(y, part);
            y += sb;
            even0 = __riscv_vfmacc_vf_f64m1(even0, x[0], b4, part);
            even1 = __riscv_vfmacc_vf_f64m1(even1, x[1], b4, part);
            x += lda;
            const vfloat64m1_t b5 = __riscv_vle64_v_f64m1(y, part);
            y += sb;
            odd0 = __riscv_vfmacc_vf_f64m1(odd0, x[0], b5, part);
            odd1 = __riscv_vfmacc_vf_f64m1(odd1, x[1], b5, part);
            x += lda;
            const vfloat64m1_t b6 = __riscv_vle64_v_f64m1(y, part);
            __builtin_prefetch(y + 64);
            y += sb;
            even0 = __riscv_vfmacc_vf_f64m1(even0, x[0], b6, part);
            even1 = __riscv_vfmacc_vf_f64m1(even1, x[1], b6, part);
            x += lda;
            const vfloat64m1_t b7 = __riscv_vle64_v_f64m1(y, part);
            y += sb;
            odd0 = __riscv_vfmacc_vf_f64m1(odd0, x[0], b7, part);
            odd1 = __riscv_vfmacc_vf_f64m1(odd1, x[1], b7, part);
            x += lda;
        }
        for (; p >= 1; p -= 1) {
            const vfloat64m1_t b0 = __riscv_vle64_v_f64m1(y, part);
            y += sb;
            even0 = __riscv_vfmacc_vf_f64m1(even0, x[0], b0, part);
            even1 = __riscv_vfmacc_vf_f64m1(even1, x[1], b0, part);
            x += lda;
        }
        __riscv_vse64_v_f64m1(row, __riscv_vfadd_vv_f64m1(even0, odd0, part), part);
        for (size_t q = 0; q < width; ++q)
            c[0 + (j + q) * ldc] = beta == 0 ? alpha * row[q] : alpha * row[q] + beta * c[0 + (j + q) * ldc];
        __riscv_vse64_v_f64m1(row, __riscv_vfadd_vv_f64m1(even1, odd1, part), part);
        for (size_t q = 0; q < width; ++q)
            c[1 + (j + q) * ldc] = beta == 0 ? alpha * row[q] : alpha * row[q] + beta * c[1 + (j + q) * ldc];
    }
}

/* 3 rows of C, n columns: vectors run along n, so that few rows take few instructions. B's n is contiguous,
 * its steps of k `sb` apart. */
static void rvv_f64_outer_4031_edge_few_3(size_t n, size_t k, const double *a, size_t lda, const double *b,
                                          size_t sb, double alpha, double beta, double *c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e64m1();
    const size_t full = lanes;
    const size_t most = lanes < 64 ? lanes : 64;
    double row[64];
    (void)full;
    for (size_t j = 0; j < n; j += most) {
        const size_t width = n - j < most ? n - j : most;
        const size_t part = ((size_t)(width));
        vfloat64m1_t even0 = __riscv_vfmv_v_f_f64m1(0, part), odd0 = __riscv_vfmv_v_f_f64m1(0, part);
        vfloat64m1_t even1 = __riscv_vfmv_v_f_f64m1(0, part), odd1 = __riscv_vfmv_v_f_f64m1(0, part);
        vfloat64m1_t even2 = __riscv_vfmv_v_f_f64m1(0, part), odd2 = __riscv_vfmv_v_f_f64m1(0, part);
        const double *x = a, *y = b + j;
        size_t p = k;
        for (; p >= 8; p -= 8) {
            const vfloat64m1_t b0 = __riscv_vle64_v_f64m1(y, part);
            __builtin_prefetch(y + 64);
            y += sb;
            even0 = __riscv_vfmacc_vf_f64m1(even0, x[0], b0, part);
            even1 = __riscv_vfmacc_vf_f64m1(even1, x[1], b0, part);
            even2 = __riscv_vfmacc_vf_f64m1(even2, x[2], b0, part);
            x += lda;
            const vfloat64m1_t b1 = __riscv_vle64_v_f64m1(y, part);
            y += sb;
            odd0 = __riscv_vfmacc_vf_f64m1(odd0, x[0], b1, part);
            odd1 = __riscv_vfmacc_vf_f64m1(odd1, x[1], b1, part);
            odd2 = __riscv_vfmacc_vf_f64m1(odd2, x[2], b1, part);
            x += lda;
            const vfloat64m1_t b2 = __riscv_vle64_v_f64m1(y, part);
            y += sb;
            even0 = __riscv_vfmacc_vf_f64m1(even0, x[0], b2, part);
            even1 = __riscv_vfmacc_vf_f64m1(even1, x[1], b2, part);
            even2 = __riscv_vfmacc_vf_f64m1(even2, x[2], b2, part);
            x += lda;
            const vfloat64m1_t b3 = __riscv_vle64_v_f64m1(y, part);
            __builtin_prefetch(y + 64);
            y += sb;
            odd0 = __riscv_vfmacc_vf_f64m1(odd0, x[0], b3, part);
            odd1 = __riscv_vfmacc_vf_f64m1(odd1, x[1], b3, part);
            odd2 = __riscv_vfmacc_vf_f64m1(odd2, x[2], b3, part);
            x += lda;
            const vfloat64m1_t b4 = __riscv_vle64_v_f64m1(y, part);
            y += sb;
            even0 = __riscv_vfmacc_vf_f64m1(even0, x[0], b4, part);
            even1 = __riscv_vfmacc_vf_f64m1(even1, x[1], b4, part);
            even2 = __riscv_vfmacc_vf_f64m1(even2, x[2], b4, part);
            x += lda;
            const vfloat64m1_t b5 = __riscv_vle64_v_f64m1(y, part);
            y += sb;
            odd0 = __riscv_vfmacc_vf_f64m1(odd0, x[0], b5, part);
            odd1 = __riscv_vfmacc_vf_f64m1(odd1, x[1], b5, part);
            odd2 = __riscv_vfmacc_vf_f64m1(odd2, x[2], b5, part);
            x += lda;
            const vfloat64m1_t b6 = __riscv_vle64_v_f64m1(y, part);
            __builtin_prefetch(y + 64);
            y += sb;
            even0 = __riscv_vfmacc_vf_f64m1(even0, x[0], b6, part);
            even1 = __riscv_vfmacc_vf_f64m1(even1, x[1], b6, part);
            even2 = __riscv_vfmacc_vf_f64m1(even2, x[2], b6, part);
            x += lda;
            const vfloat64m1_t b7 = __riscv_vle64_v_f64m1(y, part);
            y += sb;
            odd0 = __riscv_vfmacc_vf_f64m1(odd0, x[0], b7, part);
            odd1 = __riscv_vfmacc_vf_f64m1(odd1, x[1], b7, part);
            odd2 = __riscv_vfmacc_vf_f64m1(odd2, x[2], b7, part);
            x += lda;
        }
        for (; p >= 1; p -= 1) {
            const vfloat64m1_t b0 = __riscv_vle64_v_f64m1(y, part);
            y += sb;
            even0 = __riscv_vfmacc_vf_f64m1(even0, x[0], b0, part);
            even1 = __riscv_vfmacc_vf_f64m1(even1, x[1], b0, part);
            even2 = __riscv_vfmacc_vf_f64m1(even2, x[2], b0, part);
            x += lda;
        }
        __riscv_vse64_v_f64m1(row, __riscv_vfadd_vv_f64m1(even0, odd0, part), part);
        for (size_t q = 0; q < width; ++q)
            c[0 + (j + q) * ldc] = beta == 0 ? alpha * row[q] : alpha * row[q] + beta * c[0 + (j + q) * ldc];
        __riscv_vse64_v_f64m1(row, __riscv_vfadd_vv_f64m1(even1, odd1, part), part);
        for (size_t q = 0; q < width; ++q)
            c[1 + (j + q) * ldc] = beta == 0 ? alpha * row[q] : alpha * row[q] + beta * c[1 + (j + q) * ldc];
        __riscv_vse64_v_f64m1(row, __riscv_vfadd_vv_f64m1(even2, odd2, part), part);
        for (size_t q = 0; q < width; ++q)
            c[2 + (j + q) * ldc] = beta == 0 ? alpha * row[q] : alpha * row[q] + beta * c[2 + (j + q) * ldc];
    }
}

/* 4 rows of C, n columns: vectors run along n, so that few rows take few instructions. B's n is contiguous,
 * its steps of k `sb` apart. */
static void rvv_f64_outer_4031_edge_few_4(size_t n, size_t k, const double *a, size_t lda, const double *b,
                                          size_t sb, double alpha, double beta, double *c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e64m1();
    const size_t full = lanes;
    const size_t most = lanes < 64 ? lanes : 64;
    double row[64];
    (void)full;
    for (size_t j = 0; j < n; j += most) {
        const size_t width = n - j < most ? n - j : most;
        const size_t part = ((size_t)(width));
        vfloat64m1_t even0 = __riscv_vfmv_v_f_f64m1(0, part), odd0 = __riscv_vfmv_v_f_f64m1(0, part);
        vfloat64m1_t even1 = __riscv_vfmv_v_f_f64m1(0, part), odd1 = __riscv_vfmv_v_f_f64m1(0, part);
        vfloat64m1_t even2 = __riscv_vfmv_v_f_f64m1(0, part), odd2 = __riscv_vfmv_v_f_f64m1(0, part);
        vfloat64m1_t even3 = __riscv_vfmv_v_f_f64m1(0, part), odd3 = __riscv_vfmv_v_f_f64m1(0, part);
        const double *x = a, *y = b + j;
        size_t p = k;
        for (; p >= 8; p -= 8) {
            const vfloat64m1_t b0 = __riscv_vle64_v_f64m1(y, part);
            __builtin_prefetch(y + 64);
            y += sb;
            even0 = __riscv_vfmacc_vf_f64m1(even0, x[0], b0, part);
            even1 = __riscv_vfmacc_vf_f64m1(even1, x[1], b0, part);
            even2 = __riscv_vfmacc_vf_f64m1(even2, x[2], b0, part);
            even3 = __riscv_vfmacc_vf_f64m1(even3, x[3], b0, part);
            x += lda;
            const vfloat64m1_t b1 = __riscv_vle64_v_f64m1(y, part);
            y += sb;
            odd0 = __riscv_vfmacc_vf_f64m1(odd0, x[0], b1, part);
            odd1 = __riscv_vfmacc_vf_f64m1(odd1, x[1], b1, part);
            odd2 = __riscv_vfmacc_vf_f64m1(odd2, x[2], b1, part);
            odd3 = __riscv_vfmacc_vf_f64m1(odd3, x[3], b1, part);
            x += lda;
            const vfloat64m1_t b2 = __riscv_vle64_v_f64m1(y, part);
            y += sb;
            even0 = __riscv_vfmacc_vf_f64m1(even0, x[0], b2, part);
            even1 = __riscv_vfmacc_vf_f64m1(even1, x[1], b2, part);
            even2 = __riscv_vfmacc_vf_f64m1(even2, x[2], b2, part);
            even3 = __riscv_vfmacc_vf_f64m1(even3, x[3], b2, part);
            x += lda;
            const vfloat64m1_t b3 = __riscv_vle64_v_f64m1(y, part);
            __builtin_prefetch(y + 64);
            y += sb;
            odd0 = __riscv_vfmacc_vf_f64m1(odd0, x[0], b3, part);
            odd1 = __riscv_vfmacc_vf_f64m1(odd1, x[1], b3, part);
            odd2 = __riscv_vfmacc_vf_f64m1(odd2, x[2], b3, part);
            odd3 = __riscv_vfmacc_vf_f64m1(odd3, x[3], b3, part);
            x += lda;
            const vfloat64m1_t b4 = __riscv_vle64_v_f64m1(y, part);
            y += sb;
            even0 = __riscv_vfmacc_vf_f64m1(even0, x[0], b4, part);
            even1 = __riscv_vfmacc_vf_f64m1(even1, x[1], b4, part);
            even2 = __riscv_vfmacc_vf_f64m1(even2, x[2], b4, part);
            even3 = __riscv_vfmacc_vf_f64m1(even3, x[3], b4, part);
            x += lda;
            const vfloat64m1_t b5 = __riscv_vle64_v_f64m1(y, part);
            y += sb;
            odd0 = __riscv_vfmacc_vf_f64m1(odd0, x[0], b5, part);
            odd1 = __riscv_vfmacc_vf_f64m1(odd1, x[1], b5, part);
            odd2 = __riscv_vfmacc_vf_f64m1(odd2, x[2], b5, part);
            odd3 = __riscv_vfmacc_vf_f64m1(odd3, x[3], b5, part);
            x += lda;
            const vfloat64m1_t b6 = __riscv_vle64_v_f64m1(y, part);
            __builtin_prefetch(y + 64);
            y += sb;
            even0 = __riscv_vfmacc_vf_f64m1(even0, x[0], b6, part);
            even1 = __riscv_vfmacc_vf_f64m1(even1, x[1], b6, part);
            even2 = __riscv_vfmacc_vf_f64m1(even2, x[2], b6, part);
            even3 = __riscv_vfmacc_vf_f64m1(even3, x[3], b6, part);
            x += lda;
            const vfloat64m1_t b7 = __riscv_vle64_v_f64m1(y, part);
            y += sb;
            odd0 = __riscv_vfmacc_vf_f64m1(odd0, x[0], b7, part);
            odd1 = __riscv_vfmacc_vf_f64m1(odd1, x[1], b7, part);
            odd2 = __riscv_vfmacc_vf_f64m1(odd2, x[2], b7, part);
            odd3 = __riscv_vfmacc_vf_f64m1(odd3, x[3], b7, part);
            x += lda;
        }
        for (; p >= 1; p -= 1) {
            const vfloat64m1_t b0 = __riscv_vle64_v_f64m1(y, part);
            y += sb;
            even0 = __riscv_vfmacc_vf_f64m1(even0, x[0], b0, part);
            even1 = __riscv_vfmacc_vf_f64m1(even1, x[1], b0, part);
            even2 = __riscv_vfmacc_vf_f64m1(even2, x[2], b0, part);
            even3 = __riscv_vfmacc_vf_f64m1(even3, x[3], b0, part);
            x += lda;
        }
        __riscv_vse64_v_f64m1(row, __riscv_vfadd_vv_f64m1(even0, odd0, part), part);
        for (size_t q = 0; q < width; ++q)
            c[0 + (j + q) * ldc] = beta == 0 ? alpha * row[q] : alpha * row[q] + beta * c[0 + (j + q) * ldc];
        __riscv_vse64_v_f64m1(row, __riscv_vfadd_vv_f64m1(even1, odd1, part), part);
        for (size_t q = 0; q < width; ++q)
            c[1 + (j + q) * ldc] = beta == 0 ? alpha * row[q] : alpha * row[q] + beta * c[1 + (j + q) * ldc];
        __riscv_vse64_v_f64m1(row, __riscv_vfadd_vv_f64m1(even2, odd2, part), part);
        for (size_t q = 0; q < width; ++q)
            c[2 + (j + q) * ldc] = beta == 0 ? alpha * row[q] : alpha * row[q] + beta * c[2 + (j + q) * ldc];
        __riscv_vse64_v_f64m1(row, __riscv_vfadd_vv_f64m1(even3, odd3, part), part);
        for (size_t q = 0; q < width; ++q)
            c[3 + (j + q) * ldc] = beta == 0 ? alpha * row[q] : alpha * row[q] + beta * c[3 + (j + q) * ldc];
    }
}

static void (*const rvv_f64_outer_4031_edge_few[4])(size_t n, size_t k, const double *a, size_t lda,
                                                    const double *b, size_t sb, double alpha, double beta,
                                                    double *c, size_t ldc) = {
    rvv_f64_outer_4031_edge_few_1, rvv_f64_outer_4031_edge_few_2, rvv_f64_outer_4031_edge_few_3,
    rvv_f64_outer_4031_edge_few_4};
