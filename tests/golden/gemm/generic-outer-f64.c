/* scalar_f64_outer_ab5e: micro-kernel 'outer' at ahead=1 c_ahead=0 fetch=6 ku=2 late=0 lead=2 mr_vectors=1
 * nr=2 (generic, f64) rank-1 updates of an mr_vectors x nr register tile: vectors along m, one scalar of B
 * per column; to hide latency, A is loaded `ahead` k steps and B `lead` columns before their use; A's loads
 * begin after `late` columns, when the last readers of their registers are done; A is prefetched into L1
 * `fetch` k steps before its loads; with `c_ahead`, columns of C are prefetched while the tile is computed */
static inline __attribute__((always_inline)) void
scalar_f64_outer_ab5e_tile_1x1_tail(size_t m, size_t k, const double *restrict a, size_t lda,
                                    const double *restrict b, size_t rsb, size_t csb, double alpha,
                                    double beta, double *restrict c, size_t ldc) {
    const size_t lanes = 1;
    const int64_t full = 1;
    const int64_t tail = ((int64_t)(m - 0 * lanes));
    (void)m, (void)full, (void)lanes, (void)rsb;
    double c0_0 = 0;
    double a0_0 = ((tail) ? *(a + 0 * lda + 0 * lanes) : 0);
    double a1_0;
    double b0;
    for (; k > 2; k -= 2) {
        a1_0 = ((tail) ? *(a + 1 * lda + 0 * lanes) : 0);
        __builtin_prefetch(a + 7 * lda + 0 * lanes);

        (void)(b);
        b0 = b[0 * rsb + 0 * csb];
        if (rsb == 1) { /* each column is a separate stream */
            __builtin_prefetch(b + 0 * rsb + 0 * csb + 40);
        }
        c0_0 = ((c0_0) + (a0_0) * (b0));
        a0_0 = ((tail) ? *(a + 2 * lda + 0 * lanes) : 0);
        __builtin_prefetch(a + 8 * lda + 0 * lanes);

        (void)(b);
        b0 = b[1 * rsb + 0 * csb];
        c0_0 = ((c0_0) + (a1_0) * (b0));
        a += 2 * lda;
        b += 2 * rsb;
    }
    b0 = b[0 * rsb + 0 * csb];
    c0_0 = ((c0_0) + (a0_0) * (b0));
    a += lda;
    b += rsb;
    --k;
    for (; k; --k) {
        const double a0 = ((tail) ? *(a + 0 * lda + 0 * lanes) : 0);
        const double b0 = b[0 * rsb + 0 * csb];
        c0_0 = ((c0_0) + (a0) * (b0));
        a += lda;
        b += rsb;
    }
    /* C = alpha * tile + beta * C; at beta = 0 C is not read */
    if (beta == 0) {
        do {
            if (tail)
                *(c + 0 * ldc + 0 * lanes) = (((c0_0) * (alpha)));
        } while (0);
    } else if (beta == 1) {
        double old0_0 = ((tail) ? *(c + 0 * ldc + 0 * lanes) : 0);
        do {
            if (tail)
                *(c + 0 * ldc + 0 * lanes) = (((old0_0) + (c0_0) * (alpha)));
        } while (0);

    } else {
        double old0_0 = ((tail) ? *(c + 0 * ldc + 0 * lanes) : 0);
        do {
            if (tail)
                *(c + 0 * ldc + 0 * lanes) = (((((c0_0) * (alpha))) + (old0_0) * (beta)));
        } while (0);
    }
}

static inline __attribute__((always_inline)) void
scalar_f64_outer_ab5e_tile_1x2_tail(size_t m, size_t k, const double *restrict a, size_t lda,
                                    const double *restrict b, size_t rsb, size_t csb, double alpha,
                                    double beta, double *restrict c, size_t ldc) {
    const size_t lanes = 1;
    const int64_t full = 1;
    const int64_t tail = ((int64_t)(m - 0 * lanes));
    (void)m, (void)full, (void)lanes, (void)rsb;
    double c0_0 = 0;
    double c0_1 = 0;
    double a0_0 = ((tail) ? *(a + 0 * lda + 0 * lanes) : 0);
    double a1_0;
    double b0 = b[0 * rsb + 0 * csb];
    double b1;
    for (; k > 2; k -= 2) {
        a1_0 = ((tail) ? *(a + 1 * lda + 0 * lanes) : 0);
        __builtin_prefetch(a + 7 * lda + 0 * lanes);

        (void)(b);
        b1 = b[0 * rsb + 1 * csb];
        if (rsb == 1) { /* each column is a separate stream */
            __builtin_prefetch(b + 0 * rsb + 0 * csb + 40);
        }
        c0_0 = ((c0_0) + (a0_0) * (b0));
        (void)(b);
        b0 = b[1 * rsb + 0 * csb];
        c0_1 = ((c0_1) + (a0_0) * (b1));
        a0_0 = ((tail) ? *(a + 2 * lda + 0 * lanes) : 0);
        __builtin_prefetch(a + 8 * lda + 0 * lanes);

        (void)(b);
        b1 = b[1 * rsb + 1 * csb];
        c0_0 = ((c0_0) + (a1_0) * (b0));
        (void)(b);
        b += 2 * rsb;
        b0 = b[0 * rsb + 0 * csb];
        if (rsb == 1) { /* each column is a separate stream */
            __builtin_prefetch(b + 0 * rsb + 1 * csb + 40);
        }
        c0_1 = ((c0_1) + (a1_0) * (b1));
        a += 2 * lda;
    }
    b1 = b[0 * rsb + 1 * csb];
    c0_0 = ((c0_0) + (a0_0) * (b0));
    c0_1 = ((c0_1) + (a0_0) * (b1));
    a += lda;
    b += rsb;
    --k;
    for (; k; --k) {
        const double a0 = ((tail) ? *(a + 0 * lda + 0 * lanes) : 0);
        const double b0 = b[0 * rsb + 0 * csb];
        c0_0 = ((c0_0) + (a0) * (b0));
        const double b1 = b[0 * rsb + 1 * csb];
        c0_1 = ((c0_1) + (a0) * (b1));
        a += lda;
        b += rsb;
    }
    /* C = alpha * tile + beta * C; at beta = 0 C is not read */
    if (beta == 0) {
        do {
            if (tail)
                *(c + 0 * ldc + 0 * lanes) = (((c0_0) * (alpha)));
        } while (0);
        do {
            if (tail)
                *(c + 1 * ldc + 0 * lanes) = (((c0_1) * (alpha)));
        } while (0);
    } else if (beta == 1) {
        double old0_0 = ((tail) ? *(c + 0 * ldc + 0 * lanes) : 0);
        double old1_0 = ((tail) ? *(c + 1 * ldc + 0 * lanes) : 0);
        do {
            if (tail)
                *(c + 0 * ldc + 0 * lanes) = (((old0_0) + (c0_0) * (alpha)));
        } while (0);
        do {
            if (tail)
                *(c + 1 * ldc + 0 * lanes) = (((old1_0) + (c0_1) * (alpha)));
        } while (0);

    } else {
        double old0_0 = ((tail) ? *(c + 0 * ldc + 0 * lanes) : 0);
        double old1_0 = ((tail) ? *(c + 1 * ldc + 0 * lanes) : 0);
        do {
            if (tail)
                *(c + 0 * ldc + 0 * lanes) = (((((c0_0) * (alpha))) + (old0_0) * (beta)));
        } while (0);
        do {
            if (tail)
                *(c + 1 * ldc + 0 * lanes) = (((((c0_1) * (alpha))) + (old1_0) * (beta)));
        } while (0);
    }
}

static inline __attribute__((always_inline)) void
scalar_f64_outer_ab5e_tile_1x2(size_t m, size_t k, const double *restrict a, size_t lda,
                               const double *restrict b, size_t rsb, size_t csb, double alpha, double beta,
                               double *restrict c, size_t ldc) {
    const size_t lanes = 1;
    const int64_t full = 1;
    (void)m, (void)full, (void)lanes, (void)rsb;
    double c0_0 = 0;
    double c0_1 = 0;
    double a0_0 = *(a + 0 * lda + 0 * lanes);
    double a1_0;
    double b0 = b[0 * rsb + 0 * csb];
    double b1;
    for (; k > 2; k -= 2) {
        a1_0 = *(a + 1 * lda + 0 * lanes);
        __builtin_prefetch(a + 7 * lda + 0 * lanes);

        (void)(b);
        b1 = b[0 * rsb + 1 * csb];
        if (rsb == 1) { /* each column is a separate stream */
            __builtin_prefetch(b + 0 * rsb + 0 * csb + 40);
        }
        c0_0 = ((c0_0) + (a0_0) * (b0));
        (void)(b);
        b0 = b[1 * rsb + 0 * csb];
        c0_1 = ((c0_1) + (a0_0) * (b1));
        a0_0 = *(a + 2 * lda + 0 * lanes);
        __builtin_prefetch(a + 8 * lda + 0 * lanes);

        (void)(b);
        b1 = b[1 * rsb + 1 * csb];
        c0_0 = ((c0_0) + (a1_0) * (b0));
        (void)(b);
        b += 2 * rsb;
        b0 = b[0 * rsb + 0 * csb];
        if (rsb == 1) { /* each column is a separate stream */
            __builtin_prefetch(b + 0 * rsb + 1 * csb + 40);
        }
        c0_1 = ((c0_1) + (a1_0) * (b1));
        a += 2 * lda;
    }
    b1 = b[0 * rsb + 1 * csb];
    c0_0 = ((c0_0) + (a0_0) * (b0));
    c0_1 = ((c0_1) + (a0_0) * (b1));
    a += lda;
    b += rsb;
    --k;
    for (; k; --k) {
        const double a0 = *(a + 0 * lda + 0 * lanes);
        const double b0 = b[0 * rsb + 0 * csb];
        c0_0 = ((c0_0) + (a0) * (b0));
        const double b1 = b[0 * rsb + 1 * csb];
        c0_1 = ((c0_1) + (a0) * (b1));
        a += lda;
        b += rsb;
    }
    /* C = alpha * tile + beta * C; at beta = 0 C is not read */
    if (beta == 0) {
        *(c + 0 * ldc + 0 * lanes) = (((c0_0) * (alpha)));
        *(c + 1 * ldc + 0 * lanes) = (((c0_1) * (alpha)));
    } else if (beta == 1) {
        double old0_0 = *(c + 0 * ldc + 0 * lanes);
        double old1_0 = *(c + 1 * ldc + 0 * lanes);
        *(c + 0 * ldc + 0 * lanes) = (((old0_0) + (c0_0) * (alpha)));
        *(c + 1 * ldc + 0 * lanes) = (((old1_0) + (c0_1) * (alpha)));

    } else {
        double old0_0 = *(c + 0 * ldc + 0 * lanes);
        double old1_0 = *(c + 1 * ldc + 0 * lanes);
        *(c + 0 * ldc + 0 * lanes) = (((((c0_0) * (alpha))) + (old0_0) * (beta)));
        *(c + 1 * ldc + 0 * lanes) = (((((c0_1) * (alpha))) + (old1_0) * (beta)));
    }
}

#define scalar_f64_outer_ab5e_ARGS                                                                           \
    size_t m, size_t k, const double *a, size_t lda, const double *b, size_t sb, double alpha, double beta,  \
        double *c, size_t ldc

static void scalar_f64_outer_ab5e_packed_1x1(scalar_f64_outer_ab5e_ARGS) {
    (void)sb, (void)lda;
    scalar_f64_outer_ab5e_tile_1x1_tail(m, k, a, lda, b, 1, 1, alpha, beta, c, ldc);
}
static void scalar_f64_outer_ab5e_packed_1x2(scalar_f64_outer_ab5e_ARGS) {
    (void)sb, (void)lda;
    if (m == 1 * (1)) {
        scalar_f64_outer_ab5e_tile_1x2(m, k, a, lda, b, 2, 1, alpha, beta, c, ldc);
        return;
    }
    scalar_f64_outer_ab5e_tile_1x2_tail(m, k, a, lda, b, 2, 1, alpha, beta, c, ldc);
}

static void (*const scalar_f64_outer_ab5e_packed[2][1])(scalar_f64_outer_ab5e_ARGS) = {
    {scalar_f64_outer_ab5e_packed_1x1},
    {scalar_f64_outer_ab5e_packed_1x2},
};
