/* rvv_f64_direct_0dc0: micro-kernel 'direct' at ahead=1 lmul=2 mr_vectors=1 narrow=0 nr=1 partial_sums=4
 * (rvv, f64) the smallest products, with both operands read in place: a tile of mr_vectors vectors by nr
 * columns stays in registers over all of k, without packing or blocks; tiles with few accumulators keep
 * several partial sums, of every second or fourth step of k, to hide the latency of FMAs; where k is
 * contiguous in both operands, vectors run along k; narrow = 1 transposes few rows with large k for this */
static inline __attribute__((always_inline)) void
rvv_f64_direct_0dc0_tile_1x1_tail(size_t m, size_t k, const double *restrict a, size_t lda,
                                  const double *restrict b, size_t rsb, size_t csb, double alpha, double beta,
                                  double *restrict c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e64m2();
    const size_t full = lanes;
    const size_t tail = ((size_t)(m - 0 * lanes));
    (void)m, (void)full, (void)lanes, (void)rsb;
    vfloat64m2_t c0_0_0 = __riscv_vfmv_v_f_f64m2(0, tail);
    vfloat64m2_t c0_0_1 = __riscv_vfmv_v_f_f64m2(0, tail);
    vfloat64m2_t c0_0_2 = __riscv_vfmv_v_f_f64m2(0, tail);
    vfloat64m2_t c0_0_3 = __riscv_vfmv_v_f_f64m2(0, tail);
    for (; k >= 4; k -= 4) {
        const vfloat64m2_t a0_0 = __riscv_vle64_v_f64m2(a + 0 * lda + 0 * lanes, tail);
        const double b0_0 = b[0 * rsb + 0 * csb];

        const vfloat64m2_t a1_0 = __riscv_vle64_v_f64m2(a + 1 * lda + 0 * lanes, tail);
        const double b1_0 = b[1 * rsb + 0 * csb];

        const vfloat64m2_t a2_0 = __riscv_vle64_v_f64m2(a + 2 * lda + 0 * lanes, tail);
        const double b2_0 = b[2 * rsb + 0 * csb];

        const vfloat64m2_t a3_0 = __riscv_vle64_v_f64m2(a + 3 * lda + 0 * lanes, tail);
        const double b3_0 = b[3 * rsb + 0 * csb];

        c0_0_0 = __riscv_vfmacc_vf_f64m2(c0_0_0, b0_0, a0_0, tail);

        c0_0_1 = __riscv_vfmacc_vf_f64m2(c0_0_1, b1_0, a1_0, tail);

        c0_0_2 = __riscv_vfmacc_vf_f64m2(c0_0_2, b2_0, a2_0, tail);

        c0_0_3 = __riscv_vfmacc_vf_f64m2(c0_0_3, b3_0, a3_0, tail);

        a += 4 * lda;
        b += 4 * rsb;
    }
    for (; k; --k) {
        const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + 0 * lda + 0 * lanes, tail);
        const double b0 = b[0 * rsb + 0 * csb];

        c0_0_0 = __riscv_vfmacc_vf_f64m2(c0_0_0, b0, a0, tail);

        a += lda;
        b += rsb;
    }
    c0_0_0 = __riscv_vfadd_vv_f64m2(c0_0_0, c0_0_2, tail);
    c0_0_1 = __riscv_vfadd_vv_f64m2(c0_0_1, c0_0_3, tail);
    c0_0_0 = __riscv_vfadd_vv_f64m2(c0_0_0, c0_0_1, tail);
    /* C = alpha * tile + beta * C; at beta = 0 C is not read */
    if (beta == 0) {
        __riscv_vse64_v_f64m2(c + 0 * ldc + 0 * lanes, __riscv_vfmul_vf_f64m2(c0_0_0, alpha, tail), tail);
    } else {
        const vfloat64m2_t old0_0 = __riscv_vle64_v_f64m2(c + 0 * ldc + 0 * lanes, tail);
        __riscv_vse64_v_f64m2(
            c + 0 * ldc + 0 * lanes,
            __riscv_vfmacc_vf_f64m2(__riscv_vfmul_vf_f64m2(c0_0_0, alpha, tail), beta, old0_0, tail), tail);
    }
}

/* 1 vector of rows, the last possibly partial, by n columns */
static void rvv_f64_direct_0dc0_rows_1_tail(size_t m, size_t n, size_t k, double alpha, const double *a,
                                            size_t lda, const double *b, size_t rsb, size_t csb, double beta,
                                            double *c, size_t ldc) {
    for (; n >= 1; n -= 1) {
        rvv_f64_direct_0dc0_tile_1x1_tail(m, k, a, lda, b, rsb, csb, alpha, beta, c, ldc);
        b += 1 * csb;
        c += 1 * ldc;
    }
    switch (n) {
    default:
        break;
    }
}

static inline __attribute__((always_inline)) void
rvv_f64_direct_0dc0_tile_4x1_tail(size_t m, size_t k, const double *restrict a, size_t lda,
                                  const double *restrict b, size_t rsb, size_t csb, double alpha, double beta,
                                  double *restrict c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e64m2();
    const size_t full = lanes;
    const size_t tail = ((size_t)(m - 3 * lanes));
    (void)m, (void)full, (void)lanes, (void)rsb;
    vfloat64m2_t c0_0_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c1_0_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c2_0_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c3_0_0 = __riscv_vfmv_v_f_f64m2(0, tail);
    if (k > 1) {
        vfloat64m2_t x0, y0;
        vfloat64m2_t x1, y1;
        vfloat64m2_t x2, y2;
        vfloat64m2_t x3, y3;
        double s0, t0;
        x0 = __riscv_vle64_v_f64m2(a + 0 * lda + 0 * lanes, full);
        x1 = __riscv_vle64_v_f64m2(a + 0 * lda + 1 * lanes, full);
        x2 = __riscv_vle64_v_f64m2(a + 0 * lda + 2 * lanes, full);
        x3 = __riscv_vle64_v_f64m2(a + 0 * lda + 3 * lanes, tail);
        s0 = b[0 * rsb + 0 * csb];

        for (; k > 2; k -= 2) {
            y0 = __riscv_vle64_v_f64m2(a + 1 * lda + 0 * lanes, full);
            y1 = __riscv_vle64_v_f64m2(a + 1 * lda + 1 * lanes, full);
            y2 = __riscv_vle64_v_f64m2(a + 1 * lda + 2 * lanes, full);
            y3 = __riscv_vle64_v_f64m2(a + 1 * lda + 3 * lanes, tail);
            t0 = b[1 * rsb + 0 * csb];

            c0_0_0 = __riscv_vfmacc_vf_f64m2(c0_0_0, s0, x0, full);
            c1_0_0 = __riscv_vfmacc_vf_f64m2(c1_0_0, s0, x1, full);
            c2_0_0 = __riscv_vfmacc_vf_f64m2(c2_0_0, s0, x2, full);
            c3_0_0 = __riscv_vfmacc_vf_f64m2(c3_0_0, s0, x3, tail);

            a += 2 * lda;
            b += 2 * rsb;
            x0 = __riscv_vle64_v_f64m2(a + 0 * lda + 0 * lanes, full);
            x1 = __riscv_vle64_v_f64m2(a + 0 * lda + 1 * lanes, full);
            x2 = __riscv_vle64_v_f64m2(a + 0 * lda + 2 * lanes, full);
            x3 = __riscv_vle64_v_f64m2(a + 0 * lda + 3 * lanes, tail);
            s0 = b[0 * rsb + 0 * csb];

            c0_0_0 = __riscv_vfmacc_vf_f64m2(c0_0_0, t0, y0, full);
            c1_0_0 = __riscv_vfmacc_vf_f64m2(c1_0_0, t0, y1, full);
            c2_0_0 = __riscv_vfmacc_vf_f64m2(c2_0_0, t0, y2, full);
            c3_0_0 = __riscv_vfmacc_vf_f64m2(c3_0_0, t0, y3, tail);
        }
        if (k == 2) {
            y0 = __riscv_vle64_v_f64m2(a + 1 * lda + 0 * lanes, full);
            y1 = __riscv_vle64_v_f64m2(a + 1 * lda + 1 * lanes, full);
            y2 = __riscv_vle64_v_f64m2(a + 1 * lda + 2 * lanes, full);
            y3 = __riscv_vle64_v_f64m2(a + 1 * lda + 3 * lanes, tail);
            t0 = b[1 * rsb + 0 * csb];

            c0_0_0 = __riscv_vfmacc_vf_f64m2(c0_0_0, s0, x0, full);
            c1_0_0 = __riscv_vfmacc_vf_f64m2(c1_0_0, s0, x1, full);
            c2_0_0 = __riscv_vfmacc_vf_f64m2(c2_0_0, s0, x2, full);
            c3_0_0 = __riscv_vfmacc_vf_f64m2(c3_0_0, s0, x3, tail);

            c0_0_0 = __riscv_vfmacc_vf_f64m2(c0_0_0, t0, y0, full);
            c1_0_0 = __riscv_vfmacc_vf_f64m2(c1_0_0, t0, y1, full);
            c2_0_0 = __riscv_vfmacc_vf_f64m2(c2_0_0, t0, y2, full);
            c3_0_0 = __riscv_vfmacc_vf_f64m2(c3_0_0, t0, y3, tail);

        } else {
            c0_0_0 = __riscv_vfmacc_vf_f64m2(c0_0_0, s0, x0, full);
            c1_0_0 = __riscv_vfmacc_vf_f64m2(c1_0_0, s0, x1, full);
            c2_0_0 = __riscv_vfmacc_vf_f64m2(c2_0_0, s0, x2, full);
            c3_0_0 = __riscv_vfmacc_vf_f64m2(c3_0_0, s0, x3, tail);
        }
        k = 0;
    }
    for (; k; --k) {
        const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + 0 * lda + 0 * lanes, full);
        const vfloat64m2_t a1 = __riscv_vle64_v_f64m2(a + 0 * lda + 1 * lanes, full);
        const vfloat64m2_t a2 = __riscv_vle64_v_f64m2(a + 0 * lda + 2 * lanes, full);
        const vfloat64m2_t a3 = __riscv_vle64_v_f64m2(a + 0 * lda + 3 * lanes, tail);
        const double b0 = b[0 * rsb + 0 * csb];

        c0_0_0 = __riscv_vfmacc_vf_f64m2(c0_0_0, b0, a0, full);
        c1_0_0 = __riscv_vfmacc_vf_f64m2(c1_0_0, b0, a1, full);
        c2_0_0 = __riscv_vfmacc_vf_f64m2(c2_0_0, b0, a2, full);
        c3_0_0 = __riscv_vfmacc_vf_f64m2(c3_0_0, b0, a3, tail);

        a += lda;
        b += rsb;
    }
    /* C = alpha * tile + beta * C; at beta = 0 C is not read */
    if (beta == 0) {
        __riscv_vse64_v_f64m2(c + 0 * ldc + 0 * lanes, __riscv_vfmul_vf_f64m2(c0_0_0, alpha, full), full);
        __riscv_vse64_v_f64m2(c + 0 * ldc + 1 * lanes, __riscv_vfmul_vf_f64m2(c1_0_0, alpha, full), full);
        __riscv_vse64_v_f64m2(c + 0 * ldc + 2 * lanes, __riscv_vfmul_vf_f64m2(c2_0_0, alpha, full), full);
        __riscv_vse64_v_f64m2(c + 0 * ldc + 3 * lanes, __riscv_vfmul_vf_f64m2(c3_0_0, alpha, tail), tail);
    } else {
        const vfloat64m2_t old0_0 = __riscv_vle64_v_f64m2(c + 0 * ldc + 0 * lanes, full);
        __riscv_vse64_v_f64m2(
            c + 0 * ldc + 0 * lanes,
            __riscv_vfmacc_vf_f64m2(__riscv_vfmul_vf_f64m2(c0_0_0, alpha, full), beta, old0_0, full), full);
        const vfloat64m2_t old1_0 = __riscv_vle64_v_f64m2(c + 0 * ldc + 1 * lanes, full);
        __riscv_vse64_v_f64m2(
            c + 0 * ldc + 1 * lanes,
            __riscv_vfmacc_vf_f64m2(__riscv_vfmul_vf_f64m2(c1_0_0, alpha, full), beta, old1_0, full), full);
        const vfloat64m2_t old2_0 = __riscv_vle64_v_f64m2(c + 0 * ldc + 2 * lanes, full);
        __riscv_vse64_v_f64m2(
            c + 0 * ldc + 2 * lanes,
            __riscv_vfmacc_vf_f64m2(__riscv_vfmul_vf_f64m2(c2_0_0, alpha, full), beta, old2_0, full), full);
        const vfloat64m2_t old3_0 = __riscv_vle64_v_f64m2(c + 0 * ldc + 3 * lanes, tail);
        __riscv_vse64_v_f64m2(
            c + 0 * ldc + 3 * lanes,
            __riscv_vfmacc_vf_f64m2(__riscv_vfmul_vf_f64m2(c3_0_0, alpha, tail), beta, old3_0, tail), tail);
    }
}

/* A's columns are contiguous, lda apart. For few columns, tall tiles read long pieces of A's columns. */
static inline __attribute__((always_inline)) void
rvv_f64_direct_0dc0_down(size_t m, size_t n, size_t k, double alpha, const double *a, size_t lda,
                         const double *b, size_t rsb, size_t csb, double beta, double *c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e64m2();
    while (n == 1 && m >= 4 * lanes) {
        rvv_f64_direct_0dc0_tile_4x1_tail(4 * lanes, k, a, lda, b, rsb, csb, alpha, beta, c, ldc);
        a += 4 * lanes;
        c += 4 * lanes;
        m -= 4 * lanes;
    }
    if (m == 0)
        return;
    for (; m > 1 * lanes; m -= 1 * lanes) {
        rvv_f64_direct_0dc0_rows_1_tail(1 * lanes, n, k, alpha, a, lda, b, rsb, csb, beta, c, ldc);
        a += 1 * lanes;
        c += 1 * lanes;
    }
    rvv_f64_direct_0dc0_rows_1_tail(m, n, k, alpha, a, lda, b, rsb, csb, beta, c, ldc);
}

/* k = 1 */
static __attribute__((noinline)) void rvv_f64_direct_0dc0_shallow_1(size_t m, size_t n, double alpha,
                                                                    const double *restrict a, size_t lda,
                                                                    const double *restrict b, size_t rsb,
                                                                    size_t csb, double beta,
                                                                    double *restrict c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e64m2();
    const size_t full = lanes;
    (void)full, (void)rsb, (void)lda;
    for (; n >= 1; n -= 1) {
        const double b0_0 = alpha * b[0 * rsb + 0 * csb];
        for (size_t i = 0; i < m; i += lanes) {
            const size_t tail = ((size_t)(m - i < lanes ? m - i : lanes));
            const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + i + 0 * lda, tail);
            vfloat64m2_t c0 = __riscv_vfmul_vf_f64m2(a0, b0_0, tail);

            if (beta != 0) { /* at beta = 0 C is not read */
                c0 = __riscv_vfmacc_vf_f64m2(c0, beta, __riscv_vle64_v_f64m2(c + i + 0 * ldc, tail), tail);
            }
            __riscv_vse64_v_f64m2(c + i + 0 * ldc, c0, tail);
        }

        b += 1 * csb;
        c += 1 * ldc;
    }
}

/* k = 2 */
static __attribute__((noinline)) void rvv_f64_direct_0dc0_shallow_2(size_t m, size_t n, double alpha,
                                                                    const double *restrict a, size_t lda,
                                                                    const double *restrict b, size_t rsb,
                                                                    size_t csb, double beta,
                                                                    double *restrict c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e64m2();
    const size_t full = lanes;
    (void)full, (void)rsb, (void)lda;
    for (; n >= 1; n -= 1) {
        const double b0_0 = alpha * b[0 * rsb + 0 * csb];
        const double b1_0 = alpha * b[1 * rsb + 0 * csb];
        for (size_t i = 0; i < m; i += lanes) {
            const size_t tail = ((size_t)(m - i < lanes ? m - i : lanes));
            const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + i + 0 * lda, tail);
            const vfloat64m2_t a1 = __riscv_vle64_v_f64m2(a + i + 1 * lda, tail);
            vfloat64m2_t c0 = __riscv_vfmul_vf_f64m2(a0, b0_0, tail);
            c0 = __riscv_vfmacc_vf_f64m2(c0, b1_0, a1, tail);

            if (beta != 0) { /* at beta = 0 C is not read */
                c0 = __riscv_vfmacc_vf_f64m2(c0, beta, __riscv_vle64_v_f64m2(c + i + 0 * ldc, tail), tail);
            }
            __riscv_vse64_v_f64m2(c + i + 0 * ldc, c0, tail);
        }

        b += 1 * csb;
        c += 1 * ldc;
    }
}

/* k = 3 */
static __attribute__((noinline)) void rvv_f64_direct_0dc0_shallow_3(size_t m, size_t n, double alpha,
                                                                    const double *restrict a, size_t lda,
                                                                    const double *restrict b, size_t rsb,
                                                                    size_t csb, double beta,
                                                                    double *restrict c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e64m2();
    const size_t full = lanes;
    (void)full, (void)rsb, (void)lda;
    for (; n >= 1; n -= 1) {
        const double b0_0 = alpha * b[0 * rsb + 0 * csb];
        const double b1_0 = alpha * b[1 * rsb + 0 * csb];
        const double b2_0 = alpha * b[2 * rsb + 0 * csb];
        for (size_t i = 0; i < m; i += lanes) {
            const size_t tail = ((size_t)(m - i < lanes ? m - i : lanes));
            const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + i + 0 * lda, tail);
            const vfloat64m2_t a1 = __riscv_vle64_v_f64m2(a + i + 1 * lda, tail);
            const vfloat64m2_t a2 = __riscv_vle64_v_f64m2(a + i + 2 * lda, tail);
            vfloat64m2_t c0 = __riscv_vfmul_vf_f64m2(a0, b0_0, tail);
            c0 = __riscv_vfmacc_vf_f64m2(c0, b1_0, a1, tail);
            c0 = __riscv_vfmacc_vf_f64m2(c0, b2_0, a2, tail);

            if (beta != 0) { /* at beta = 0 C is not read */
                c0 = __riscv_vfmacc_vf_f64m2(c0, beta, __riscv_vle64_v_f64m2(c + i + 0 * ldc, tail), tail);
            }
            __riscv_vse64_v_f64m2(c + i + 0 * ldc, c0, tail);
        }

        b += 1 * csb;
        c += 1 * ldc;
    }
}

/* k = 4 */
static __attribute__((noinline)) void rvv_f64_direct_0dc0_shallow_4(size_t m, size_t n, double alpha,
                                                                    const double *restrict a, size_t lda,
                                                                    const double *restrict b, size_t rsb,
                                                                    size_t csb, double beta,
                                                                    double *restrict c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e64m2();
    const size_t full = lanes;
    (void)full, (void)rsb, (void)lda;
    for (; n >= 1; n -= 1) {
        const double b0_0 = alpha * b[0 * rsb + 0 * csb];
        const double b1_0 = alpha * b[1 * rsb + 0 * csb];
        const double b2_0 = alpha * b[2 * rsb + 0 * csb];
        const double b3_0 = alpha * b[3 * rsb + 0 * csb];
        for (size_t i = 0; i < m; i += lanes) {
            const size_t tail = ((size_t)(m - i < lanes ? m - i : lanes));
            const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + i + 0 * lda, tail);
            const vfloat64m2_t a1 = __riscv_vle64_v_f64m2(a + i + 1 * lda, tail);
            const vfloat64m2_t a2 = __riscv_vle64_v_f64m2(a + i + 2 * lda, tail);
            const vfloat64m2_t a3 = __riscv_vle64_v_f64m2(a + i + 3 * lda, tail);
            vfloat64m2_t c0 = __riscv_vfmul_vf_f64m2(a0, b0_0, tail);
            c0 = __riscv_vfmacc_vf_f64m2(c0, b1_0, a1, tail);
            c0 = __riscv_vfmacc_vf_f64m2(c0, b2_0, a2, tail);
            c0 = __riscv_vfmacc_vf_f64m2(c0, b3_0, a3, tail);

            if (beta != 0) { /* at beta = 0 C is not read */
                c0 = __riscv_vfmacc_vf_f64m2(c0, beta, __riscv_vle64_v_f64m2(c + i + 0 * ldc, tail), tail);
            }
            __riscv_vse64_v_f64m2(c + i + 0 * ldc, c0, tail);
        }

        b += 1 * csb;
        c += 1 * ldc;
    }
}

static inline void rvv_f64_direct_0dc0_shallow_rows(size_t m, size_t n, size_t k, double alpha,
                                                    const double *a, size_t lda, const double *b, size_t rsb,
                                                    size_t csb, double beta, double *c, size_t ldc) {
    switch (k) {
    case 1:
        rvv_f64_direct_0dc0_shallow_1(m, n, alpha, a, lda, b, rsb, csb, beta, c, ldc);
        break;
    case 2:
        rvv_f64_direct_0dc0_shallow_2(m, n, alpha, a, lda, b, rsb, csb, beta, c, ldc);
        break;
    case 3:
        rvv_f64_direct_0dc0_shallow_3(m, n, alpha, a, lda, b, rsb, csb, beta, c, ldc);
        break;
    case 4:
        rvv_f64_direct_0dc0_shallow_4(m, n, alpha, a, lda, b, rsb, csb, beta, c, ldc);
        break;
    default:
        break;
    }
}

/* Takes as many rows at a time as half of L1 holds of
 * A. */
static __attribute__((noinline)) void rvv_f64_direct_0dc0_shallow(size_t m, size_t n, size_t k, double alpha,
                                                                  const double *a, size_t lda,
                                                                  const double *b, size_t rsb, size_t csb,
                                                                  double beta, double *c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e64m2();
    const size_t near = 512 / lanes * lanes, most = near ? near : lanes;
    for (size_t i = 0; i < m; i += most) {
        rvv_f64_direct_0dc0_shallow_rows(m - i < most ? m - i : most, n, k, alpha, a + i, lda, b, rsb, csb,
                                         beta, c + i, ldc);
    }
}

/* The same. If C is larger than half of L1, it is computed in column blocks that fit there. */
static inline __attribute__((always_inline)) void
rvv_f64_direct_0dc0_by_columns(size_t m, size_t n, size_t k, double alpha, const double *a, size_t lda,
                               const double *b, size_t rsb, size_t csb, double beta, double *c, size_t ldc) {
    if (rvv_f64_direct_0dc0_is_shallow(__riscv_vsetvlmax_e64m2(), m, n, k)) {
        rvv_f64_direct_0dc0_shallow(m, n, k, alpha, a, lda, b, rsb, csb, beta, c, ldc);
        return;
    }
    const size_t near = 2048;
    if (m * n > near && m > 1 * __riscv_vsetvlmax_e64m2() && m * k <= near) {
        const size_t most = m < near / 2 ? near / m / 1 * 1 : 2;
        for (; n > most; n -= most) {
            rvv_f64_direct_0dc0_down(m, most, k, alpha, a, lda, b, rsb, csb, beta, c, ldc);
            b += most * csb;
            c += most * ldc;
        }
    }
    rvv_f64_direct_0dc0_down(m, n, k, alpha, a, lda, b, rsb, csb, beta, c, ldc);
}

/* to[q * ldt + i] = from[i * lda + q]. Separate functions, to avoid the register pressure of their callers.
 */
static __attribute__((noinline)) void rvv_f64_direct_0dc0_turn_some(const double *from, size_t lda,
                                                                    double *to, size_t ldt, size_t rows,
                                                                    size_t steps) {
    const size_t lanes = __riscv_vsetvlmax_e64m2();
    for (; steps > lanes; steps -= lanes) {
        tensorop_transpose_f64m2(to, ldt, from, lda, rows, lanes);
        from += lanes;
        to += lanes * ldt;
    }
    tensorop_transpose_f64m2(to, ldt, from, lda, rows, steps);
}

/* A's rows are contiguous, lda apart. They are transposed onto the stack, as many rows and steps of k at a
 * time as fit there. */
static __attribute__((noinline)) void rvv_f64_direct_0dc0_turned(size_t m, size_t n, size_t k, double alpha,
                                                                 const double *a, size_t lda, const double *b,
                                                                 size_t rsb, size_t csb, double beta,
                                                                 double *c, size_t ldc) {
    _Alignas(64) double panel[768];
    const size_t lanes = __riscv_vsetvlmax_e64m2(), largest = 1 * lanes;
    const size_t tile = largest < 768 ? largest : 768, most = 768 / tile;
    const size_t high = m > tile && k < most ? 768 / k / tile * tile : tile;
    for (size_t i = 0; i < m; i += high) {
        const size_t height = m - i < high ? m - i : high, vectors = (height + lanes - 1) / lanes * lanes;
        const size_t apart = vectors < high ? vectors : high;
        for (size_t p = 0; p < k; p += most) {
            const size_t depth = k - p < most ? k - p : most;
            size_t x = 0;
            for (; x < height; x += lanes)
                rvv_f64_direct_0dc0_turn_some(a + (i + x) * lda + p, lda, panel + x, apart,
                                              height - x < lanes ? height - x : lanes, depth);
            rvv_f64_direct_0dc0_by_columns(height, n, depth, alpha, panel, apart, b + p * rsb, rsb, csb,
                                           p ? 1 : beta, c + i, ldc);
        }
    }
}

static inline __attribute__((always_inline)) void
rvv_f64_direct_0dc0_dot_1x1(size_t m, size_t k, const double *restrict a, size_t lda,
                            const double *restrict b, size_t rsb, size_t csb, double alpha, double beta,
                            double *restrict c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e64m2();
    const size_t full = lanes;
    (void)m, (void)full, (void)lanes, (void)rsb;
    vfloat64m2_t c0_0_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c0_0_1 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c0_0_2 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c0_0_3 = __riscv_vfmv_v_f_f64m2(0, full);
    size_t p = 0;
    for (; p + 4 * lanes <= k; p += 4 * lanes) {
        {
            const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + 0 * lda + p + 0 * lanes, full);
            const vfloat64m2_t b0 = __riscv_vle64_v_f64m2(b + 0 * csb + p + 0 * lanes, full);
            c0_0_0 = __riscv_vfmacc_vv_f64m2(c0_0_0, a0, b0, full);
        }
        {
            const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + 0 * lda + p + 1 * lanes, full);
            const vfloat64m2_t b0 = __riscv_vle64_v_f64m2(b + 0 * csb + p + 1 * lanes, full);
            c0_0_1 = __riscv_vfmacc_vv_f64m2(c0_0_1, a0, b0, full);
        }
        {
            const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + 0 * lda + p + 2 * lanes, full);
            const vfloat64m2_t b0 = __riscv_vle64_v_f64m2(b + 0 * csb + p + 2 * lanes, full);
            c0_0_2 = __riscv_vfmacc_vv_f64m2(c0_0_2, a0, b0, full);
        }
        {
            const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + 0 * lda + p + 3 * lanes, full);
            const vfloat64m2_t b0 = __riscv_vle64_v_f64m2(b + 0 * csb + p + 3 * lanes, full);
            c0_0_3 = __riscv_vfmacc_vv_f64m2(c0_0_3, a0, b0, full);
        }
    }
    for (; p + lanes <= k; p += lanes) {
        const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + 0 * lda + p, full);
        const vfloat64m2_t b0 = __riscv_vle64_v_f64m2(b + 0 * csb + p, full);
        c0_0_0 = __riscv_vfmacc_vv_f64m2(c0_0_0, a0, b0, full);
    }
    if (p < k) {
        const size_t tail = ((size_t)(k - p));
        const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + 0 * lda + p, tail);
        const vfloat64m2_t b0 = __riscv_vle64_v_f64m2(b + 0 * csb + p, tail);
        c0_0_0 = __riscv_vfmacc_vv_f64m2_tu(c0_0_0, a0, b0, tail);
    }
    c0_0_0 = __riscv_vfadd_vv_f64m2(c0_0_0, c0_0_2, full);
    c0_0_1 = __riscv_vfadd_vv_f64m2(c0_0_1, c0_0_3, full);
    c0_0_0 = __riscv_vfadd_vv_f64m2(c0_0_0, c0_0_1, full);
    const double dot0_0 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c0_0_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    if (beta == 0) { /* C is not read */
        c[0 + 0 * ldc] = dot0_0;
    } else {
        c[0 + 0 * ldc] = beta * c[0 + 0 * ldc] + dot0_0;
    }
}

static inline __attribute__((always_inline)) void
rvv_f64_direct_0dc0_dot_1x2(size_t m, size_t k, const double *restrict a, size_t lda,
                            const double *restrict b, size_t rsb, size_t csb, double alpha, double beta,
                            double *restrict c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e64m2();
    const size_t full = lanes;
    (void)m, (void)full, (void)lanes, (void)rsb;
    vfloat64m2_t c0_0_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c0_1_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c0_0_1 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c0_1_1 = __riscv_vfmv_v_f_f64m2(0, full);
    size_t p = 0;
    for (; p + 2 * lanes <= k; p += 2 * lanes) {
        {
            const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + 0 * lda + p + 0 * lanes, full);
            const vfloat64m2_t b0 = __riscv_vle64_v_f64m2(b + 0 * csb + p + 0 * lanes, full);
            const vfloat64m2_t b1 = __riscv_vle64_v_f64m2(b + 1 * csb + p + 0 * lanes, full);
            c0_0_0 = __riscv_vfmacc_vv_f64m2(c0_0_0, a0, b0, full);
            c0_1_0 = __riscv_vfmacc_vv_f64m2(c0_1_0, a0, b1, full);
        }
        {
            const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + 0 * lda + p + 1 * lanes, full);
            const vfloat64m2_t b0 = __riscv_vle64_v_f64m2(b + 0 * csb + p + 1 * lanes, full);
            const vfloat64m2_t b1 = __riscv_vle64_v_f64m2(b + 1 * csb + p + 1 * lanes, full);
            c0_0_1 = __riscv_vfmacc_vv_f64m2(c0_0_1, a0, b0, full);
            c0_1_1 = __riscv_vfmacc_vv_f64m2(c0_1_1, a0, b1, full);
        }
    }
    for (; p + lanes <= k; p += lanes) {
        const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + 0 * lda + p, full);
        const vfloat64m2_t b0 = __riscv_vle64_v_f64m2(b + 0 * csb + p, full);
        const vfloat64m2_t b1 = __riscv_vle64_v_f64m2(b + 1 * csb + p, full);
        c0_0_0 = __riscv_vfmacc_vv_f64m2(c0_0_0, a0, b0, full);
        c0_1_0 = __riscv_vfmacc_vv_f64m2(c0_1_0, a0, b1, full);
    }
    if (p < k) {
        const size_t tail = ((size_t)(k - p));
        const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + 0 * lda + p, tail);
        const vfloat64m2_t b0 = __riscv_vle64_v_f64m2(b + 0 * csb + p, tail);
        const vfloat64m2_t b1 = __riscv_vle64_v_f64m2(b + 1 * csb + p, tail);
        c0_0_0 = __riscv_vfmacc_vv_f64m2_tu(c0_0_0, a0, b0, tail);
        c0_1_0 = __riscv_vfmacc_vv_f64m2_tu(c0_1_0, a0, b1, tail);
    }
    c0_0_0 = __riscv_vfadd_vv_f64m2(c0_0_0, c0_0_1, full);
    c0_1_0 = __riscv_vfadd_vv_f64m2(c0_1_0, c0_1_1, full);
    const double dot0_0 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c0_0_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    const double dot0_1 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c0_1_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    if (beta == 0) { /* C is not read */
        c[0 + 0 * ldc] = dot0_0;
        c[0 + 1 * ldc] = dot0_1;
    } else {
        c[0 + 0 * ldc] = beta * c[0 + 0 * ldc] + dot0_0;
        c[0 + 1 * ldc] = beta * c[0 + 1 * ldc] + dot0_1;
    }
}

static inline __attribute__((always_inline)) void
rvv_f64_direct_0dc0_dot_1x3(size_t m, size_t k, const double *restrict a, size_t lda,
                            const double *restrict b, size_t rsb, size_t csb, double alpha, double beta,
                            double *restrict c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e64m2();
    const size_t full = lanes;
    (void)m, (void)full, (void)lanes, (void)rsb;
    vfloat64m2_t c0_0_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c0_1_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c0_2_0 = __riscv_vfmv_v_f_f64m2(0, full);
    size_t p = 0;
    for (; p + lanes <= k; p += lanes) {
        const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + 0 * lda + p, full);
        const vfloat64m2_t b0 = __riscv_vle64_v_f64m2(b + 0 * csb + p, full);
        const vfloat64m2_t b1 = __riscv_vle64_v_f64m2(b + 1 * csb + p, full);
        const vfloat64m2_t b2 = __riscv_vle64_v_f64m2(b + 2 * csb + p, full);
        c0_0_0 = __riscv_vfmacc_vv_f64m2(c0_0_0, a0, b0, full);
        c0_1_0 = __riscv_vfmacc_vv_f64m2(c0_1_0, a0, b1, full);
        c0_2_0 = __riscv_vfmacc_vv_f64m2(c0_2_0, a0, b2, full);
    }
    if (p < k) {
        const size_t tail = ((size_t)(k - p));
        const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + 0 * lda + p, tail);
        const vfloat64m2_t b0 = __riscv_vle64_v_f64m2(b + 0 * csb + p, tail);
        const vfloat64m2_t b1 = __riscv_vle64_v_f64m2(b + 1 * csb + p, tail);
        const vfloat64m2_t b2 = __riscv_vle64_v_f64m2(b + 2 * csb + p, tail);
        c0_0_0 = __riscv_vfmacc_vv_f64m2_tu(c0_0_0, a0, b0, tail);
        c0_1_0 = __riscv_vfmacc_vv_f64m2_tu(c0_1_0, a0, b1, tail);
        c0_2_0 = __riscv_vfmacc_vv_f64m2_tu(c0_2_0, a0, b2, tail);
    }
    const double dot0_0 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c0_0_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    const double dot0_1 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c0_1_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    const double dot0_2 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c0_2_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    if (beta == 0) { /* C is not read */
        c[0 + 0 * ldc] = dot0_0;
        c[0 + 1 * ldc] = dot0_1;
        c[0 + 2 * ldc] = dot0_2;
    } else {
        c[0 + 0 * ldc] = beta * c[0 + 0 * ldc] + dot0_0;
        c[0 + 1 * ldc] = beta * c[0 + 1 * ldc] + dot0_1;
        c[0 + 2 * ldc] = beta * c[0 + 2 * ldc] + dot0_2;
    }
}

static inline __attribute__((always_inline)) void
rvv_f64_direct_0dc0_dot_1x4(size_t m, size_t k, const double *restrict a, size_t lda,
                            const double *restrict b, size_t rsb, size_t csb, double alpha, double beta,
                            double *restrict c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e64m2();
    const size_t full = lanes;
    (void)m, (void)full, (void)lanes, (void)rsb;
    vfloat64m2_t c0_0_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c0_1_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c0_2_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c0_3_0 = __riscv_vfmv_v_f_f64m2(0, full);
    size_t p = 0;
    for (; p + lanes <= k; p += lanes) {
        const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + 0 * lda + p, full);
        const vfloat64m2_t b0 = __riscv_vle64_v_f64m2(b + 0 * csb + p, full);
        const vfloat64m2_t b1 = __riscv_vle64_v_f64m2(b + 1 * csb + p, full);
        const vfloat64m2_t b2 = __riscv_vle64_v_f64m2(b + 2 * csb + p, full);
        const vfloat64m2_t b3 = __riscv_vle64_v_f64m2(b + 3 * csb + p, full);
        c0_0_0 = __riscv_vfmacc_vv_f64m2(c0_0_0, a0, b0, full);
        c0_1_0 = __riscv_vfmacc_vv_f64m2(c0_1_0, a0, b1, full);
        c0_2_0 = __riscv_vfmacc_vv_f64m2(c0_2_0, a0, b2, full);
        c0_3_0 = __riscv_vfmacc_vv_f64m2(c0_3_0, a0, b3, full);
    }
    if (p < k) {
        const size_t tail = ((size_t)(k - p));
        const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + 0 * lda + p, tail);
        const vfloat64m2_t b0 = __riscv_vle64_v_f64m2(b + 0 * csb + p, tail);
        const vfloat64m2_t b1 = __riscv_vle64_v_f64m2(b + 1 * csb + p, tail);
        const vfloat64m2_t b2 = __riscv_vle64_v_f64m2(b + 2 * csb + p, tail);
        const vfloat64m2_t b3 = __riscv_vle64_v_f64m2(b + 3 * csb + p, tail);
        c0_0_0 = __riscv_vfmacc_vv_f64m2_tu(c0_0_0, a0, b0, tail);
        c0_1_0 = __riscv_vfmacc_vv_f64m2_tu(c0_1_0, a0, b1, tail);
        c0_2_0 = __riscv_vfmacc_vv_f64m2_tu(c0_2_0, a0, b2, tail);
        c0_3_0 = __riscv_vfmacc_vv_f64m2_tu(c0_3_0, a0, b3, tail);
    }
    const double dot0_0 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c0_0_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    const double dot0_1 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c0_1_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    const double dot0_2 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c0_2_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    const double dot0_3 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c0_3_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    if (beta == 0) { /* C is not read */
        c[0 + 0 * ldc] = dot0_0;
        c[0 + 1 * ldc] = dot0_1;
        c[0 + 2 * ldc] = dot0_2;
        c[0 + 3 * ldc] = dot0_3;
    } else {
        c[0 + 0 * ldc] = beta * c[0 + 0 * ldc] + dot0_0;
        c[0 + 1 * ldc] = beta * c[0 + 1 * ldc] + dot0_1;
        c[0 + 2 * ldc] = beta * c[0 + 2 * ldc] + dot0_2;
        c[0 + 3 * ldc] = beta * c[0 + 3 * ldc] + dot0_3;
    }
}

static inline __attribute__((always_inline)) void
rvv_f64_direct_0dc0_dot_1x5(size_t m, size_t k, const double *restrict a, size_t lda,
                            const double *restrict b, size_t rsb, size_t csb, double alpha, double beta,
                            double *restrict c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e64m2();
    const size_t full = lanes;
    (void)m, (void)full, (void)lanes, (void)rsb;
    vfloat64m2_t c0_0_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c0_1_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c0_2_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c0_3_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c0_4_0 = __riscv_vfmv_v_f_f64m2(0, full);
    size_t p = 0;
    for (; p + lanes <= k; p += lanes) {
        const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + 0 * lda + p, full);
        const vfloat64m2_t b0 = __riscv_vle64_v_f64m2(b + 0 * csb + p, full);
        const vfloat64m2_t b1 = __riscv_vle64_v_f64m2(b + 1 * csb + p, full);
        const vfloat64m2_t b2 = __riscv_vle64_v_f64m2(b + 2 * csb + p, full);
        const vfloat64m2_t b3 = __riscv_vle64_v_f64m2(b + 3 * csb + p, full);
        const vfloat64m2_t b4 = __riscv_vle64_v_f64m2(b + 4 * csb + p, full);
        c0_0_0 = __riscv_vfmacc_vv_f64m2(c0_0_0, a0, b0, full);
        c0_1_0 = __riscv_vfmacc_vv_f64m2(c0_1_0, a0, b1, full);
        c0_2_0 = __riscv_vfmacc_vv_f64m2(c0_2_0, a0, b2, full);
        c0_3_0 = __riscv_vfmacc_vv_f64m2(c0_3_0, a0, b3, full);
        c0_4_0 = __riscv_vfmacc_vv_f64m2(c0_4_0, a0, b4, full);
    }
    if (p < k) {
        const size_t tail = ((size_t)(k - p));
        const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + 0 * lda + p, tail);
        const vfloat64m2_t b0 = __riscv_vle64_v_f64m2(b + 0 * csb + p, tail);
        const vfloat64m2_t b1 = __riscv_vle64_v_f64m2(b + 1 * csb + p, tail);
        const vfloat64m2_t b2 = __riscv_vle64_v_f64m2(b + 2 * csb + p, tail);
        const vfloat64m2_t b3 = __riscv_vle64_v_f64m2(b + 3 * csb + p, tail);
        const vfloat64m2_t b4 = __riscv_vle64_v_f64m2(b + 4 * csb + p, tail);
        c0_0_0 = __riscv_vfmacc_vv_f64m2_tu(c0_0_0, a0, b0, tail);
        c0_1_0 = __riscv_vfmacc_vv_f64m2_tu(c0_1_0, a0, b1, tail);
        c0_2_0 = __riscv_vfmacc_vv_f64m2_tu(c0_2_0, a0, b2, tail);
        c0_3_0 = __riscv_vfmacc_vv_f64m2_tu(c0_3_0, a0, b3, tail);
        c0_4_0 = __riscv_vfmacc_vv_f64m2_tu(c0_4_0, a0, b4, tail);
    }
    const double dot0_0 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c0_0_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    const double dot0_1 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c0_1_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    const double dot0_2 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c0_2_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    const double dot0_3 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c0_3_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    const double dot0_4 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c0_4_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    if (beta == 0) { /* C is not read */
        c[0 + 0 * ldc] = dot0_0;
        c[0 + 1 * ldc] = dot0_1;
        c[0 + 2 * ldc] = dot0_2;
        c[0 + 3 * ldc] = dot0_3;
        c[0 + 4 * ldc] = dot0_4;
    } else {
        c[0 + 0 * ldc] = beta * c[0 + 0 * ldc] + dot0_0;
        c[0 + 1 * ldc] = beta * c[0 + 1 * ldc] + dot0_1;
        c[0 + 2 * ldc] = beta * c[0 + 2 * ldc] + dot0_2;
        c[0 + 3 * ldc] = beta * c[0 + 3 * ldc] + dot0_3;
        c[0 + 4 * ldc] = beta * c[0 + 4 * ldc] + dot0_4;
    }
}

static inline __attribute__((always_inline)) void
rvv_f64_direct_0dc0_dot_1x6(size_t m, size_t k, const double *restrict a, size_t lda,
                            const double *restrict b, size_t rsb, size_t csb, double alpha, double beta,
                            double *restrict c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e64m2();
    const size_t full = lanes;
    (void)m, (void)full, (void)lanes, (void)rsb;
    vfloat64m2_t c0_0_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c0_1_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c0_2_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c0_3_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c0_4_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c0_5_0 = __riscv_vfmv_v_f_f64m2(0, full);
    size_t p = 0;
    for (; p + lanes <= k; p += lanes) {
        const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + 0 * lda + p, full);
        const vfloat64m2_t b0 = __riscv_vle64_v_f64m2(b + 0 * csb + p, full);
        const vfloat64m2_t b1 = __riscv_vle64_v_f64m2(b + 1 * csb + p, full);
        const vfloat64m2_t b2 = __riscv_vle64_v_f64m2(b + 2 * csb + p, full);
        const vfloat64m2_t b3 = __riscv_vle64_v_f64m2(b + 3 * csb + p, full);
        const vfloat64m2_t b4 = __riscv_vle64_v_f64m2(b + 4 * csb + p, full);
        const vfloat64m2_t b5 = __riscv_vle64_v_f64m2(b + 5 * csb + p, full);
        c0_0_0 = __riscv_vfmacc_vv_f64m2(c0_0_0, a0, b0, full);
        c0_1_0 = __riscv_vfmacc_vv_f64m2(c0_1_0, a0, b1, full);
        c0_2_0 = __riscv_vfmacc_vv_f64m2(c0_2_0, a0, b2, full);
        c0_3_0 = __riscv_vfmacc_vv_f64m2(c0_3_0, a0, b3, full);
        c0_4_0 = __riscv_vfmacc_vv_f64m2(c0_4_0, a0, b4, full);
        c0_5_0 = __riscv_vfmacc_vv_f64m2(c0_5_0, a0, b5, full);
    }
    if (p < k) {
        const size_t tail = ((size_t)(k - p));
        const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + 0 * lda + p, tail);
        const vfloat64m2_t b0 = __riscv_vle64_v_f64m2(b + 0 * csb + p, tail);
        const vfloat64m2_t b1 = __riscv_vle64_v_f64m2(b + 1 * csb + p, tail);
        const vfloat64m2_t b2 = __riscv_vle64_v_f64m2(b + 2 * csb + p, tail);
        const vfloat64m2_t b3 = __riscv_vle64_v_f64m2(b + 3 * csb + p, tail);
        const vfloat64m2_t b4 = __riscv_vle64_v_f64m2(b + 4 * csb + p, tail);
        const vfloat64m2_t b5 = __riscv_vle64_v_f64m2(b + 5 * csb + p, tail);
        c0_0_0 = __riscv_vfmacc_vv_f64m2_tu(c0_0_0, a0, b0, tail);
        c0_1_0 = __riscv_vfmacc_vv_f64m2_tu(c0_1_0, a0, b1, tail);
        c0_2_0 = __riscv_vfmacc_vv_f64m2_tu(c0_2_0, a0, b2, tail);
        c0_3_0 = __riscv_vfmacc_vv_f64m2_tu(c0_3_0, a0, b3, tail);
        c0_4_0 = __riscv_vfmacc_vv_f64m2_tu(c0_4_0, a0, b4, tail);
        c0_5_0 = __riscv_vfmacc_vv_f64m2_tu(c0_5_0, a0, b5, tail);
    }
    const double dot0_0 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c0_0_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    const double dot0_1 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c0_1_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    const double dot0_2 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c0_2_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    const double dot0_3 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c0_3_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    const double dot0_4 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c0_4_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    const double dot0_5 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c0_5_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    if (beta == 0) { /* C is not read */
        c[0 + 0 * ldc] = dot0_0;
        c[0 + 1 * ldc] = dot0_1;
        c[0 + 2 * ldc] = dot0_2;
        c[0 + 3 * ldc] = dot0_3;
        c[0 + 4 * ldc] = dot0_4;
        c[0 + 5 * ldc] = dot0_5;
    } else {
        c[0 + 0 * ldc] = beta * c[0 + 0 * ldc] + dot0_0;
        c[0 + 1 * ldc] = beta * c[0 + 1 * ldc] + dot0_1;
        c[0 + 2 * ldc] = beta * c[0 + 2 * ldc] + dot0_2;
        c[0 + 3 * ldc] = beta * c[0 + 3 * ldc] + dot0_3;
        c[0 + 4 * ldc] = beta * c[0 + 4 * ldc] + dot0_4;
        c[0 + 5 * ldc] = beta * c[0 + 5 * ldc] + dot0_5;
    }
}

static inline __attribute__((always_inline)) void
rvv_f64_direct_0dc0_dot_1x7(size_t m, size_t k, const double *restrict a, size_t lda,
                            const double *restrict b, size_t rsb, size_t csb, double alpha, double beta,
                            double *restrict c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e64m2();
    const size_t full = lanes;
    (void)m, (void)full, (void)lanes, (void)rsb;
    vfloat64m2_t c0_0_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c0_1_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c0_2_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c0_3_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c0_4_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c0_5_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c0_6_0 = __riscv_vfmv_v_f_f64m2(0, full);
    size_t p = 0;
    for (; p + lanes <= k; p += lanes) {
        const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + 0 * lda + p, full);
        const vfloat64m2_t b0 = __riscv_vle64_v_f64m2(b + 0 * csb + p, full);
        const vfloat64m2_t b1 = __riscv_vle64_v_f64m2(b + 1 * csb + p, full);
        const vfloat64m2_t b2 = __riscv_vle64_v_f64m2(b + 2 * csb + p, full);
        const vfloat64m2_t b3 = __riscv_vle64_v_f64m2(b + 3 * csb + p, full);
        const vfloat64m2_t b4 = __riscv_vle64_v_f64m2(b + 4 * csb + p, full);
        const vfloat64m2_t b5 = __riscv_vle64_v_f64m2(b + 5 * csb + p, full);
        const vfloat64m2_t b6 = __riscv_vle64_v_f64m2(b + 6 * csb + p, full);
        c0_0_0 = __riscv_vfmacc_vv_f64m2(c0_0_0, a0, b0, full);
        c0_1_0 = __riscv_vfmacc_vv_f64m2(c0_1_0, a0, b1, full);
        c0_2_0 = __riscv_vfmacc_vv_f64m2(c0_2_0, a0, b2, full);
        c0_3_0 = __riscv_vfmacc_vv_f64m2(c0_3_0, a0, b3, full);
        c0_4_0 = __riscv_vfmacc_vv_f64m2(c0_4_0, a0, b4, full);
        c0_5_0 = __riscv_vfmacc_vv_f64m2(c0_5_0, a0, b5, full);
        c0_6_0 = __riscv_vfmacc_vv_f64m2(c0_6_0, a0, b6, full);
    }
    if (p < k) {
        const size_t tail = ((size_t)(k - p));
        const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + 0 * lda + p, tail);
        const vfloat64m2_t b0 = __riscv_vle64_v_f64m2(b + 0 * csb + p, tail);
        const vfloat64m2_t b1 = __riscv_vle64_v_f64m2(b + 1 * csb + p, tail);
        const vfloat64m2_t b2 = __riscv_vle64_v_f64m2(b + 2 * csb + p, tail);
        const vfloat64m2_t b3 = __riscv_vle64_v_f64m2(b + 3 * csb + p, tail);
        const vfloat64m2_t b4 = __riscv_vle64_v_f64m2(b + 4 * csb + p, tail);
        const vfloat64m2_t b5 = __riscv_vle64_v_f64m2(b + 5 * csb + p, tail);
        const vfloat64m2_t b6 = __riscv_vle64_v_f64m2(b + 6 * csb + p, tail);
        c0_0_0 = __riscv_vfmacc_vv_f64m2_tu(c0_0_0, a0, b0, tail);
        c0_1_0 = __riscv_vfmacc_vv_f64m2_tu(c0_1_0, a0, b1, tail);
        c0_2_0 = __riscv_vfmacc_vv_f64m2_tu(c0_2_0, a0, b2, tail);
        c0_3_0 = __riscv_vfmacc_vv_f64m2_tu(c0_3_0, a0, b3, tail);
        c0_4_0 = __riscv_vfmacc_vv_f64m2_tu(c0_4_0, a0, b4, tail);
        c0_5_0 = __riscv_vfmacc_vv_f64m2_tu(c0_5_0, a0, b5, tail);
        c0_6_0 = __riscv_vfmacc_vv_f64m2_tu(c0_6_0, a0, b6, tail);
    }
    const double dot0_0 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c0_0_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    const double dot0_1 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c0_1_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    const double dot0_2 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c0_2_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    const double dot0_3 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c0_3_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    const double dot0_4 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c0_4_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    const double dot0_5 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c0_5_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    const double dot0_6 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c0_6_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    if (beta == 0) { /* C is not read */
        c[0 + 0 * ldc] = dot0_0;
        c[0 + 1 * ldc] = dot0_1;
        c[0 + 2 * ldc] = dot0_2;
        c[0 + 3 * ldc] = dot0_3;
        c[0 + 4 * ldc] = dot0_4;
        c[0 + 5 * ldc] = dot0_5;
        c[0 + 6 * ldc] = dot0_6;
    } else {
        c[0 + 0 * ldc] = beta * c[0 + 0 * ldc] + dot0_0;
        c[0 + 1 * ldc] = beta * c[0 + 1 * ldc] + dot0_1;
        c[0 + 2 * ldc] = beta * c[0 + 2 * ldc] + dot0_2;
        c[0 + 3 * ldc] = beta * c[0 + 3 * ldc] + dot0_3;
        c[0 + 4 * ldc] = beta * c[0 + 4 * ldc] + dot0_4;
        c[0 + 5 * ldc] = beta * c[0 + 5 * ldc] + dot0_5;
        c[0 + 6 * ldc] = beta * c[0 + 6 * ldc] + dot0_6;
    }
}

/* 1 row of A by n columns of B, both contiguous along k */
static void rvv_f64_direct_0dc0_dots_1(size_t m, size_t n, size_t k, double alpha, const double *a,
                                       size_t lda, const double *b, size_t rsb, size_t csb, double beta,
                                       double *c, size_t ldc) {
    for (; n >= 7; n -= 7) {
        rvv_f64_direct_0dc0_dot_1x7(m, k, a, lda, b, rsb, csb, alpha, beta, c, ldc);
        b += 7 * csb;
        c += 7 * ldc;
    }
    switch (n) {
    case 1:
        rvv_f64_direct_0dc0_dot_1x1(m, k, a, lda, b, rsb, csb, alpha, beta, c, ldc);
        break;
    case 2:
        rvv_f64_direct_0dc0_dot_1x2(m, k, a, lda, b, rsb, csb, alpha, beta, c, ldc);
        break;
    case 3:
        rvv_f64_direct_0dc0_dot_1x3(m, k, a, lda, b, rsb, csb, alpha, beta, c, ldc);
        break;
    case 4:
        rvv_f64_direct_0dc0_dot_1x4(m, k, a, lda, b, rsb, csb, alpha, beta, c, ldc);
        break;
    case 5:
        rvv_f64_direct_0dc0_dot_1x5(m, k, a, lda, b, rsb, csb, alpha, beta, c, ldc);
        break;
    case 6:
        rvv_f64_direct_0dc0_dot_1x6(m, k, a, lda, b, rsb, csb, alpha, beta, c, ldc);
        break;
    default:
        break;
    }
}
static inline __attribute__((always_inline)) void
rvv_f64_direct_0dc0_dot_2x1(size_t m, size_t k, const double *restrict a, size_t lda,
                            const double *restrict b, size_t rsb, size_t csb, double alpha, double beta,
                            double *restrict c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e64m2();
    const size_t full = lanes;
    (void)m, (void)full, (void)lanes, (void)rsb;
    vfloat64m2_t c0_0_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c1_0_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c0_0_1 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c1_0_1 = __riscv_vfmv_v_f_f64m2(0, full);
    size_t p = 0;
    for (; p + 2 * lanes <= k; p += 2 * lanes) {
        {
            const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + 0 * lda + p + 0 * lanes, full);
            const vfloat64m2_t a1 = __riscv_vle64_v_f64m2(a + 1 * lda + p + 0 * lanes, full);
            const vfloat64m2_t b0 = __riscv_vle64_v_f64m2(b + 0 * csb + p + 0 * lanes, full);
            c0_0_0 = __riscv_vfmacc_vv_f64m2(c0_0_0, a0, b0, full);
            c1_0_0 = __riscv_vfmacc_vv_f64m2(c1_0_0, a1, b0, full);
        }
        {
            const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + 0 * lda + p + 1 * lanes, full);
            const vfloat64m2_t a1 = __riscv_vle64_v_f64m2(a + 1 * lda + p + 1 * lanes, full);
            const vfloat64m2_t b0 = __riscv_vle64_v_f64m2(b + 0 * csb + p + 1 * lanes, full);
            c0_0_1 = __riscv_vfmacc_vv_f64m2(c0_0_1, a0, b0, full);
            c1_0_1 = __riscv_vfmacc_vv_f64m2(c1_0_1, a1, b0, full);
        }
    }
    for (; p + lanes <= k; p += lanes) {
        const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + 0 * lda + p, full);
        const vfloat64m2_t a1 = __riscv_vle64_v_f64m2(a + 1 * lda + p, full);
        const vfloat64m2_t b0 = __riscv_vle64_v_f64m2(b + 0 * csb + p, full);
        c0_0_0 = __riscv_vfmacc_vv_f64m2(c0_0_0, a0, b0, full);
        c1_0_0 = __riscv_vfmacc_vv_f64m2(c1_0_0, a1, b0, full);
    }
    if (p < k) {
        const size_t tail = ((size_t)(k - p));
        const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + 0 * lda + p, tail);
        const vfloat64m2_t a1 = __riscv_vle64_v_f64m2(a + 1 * lda + p, tail);
        const vfloat64m2_t b0 = __riscv_vle64_v_f64m2(b + 0 * csb + p, tail);
        c0_0_0 = __riscv_vfmacc_vv_f64m2_tu(c0_0_0, a0, b0, tail);
        c1_0_0 = __riscv_vfmacc_vv_f64m2_tu(c1_0_0, a1, b0, tail);
    }
    c0_0_0 = __riscv_vfadd_vv_f64m2(c0_0_0, c0_0_1, full);
    c1_0_0 = __riscv_vfadd_vv_f64m2(c1_0_0, c1_0_1, full);
    const double dot0_0 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c0_0_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    const double dot1_0 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c1_0_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    if (beta == 0) { /* C is not read */
        c[0 + 0 * ldc] = dot0_0;
        c[1 + 0 * ldc] = dot1_0;
    } else {
        c[0 + 0 * ldc] = beta * c[0 + 0 * ldc] + dot0_0;
        c[1 + 0 * ldc] = beta * c[1 + 0 * ldc] + dot1_0;
    }
}

static inline __attribute__((always_inline)) void
rvv_f64_direct_0dc0_dot_2x2(size_t m, size_t k, const double *restrict a, size_t lda,
                            const double *restrict b, size_t rsb, size_t csb, double alpha, double beta,
                            double *restrict c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e64m2();
    const size_t full = lanes;
    (void)m, (void)full, (void)lanes, (void)rsb;
    vfloat64m2_t c0_0_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c1_0_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c0_1_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c1_1_0 = __riscv_vfmv_v_f_f64m2(0, full);
    size_t p = 0;
    for (; p + lanes <= k; p += lanes) {
        const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + 0 * lda + p, full);
        const vfloat64m2_t a1 = __riscv_vle64_v_f64m2(a + 1 * lda + p, full);
        const vfloat64m2_t b0 = __riscv_vle64_v_f64m2(b + 0 * csb + p, full);
        const vfloat64m2_t b1 = __riscv_vle64_v_f64m2(b + 1 * csb + p, full);
        c0_0_0 = __riscv_vfmacc_vv_f64m2(c0_0_0, a0, b0, full);
        c1_0_0 = __riscv_vfmacc_vv_f64m2(c1_0_0, a1, b0, full);
        c0_1_0 = __riscv_vfmacc_vv_f64m2(c0_1_0, a0, b1, full);
        c1_1_0 = __riscv_vfmacc_vv_f64m2(c1_1_0, a1, b1, full);
    }
    if (p < k) {
        const size_t tail = ((size_t)(k - p));
        const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + 0 * lda + p, tail);
        const vfloat64m2_t a1 = __riscv_vle64_v_f64m2(a + 1 * lda + p, tail);
        const vfloat64m2_t b0 = __riscv_vle64_v_f64m2(b + 0 * csb + p, tail);
        const vfloat64m2_t b1 = __riscv_vle64_v_f64m2(b + 1 * csb + p, tail);
        c0_0_0 = __riscv_vfmacc_vv_f64m2_tu(c0_0_0, a0, b0, tail);
        c1_0_0 = __riscv_vfmacc_vv_f64m2_tu(c1_0_0, a1, b0, tail);
        c0_1_0 = __riscv_vfmacc_vv_f64m2_tu(c0_1_0, a0, b1, tail);
        c1_1_0 = __riscv_vfmacc_vv_f64m2_tu(c1_1_0, a1, b1, tail);
    }
    const double dot0_0 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c0_0_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    const double dot1_0 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c1_0_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    const double dot0_1 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c0_1_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    const double dot1_1 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c1_1_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    if (beta == 0) { /* C is not read */
        c[0 + 0 * ldc] = dot0_0;
        c[1 + 0 * ldc] = dot1_0;
        c[0 + 1 * ldc] = dot0_1;
        c[1 + 1 * ldc] = dot1_1;
    } else {
        c[0 + 0 * ldc] = beta * c[0 + 0 * ldc] + dot0_0;
        c[1 + 0 * ldc] = beta * c[1 + 0 * ldc] + dot1_0;
        c[0 + 1 * ldc] = beta * c[0 + 1 * ldc] + dot0_1;
        c[1 + 1 * ldc] = beta * c[1 + 1 * ldc] + dot1_1;
    }
}

static inline __attribute__((always_inline)) void
rvv_f64_direct_0dc0_dot_2x3(size_t m, size_t k, const double *restrict a, size_t lda,
                            const double *restrict b, size_t rsb, size_t csb, double alpha, double beta,
                            double *restrict c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e64m2();
    const size_t full = lanes;
    (void)m, (void)full, (void)lanes, (void)rsb;
    vfloat64m2_t c0_0_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c1_0_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c0_1_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c1_1_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c0_2_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c1_2_0 = __riscv_vfmv_v_f_f64m2(0, full);
    size_t p = 0;
    for (; p + lanes <= k; p += lanes) {
        const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + 0 * lda + p, full);
        const vfloat64m2_t a1 = __riscv_vle64_v_f64m2(a + 1 * lda + p, full);
        const vfloat64m2_t b0 = __riscv_vle64_v_f64m2(b + 0 * csb + p, full);
        const vfloat64m2_t b1 = __riscv_vle64_v_f64m2(b + 1 * csb + p, full);
        const vfloat64m2_t b2 = __riscv_vle64_v_f64m2(b + 2 * csb + p, full);
        c0_0_0 = __riscv_vfmacc_vv_f64m2(c0_0_0, a0, b0, full);
        c1_0_0 = __riscv_vfmacc_vv_f64m2(c1_0_0, a1, b0, full);
        c0_1_0 = __riscv_vfmacc_vv_f64m2(c0_1_0, a0, b1, full);
        c1_1_0 = __riscv_vfmacc_vv_f64m2(c1_1_0, a1, b1, full);
        c0_2_0 = __riscv_vfmacc_vv_f64m2(c0_2_0, a0, b2, full);
        c1_2_0 = __riscv_vfmacc_vv_f64m2(c1_2_0, a1, b2, full);
    }
    if (p < k) {
        const size_t tail = ((size_t)(k - p));
        const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + 0 * lda + p, tail);
        const vfloat64m2_t a1 = __riscv_vle64_v_f64m2(a + 1 * lda + p, tail);
        const vfloat64m2_t b0 = __riscv_vle64_v_f64m2(b + 0 * csb + p, tail);
        const vfloat64m2_t b1 = __riscv_vle64_v_f64m2(b + 1 * csb + p, tail);
        const vfloat64m2_t b2 = __riscv_vle64_v_f64m2(b + 2 * csb + p, tail);
        c0_0_0 = __riscv_vfmacc_vv_f64m2_tu(c0_0_0, a0, b0, tail);
        c1_0_0 = __riscv_vfmacc_vv_f64m2_tu(c1_0_0, a1, b0, tail);
        c0_1_0 = __riscv_vfmacc_vv_f64m2_tu(c0_1_0, a0, b1, tail);
        c1_1_0 = __riscv_vfmacc_vv_f64m2_tu(c1_1_0, a1, b1, tail);
        c0_2_0 = __riscv_vfmacc_vv_f64m2_tu(c0_2_0, a0, b2, tail);
        c1_2_0 = __riscv_vfmacc_vv_f64m2_tu(c1_2_0, a1, b2, tail);
    }
    const double dot0_0 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c0_0_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    const double dot1_0 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c1_0_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    const double dot0_1 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c0_1_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    const double dot1_1 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c1_1_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    const double dot0_2 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c0_2_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    const double dot1_2 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c1_2_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    if (beta == 0) { /* C is not read */
        c[0 + 0 * ldc] = dot0_0;
        c[1 + 0 * ldc] = dot1_0;
        c[0 + 1 * ldc] = dot0_1;
        c[1 + 1 * ldc] = dot1_1;
        c[0 + 2 * ldc] = dot0_2;
        c[1 + 2 * ldc] = dot1_2;
    } else {
        c[0 + 0 * ldc] = beta * c[0 + 0 * ldc] + dot0_0;
        c[1 + 0 * ldc] = beta * c[1 + 0 * ldc] + dot1_0;
        c[0 + 1 * ldc] = beta * c[0 + 1 * ldc] + dot0_1;
        c[1 + 1 * ldc] = beta * c[1 + 1 * ldc] + dot1_1;
        c[0 + 2 * ldc] = beta * c[0 + 2 * ldc] + dot0_2;
        c[1 + 2 * ldc] = beta * c[1 + 2 * ldc] + dot1_2;
    }
}

static inline __attribute__((always_inline)) void
rvv_f64_direct_0dc0_dot_2x4(size_t m, size_t k, const double *restrict a, size_t lda,
                            const double *restrict b, size_t rsb, size_t csb, double alpha, double beta,
                            double *restrict c, size_t ldc) {
    const size_t lanes = __riscv_vsetvlmax_e64m2();
    const size_t full = lanes;
    (void)m, (void)full, (void)lanes, (void)rsb;
    vfloat64m2_t c0_0_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c1_0_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c0_1_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c1_1_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c0_2_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c1_2_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c0_3_0 = __riscv_vfmv_v_f_f64m2(0, full);
    vfloat64m2_t c1_3_0 = __riscv_vfmv_v_f_f64m2(0, full);
    size_t p = 0;
    for (; p + lanes <= k; p += lanes) {
        const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + 0 * lda + p, full);
        const vfloat64m2_t a1 = __riscv_vle64_v_f64m2(a + 1 * lda + p, full);
        const vfloat64m2_t b0 = __riscv_vle64_v_f64m2(b + 0 * csb + p, full);
        const vfloat64m2_t b1 = __riscv_vle64_v_f64m2(b + 1 * csb + p, full);
        const vfloat64m2_t b2 = __riscv_vle64_v_f64m2(b + 2 * csb + p, full);
        const vfloat64m2_t b3 = __riscv_vle64_v_f64m2(b + 3 * csb + p, full);
        c0_0_0 = __riscv_vfmacc_vv_f64m2(c0_0_0, a0, b0, full);
        c1_0_0 = __riscv_vfmacc_vv_f64m2(c1_0_0, a1, b0, full);
        c0_1_0 = __riscv_vfmacc_vv_f64m2(c0_1_0, a0, b1, full);
        c1_1_0 = __riscv_vfmacc_vv_f64m2(c1_1_0, a1, b1, full);
        c0_2_0 = __riscv_vfmacc_vv_f64m2(c0_2_0, a0, b2, full);
        c1_2_0 = __riscv_vfmacc_vv_f64m2(c1_2_0, a1, b2, full);
        c0_3_0 = __riscv_vfmacc_vv_f64m2(c0_3_0, a0, b3, full);
        c1_3_0 = __riscv_vfmacc_vv_f64m2(c1_3_0, a1, b3, full);
    }
    if (p < k) {
        const size_t tail = ((size_t)(k - p));
        const vfloat64m2_t a0 = __riscv_vle64_v_f64m2(a + 0 * lda + p, tail);
        const vfloat64m2_t a1 = __riscv_vle64_v_f64m2(a + 1 * lda + p, tail);
        const vfloat64m2_t b0 = __riscv_vle64_v_f64m2(b + 0 * csb + p, tail);
        const vfloat64m2_t b1 = __riscv_vle64_v_f64m2(b + 1 * csb + p, tail);
        const vfloat64m2_t b2 = __riscv_vle64_v_f64m2(b + 2 * csb + p, tail);
        const vfloat64m2_t b3 = __riscv_vle64_v_f64m2(b + 3 * csb + p, tail);
        c0_0_0 = __riscv_vfmacc_vv_f64m2_tu(c0_0_0, a0, b0, tail);
        c1_0_0 = __riscv_vfmacc_vv_f64m2_tu(c1_0_0, a1, b0, tail);
        c0_1_0 = __riscv_vfmacc_vv_f64m2_tu(c0_1_0, a0, b1, tail);
        c1_1_0 = __riscv_vfmacc_vv_f64m2_tu(c1_1_0, a1, b1, tail);
        c0_2_0 = __riscv_vfmacc_vv_f64m2_tu(c0_2_0, a0, b2, tail);
        c1_2_0 = __riscv_vfmacc_vv_f64m2_tu(c1_2_0, a1, b2, tail);
        c0_3_0 = __riscv_vfmacc_vv_f64m2_tu(c0_3_0, a0, b3, tail);
        c1_3_0 = __riscv_vfmacc_vv_f64m2_tu(c1_3_0, a1, b3, tail);
    }
    const double dot0_0 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c0_0_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    const double dot1_0 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c1_0_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    const double dot0_1 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c0_1_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    const double dot1_1 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c1_1_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    const double dot0_2 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c0_2_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    const double dot1_2 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c1_2_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    const double dot0_3 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c0_3_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    const double dot1_3 = alpha * __riscv_vfmv_f_s_f64m1_f64(__riscv_vfredusum_vs_f64m2_f64m1(
                                      c1_3_0, __riscv_vfmv_v_f_f64m1(0, 1), lanes));
    if (beta == 0) { /* C is not read */
        c[0 + 0 * ldc] = dot0_0;
        c[1 + 0 * ldc] = dot1_0;
        c[0 + 1 * ldc] = dot0_1;
        c[1 + 1 * ldc] = dot1_1;
        c[0 + 2 * ldc] = dot0_2;
        c[1 + 2 * ldc] = dot1_2;
        c[0 + 3 * ldc] = dot0_3;
        c[1 + 3 * ldc] = dot1_3;
    } else {
        c[0 + 0 * ldc] = beta * c[0 + 0 * ldc] + dot0_0;
        c[1 + 0 * ldc] = beta * c[1 + 0 * ldc] + dot1_0;
        c[0 + 1 * ldc] = beta * c[0 + 1 * ldc] + dot0_1;
        c[1 + 1 * ldc] = beta * c[1 + 1 * ldc] + dot1_1;
        c[0 + 2 * ldc] = beta * c[0 + 2 * ldc] + dot0_2;
        c[1 + 2 * ldc] = beta * c[1 + 2 * ldc] + dot1_2;
        c[0 + 3 * ldc] = beta * c[0 + 3 * ldc] + dot0_3;
        c[1 + 3 * ldc] = beta * c[1 + 3 * ldc] + dot1_3;
    }
}

/* 2 rows of A by n columns of B, both contiguous along k */
static void rvv_f64_direct_0dc0_dots_2(size_t m, size_t n, size_t k, double alpha, const double *a,
                                       size_t lda, const double *b, size_t rsb, size_t csb, double beta,
                                       double *c, size_t ldc) {
    for (; n >= 4; n -= 4) {
        rvv_f64_direct_0dc0_dot_2x4(m, k, a, lda, b, rsb, csb, alpha, beta, c, ldc);
        b += 4 * csb;
        c += 4 * ldc;
    }
    switch (n) {
    case 1:
        rvv_f64_direct_0dc0_dot_2x1(m, k, a, lda, b, rsb, csb, alpha, beta, c, ldc);
        break;
    case 2:
        rvv_f64_direct_0dc0_dot_2x2(m, k, a, lda, b, rsb, csb, alpha, beta, c, ldc);
        break;
    case 3:
        rvv_f64_direct_0dc0_dot_2x3(m, k, a, lda, b, rsb, csb, alpha, beta, c, ldc);
        break;
    default:
        break;
    }
}

static __attribute__((noinline)) void rvv_f64_direct_0dc0_along_k(size_t m, size_t n, size_t k, double alpha,
                                                                  const double *a, size_t lda,
                                                                  const double *b, size_t rsb, size_t csb,
                                                                  double beta, double *c, size_t ldc) {
    if (n == 1) { /* one column, computed as a row */
        rvv_f64_direct_0dc0_dots_1(1, m, k, alpha, b, k, a, 1, lda, beta, c, 1);
        return;
    }
    for (; m >= 2; m -= 2) {
        rvv_f64_direct_0dc0_dots_2(2, n, k, alpha, a, lda, b, rsb, csb, beta, c, ldc);
        a += 2 * lda;
        c += 2;
    }
    if (m)
        rvv_f64_direct_0dc0_dots_1(1, n, k, alpha, a, lda, b, rsb, csb, beta, c, ldc);
}

/* Few rows, B's rows contiguous: the columns of the transposed product are computed on the stack, piece by
 * piece. */
static __attribute__((noinline)) void rvv_f64_direct_0dc0_across(size_t m, size_t n, size_t k, double alpha,
                                                                 const double *a, size_t rsa, size_t csa,
                                                                 const double *b, size_t rsb, double beta,
                                                                 double *c, size_t ldc) {
    _Alignas(64) double tile[768];
    const size_t lanes = __riscv_vsetvlmax_e64m2(), most = 768 / m / lanes * lanes;
    for (size_t j = 0; j < n; j += most) {
        const size_t width = n - j < most ? n - j : most;
        double *part = c + j * ldc;
        if (beta != 0)
            for (size_t q = 0; q < width; ++q)
                for (size_t i = 0; i < m; ++i)
                    tile[q + i * width] = part[i + q * ldc];
        rvv_f64_direct_0dc0_by_columns(width, m, k, alpha, b + j, rsb, a, csa, rsa, beta, tile, width);
        rvv_f64_direct_0dc0_turn_some(tile, width, part, ldc, m, width);
    }
}

/* C = beta * C; at beta = 0 C is not read. */
static __attribute__((noinline)) void rvv_f64_direct_0dc0_scale(size_t m, size_t n, double beta, double *c,
                                                                size_t ldc) {
    for (size_t j = 0; j < n; ++j)
        for (size_t i = 0; i < m; ++i)
            c[i + j * ldc] = beta == 0 ? 0 : beta * c[i + j * ldc];
}

/* One column of C from one column of A and a scalar: C = scale * A + beta * C. */
static __attribute__((noinline)) void rvv_f64_direct_0dc0_scaled(size_t m, double scale, const double *a,
                                                                 double beta, double *c) {
    const size_t lanes = __riscv_vsetvlmax_e64m2();
    const size_t full = lanes;
    size_t i = 0;
    (void)full;
    if (beta == 0) { /* C is not read */
        for (; i + lanes <= m; i += lanes)
            __riscv_vse64_v_f64m2(
                c + i, __riscv_vfmul_vf_f64m2(__riscv_vle64_v_f64m2(a + i, full), scale, full), full);
        if (i < m) {
            const size_t tail = ((size_t)(m - i));
            __riscv_vse64_v_f64m2(
                c + i, __riscv_vfmul_vf_f64m2(__riscv_vle64_v_f64m2(a + i, tail), scale, tail), tail);
        }
        return;
    }
    for (; i + lanes <= m; i += lanes)
        __riscv_vse64_v_f64m2(
            c + i,
            __riscv_vfmacc_vf_f64m2(__riscv_vfmul_vf_f64m2(__riscv_vle64_v_f64m2(a + i, full), scale, full),
                                    beta, __riscv_vle64_v_f64m2(c + i, full), full),
            full);
    if (i < m) {
        const size_t tail = ((size_t)(m - i));
        __riscv_vse64_v_f64m2(
            c + i,
            __riscv_vfmacc_vf_f64m2(__riscv_vfmul_vf_f64m2(__riscv_vle64_v_f64m2(a + i, tail), scale, tail),
                                    beta, __riscv_vle64_v_f64m2(c + i, tail), tail),
            tail);
    }
}

/* C = alpha * A * B + beta * C. A is m x k, B is k x n; each has two strides, one of which is 1. C is
 * column-major. */
static inline __attribute__((always_inline)) void
rvv_f64_direct_0dc0_run(size_t m, size_t n, size_t k, double alpha, const double *a, size_t rsa, size_t csa,
                        const double *b, size_t rsb, size_t csb, double beta, double *c, size_t ldc) {
    if (k == 0 || alpha == 0)
        rvv_f64_direct_0dc0_scale(m, n, beta, c, ldc);
    else
        switch (rvv_f64_direct_0dc0_way(__riscv_vsetvlmax_e64m2(), m, n, k, rsa, csa, rsb, ldc)) {
        case rvv_f64_direct_0dc0_SCALED:
            rvv_f64_direct_0dc0_scaled(m, alpha * *b, a, beta, c);
            break;
        case rvv_f64_direct_0dc0_AS_COLUMN:
            rvv_f64_direct_0dc0_turned(n, 1, k, alpha, b, csb, a, csa, 1, beta, c, n);
            break;
        case rvv_f64_direct_0dc0_ALONG_K:
            rvv_f64_direct_0dc0_along_k(m, n, k, alpha, a, rsa, b, rsb, csb, beta, c, ldc);
            break;
        case rvv_f64_direct_0dc0_ACROSS:
            rvv_f64_direct_0dc0_across(m, n, k, alpha, a, rsa, csa, b, rsb, beta, c, ldc);
            break;
        case rvv_f64_direct_0dc0_BY_COLUMNS:
            rvv_f64_direct_0dc0_by_columns(m, n, k, alpha, a, csa, b, rsb, csb, beta, c, ldc);
            break;
        default:
            rvv_f64_direct_0dc0_turned(m, n, k, alpha, a, rsa, b, rsb, csb, beta, c, ldc);
        }
}

/* the caller provides the workspace: a candidate allocates nothing */
void tensorop_candidate_0(const struct tensorop_call *call) {
    size_t m = (size_t)call->dim[DIM_m], n = (size_t)call->dim[DIM_n], k = (size_t)call->dim[DIM_k];
    const double *a = call->buffer[BUFFER_A], *b = call->buffer[BUFFER_B];
    size_t lda = (size_t)call->ld[LD_A], ldb = (size_t)call->ld[LD_B], ldc = (size_t)call->ld[LD_C];
    int row_major = call->flag[FLAG_layout] == LAYOUT_row, ta = (int)call->flag[FLAG_ta],
        tb = (int)call->flag[FLAG_tb];
    if (row_major) { /* C^T = op(B)^T op(A)^T, and a row-major matrix is its column-major transpose */
        const double *x = a;
        size_t t = m, ld = lda;
        int trans = ta;
        a = b, b = x;
        m = n, n = t;
        lda = ldb, ldb = ld;
        ta = tb, tb = trans;
    }
    size_t rsa = ta ? lda : 1, csa = ta ? 1 : lda, rsb = tb ? ldb : 1, csb = tb ? 1 : ldb;
    if (m == 1 && ldc == 1 && csb == 1) { /* one row, computed as a column, so that vectors run along it */
        const double *left = b;
        const size_t across = rsa, along = csa;
        b = a, a = left;
        m = n, n = 1;
        rsa = 1, csa = rsb, rsb = along, csb = across;
    }
    rvv_f64_direct_0dc0_run(m, n, k, (double)call->scalar[SCALAR_alpha], a, rsa, csa, b, rsb, csb,
                            (double)call->scalar[SCALAR_beta], call->buffer[BUFFER_C], ldc);
}

#ifdef TENSOROP_TILES /* a tile alone, with the coefficients and strides of the call; it would change how    \
                         others are inlined */
void tensorop_candidate_2(const struct tensorop_call *call) {
    const size_t m = (size_t)call->dim[DIM_m], n = (size_t)call->dim[DIM_n], k = (size_t)call->dim[DIM_k];
    const size_t lda = (size_t)call->ld[LD_A], ldb = (size_t)call->ld[LD_B];
    const size_t rsb = call->flag[FLAG_tb] ? ldb : 1, csb = call->flag[FLAG_tb] ? 1 : ldb;
    const double alpha = (double)call->scalar[SCALAR_alpha], beta = (double)call->scalar[SCALAR_beta];
    (!call->flag[FLAG_ta] ? rvv_f64_direct_0dc0_down
     : m == 1             ? rvv_f64_direct_0dc0_dots_1
                          : rvv_f64_direct_0dc0_dots_2)(m, n, k, alpha, call->buffer[BUFFER_A], lda,
                                            call->buffer[BUFFER_B], rsb, csb, beta, call->buffer[BUFFER_C],
                                            (size_t)call->ld[LD_C]);
}
#endif
