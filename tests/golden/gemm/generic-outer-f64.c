/* k0: micro-kernel 'outer' at ahead=1 fetch=6 kc=256 ku=2 late=0 lead=2 mc=128 mv=1 nc=512 nr=2 pack_a=1
 * pack_b=1 (generic, f64) rank-1 updates of an mv x nr register tile: vectors along m, one scalar of B a
 * column; A is loaded `ahead` k steps and B `lead` columns before their use, so that neither load's latency
 * stands in the FMAs' way; A's loads begin after `late` columns, when the last readers of the registers they
 * overwrite are done; `fetch` k steps before that they are prefetched into L1 */
static inline __attribute__((always_inline)) void
k0_tile_1x1_tail(size_t m, size_t k, const double *restrict a, size_t lda, const double *restrict b,
                 size_t rsb, size_t csb, double alpha, double beta, double *restrict c, size_t ldc) {
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

        b0 = b[0 * rsb + 0 * csb];
        if (rsb == 1) { /* each column is a stream of its own */
            __builtin_prefetch(b + 0 * rsb + 0 * csb + 40);
        }
        c0_0 = ((c0_0) + (a0_0) * (b0));
        a0_0 = ((tail) ? *(a + 2 * lda + 0 * lanes) : 0);
        __builtin_prefetch(a + 8 * lda + 0 * lanes);

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
    } else {
        double old0_0 = ((tail) ? *(c + 0 * ldc + 0 * lanes) : 0);
        do {
            if (tail)
                *(c + 0 * ldc + 0 * lanes) = (((((c0_0) * (alpha))) + (old0_0) * (beta)));
        } while (0);
    }
}

static inline __attribute__((always_inline)) void
k0_tile_1x2_tail(size_t m, size_t k, const double *restrict a, size_t lda, const double *restrict b,
                 size_t rsb, size_t csb, double alpha, double beta, double *restrict c, size_t ldc) {
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

        b1 = b[0 * rsb + 1 * csb];
        if (rsb == 1) { /* each column is a stream of its own */
            __builtin_prefetch(b + 0 * rsb + 0 * csb + 40);
        }
        c0_0 = ((c0_0) + (a0_0) * (b0));
        b0 = b[1 * rsb + 0 * csb];
        c0_1 = ((c0_1) + (a0_0) * (b1));
        a0_0 = ((tail) ? *(a + 2 * lda + 0 * lanes) : 0);
        __builtin_prefetch(a + 8 * lda + 0 * lanes);

        b1 = b[1 * rsb + 1 * csb];
        c0_0 = ((c0_0) + (a1_0) * (b0));
        b0 = b[2 * rsb + 0 * csb];
        if (rsb == 1) { /* each column is a stream of its own */
            __builtin_prefetch(b + 1 * rsb + 1 * csb + 40);
        }
        c0_1 = ((c0_1) + (a1_0) * (b1));
        a += 2 * lda;
        b += 2 * rsb;
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
    } else {
        double old0_0 = ((tail) ? *(c + 0 * ldc + 0 * lanes) : 0), old1_0;
        old1_0 = ((tail) ? *(c + 1 * ldc + 0 * lanes) : 0);
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

static inline __attribute__((always_inline)) void k0_tile_1x2(size_t m, size_t k, const double *restrict a,
                                                              size_t lda, const double *restrict b,
                                                              size_t rsb, size_t csb, double alpha,
                                                              double beta, double *restrict c, size_t ldc) {
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

        b1 = b[0 * rsb + 1 * csb];
        if (rsb == 1) { /* each column is a stream of its own */
            __builtin_prefetch(b + 0 * rsb + 0 * csb + 40);
        }
        c0_0 = ((c0_0) + (a0_0) * (b0));
        b0 = b[1 * rsb + 0 * csb];
        c0_1 = ((c0_1) + (a0_0) * (b1));
        a0_0 = *(a + 2 * lda + 0 * lanes);
        __builtin_prefetch(a + 8 * lda + 0 * lanes);

        b1 = b[1 * rsb + 1 * csb];
        c0_0 = ((c0_0) + (a1_0) * (b0));
        b0 = b[2 * rsb + 0 * csb];
        if (rsb == 1) { /* each column is a stream of its own */
            __builtin_prefetch(b + 1 * rsb + 1 * csb + 40);
        }
        c0_1 = ((c0_1) + (a1_0) * (b1));
        a += 2 * lda;
        b += 2 * rsb;
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
    } else {
        double old0_0 = *(c + 0 * ldc + 0 * lanes), old1_0;
        old1_0 = *(c + 1 * ldc + 0 * lanes);
        *(c + 0 * ldc + 0 * lanes) = (((((c0_0) * (alpha))) + (old0_0) * (beta)));
        *(c + 1 * ldc + 0 * lanes) = (((((c0_1) * (alpha))) + (old1_0) * (beta)));
    }
}

#define k0_ARGS                                                                                              \
    size_t m, size_t k, const double *a, size_t lda, const double *b, size_t sb, double alpha, double beta,  \
        double *c, size_t ldc

static void k0_packed_1x1(k0_ARGS) {
    (void)sb, (void)lda;
    k0_tile_1x1_tail(m, k, a, 1 * (1), b, 1, 1, alpha, beta, c, ldc);
}
static void k0_packed_1x2(k0_ARGS) {
    (void)sb, (void)lda;
    if (m == 1 * (1)) {
        k0_tile_1x2(m, k, a, 1 * (1), b, 2, 1, alpha, beta, c, ldc);
        return;
    }
    k0_tile_1x2_tail(m, k, a, 1 * (1), b, 2, 1, alpha, beta, c, ldc);
}

static void (*const k0_packed[2][1])(k0_ARGS) = {
    {k0_packed_1x1},
    {k0_packed_1x2},
};

/* A micro-kernel's tables are indexed [columns - 1][vectors (or rows) - 1]; an entry may be missing (0). */
typedef void (*f64_tile)(size_t m, size_t k, const double *a, size_t lda, const double *b, size_t sb,
                         double alpha, double beta, double *c, size_t ldc);

struct f64_kernel {
    size_t mv, nr;           /* largest tile: vectors along m, columns */
    int by_rows;             /* vectors run along k: A by rows, B by columns, lanes() is 1 */
    int any_height;          /* one tile for all heights: tables are indexed [columns - 1] */
    size_t (*lanes)(void);   /* rows of A in one of mv */
    const f64_tile *packed;  /* B in panels; 0 in a kernel for variants that do not pack B */
    const f64_tile *along_k; /* B read in place, k contiguous; 0 in a kernel for variants that pack B */
    const f64_tile *along_n; /* B read in place, n contiguous; likewise */
};

struct f64_variant {
    const struct f64_kernel *kernel;
    size_t mc, kc, nc;  /* block sizes */
    int pack_a, pack_b; /* 0: the operand is read in place where its layout allows it */
};

/* The i-th of `parts` nearly equal pieces of `total`: edges are shared out, so no tile is left much smaller.
 */
static inline size_t f64_piece(size_t total, size_t parts, size_t i) {
    return parts == 1 ? total : total / parts + (i < total % parts);
}

static inline size_t f64_parts(size_t total, size_t most) {
    return total <= most ? 1 : (total + most - 1) / most; /* small problems are spared the division */
}

static inline size_t f64_least(size_t x, size_t y) { return x < y ? x : y; }

/* elements up to the next cache line */
static inline size_t f64_round(size_t elements) {
    return (elements + 63) / 64 * 64;
} /* rows of n elements each, ldf apart where they come from and ldt where they go */
static void f64_copy(size_t n, size_t rows, const double *from, size_t ldf, double *to, size_t ldt) {
    const size_t lanes = 1;
    const int64_t full = 1;
    size_t p = 0;
    (void)full;
    for (; p + 8 <= rows; p += 8) {
        size_t i = 0;
        for (; i + lanes <= n; i += lanes) {
            const double v0 = *(from + (p + 0) * ldf + i);
            const double v1 = *(from + (p + 1) * ldf + i);
            const double v2 = *(from + (p + 2) * ldf + i);
            const double v3 = *(from + (p + 3) * ldf + i);
            const double v4 = *(from + (p + 4) * ldf + i);
            const double v5 = *(from + (p + 5) * ldf + i);
            const double v6 = *(from + (p + 6) * ldf + i);
            const double v7 = *(from + (p + 7) * ldf + i);
            *(to + (p + 0) * ldt + i) = (v0);
            *(to + (p + 1) * ldt + i) = (v1);
            *(to + (p + 2) * ldt + i) = (v2);
            *(to + (p + 3) * ldt + i) = (v3);
            *(to + (p + 4) * ldt + i) = (v4);
            *(to + (p + 5) * ldt + i) = (v5);
            *(to + (p + 6) * ldt + i) = (v6);
            *(to + (p + 7) * ldt + i) = (v7);
        }
        if (i < n) {
            const int64_t tail = ((int64_t)(n - i));
            const double v0 = ((tail) ? *(from + (p + 0) * ldf + i) : 0);
            const double v1 = ((tail) ? *(from + (p + 1) * ldf + i) : 0);
            const double v2 = ((tail) ? *(from + (p + 2) * ldf + i) : 0);
            const double v3 = ((tail) ? *(from + (p + 3) * ldf + i) : 0);
            const double v4 = ((tail) ? *(from + (p + 4) * ldf + i) : 0);
            const double v5 = ((tail) ? *(from + (p + 5) * ldf + i) : 0);
            const double v6 = ((tail) ? *(from + (p + 6) * ldf + i) : 0);
            const double v7 = ((tail) ? *(from + (p + 7) * ldf + i) : 0);
            do {
                if (tail)
                    *(to + (p + 0) * ldt + i) = (v0);
            } while (0);
            do {
                if (tail)
                    *(to + (p + 1) * ldt + i) = (v1);
            } while (0);
            do {
                if (tail)
                    *(to + (p + 2) * ldt + i) = (v2);
            } while (0);
            do {
                if (tail)
                    *(to + (p + 3) * ldt + i) = (v3);
            } while (0);
            do {
                if (tail)
                    *(to + (p + 4) * ldt + i) = (v4);
            } while (0);
            do {
                if (tail)
                    *(to + (p + 5) * ldt + i) = (v5);
            } while (0);
            do {
                if (tail)
                    *(to + (p + 6) * ldt + i) = (v6);
            } while (0);
            do {
                if (tail)
                    *(to + (p + 7) * ldt + i) = (v7);
            } while (0);
        }
    }
    for (; p + 1 <= rows; p += 1) {
        size_t i = 0;
        for (; i + lanes <= n; i += lanes) {
            const double v0 = *(from + (p + 0) * ldf + i);
            *(to + (p + 0) * ldt + i) = (v0);
        }
        if (i < n) {
            const int64_t tail = ((int64_t)(n - i));
            const double v0 = ((tail) ? *(from + (p + 0) * ldf + i) : 0);
            do {
                if (tail)
                    *(to + (p + 0) * ldt + i) = (v0);
            } while (0);
        }
    }
}

/* to[p * ldt + i] = from[i * ld + p] */
static void f64_transpose(size_t rows, size_t k, const double *from, size_t ld, double *to, size_t ldt) {
    const size_t lanes = 1;
    for (size_t p = 0; p < k; p += lanes)
        for (size_t i = 0; i < rows; i += lanes) {
            const size_t height = f64_least(rows - i, lanes), width = f64_least(k - p, lanes);
            const double *block = from + i * ld + p;
            double *turned = to + p * ldt + i;
            if (height == lanes && width == lanes)
                *(turned) = *(block);
            else
                do {
                    if ((height) && (width))
                        *(turned) = *(block);
                } while (0);
        }
}

/* A panel: `height` elements a step of k, the first `width` from memory, the rest zero. One stride is 1:
 * `across` the panel or `along` it. */
static void f64_panel(size_t width, size_t height, size_t k, const double *from, size_t across, size_t along,
                      double *to) {
    if (across == 1)
        f64_copy(width, k, from, along, to, height);
    else
        f64_transpose(width, k, from, across, to, height);
    if (width < height)
        for (size_t p = 0; p < k; ++p)
            for (size_t i = width; i < height; ++i)
                to[p * height + i] = 0;
}

/* A block of A, m x k, into panels of at most mv vectors by k. */
static void f64_pack_a(const struct f64_kernel *kernel, size_t lanes, size_t m, size_t k, const double *a,
                       size_t rsa, size_t csa, double *to) {
    const size_t vectors = f64_parts(m, lanes), panels = f64_parts(vectors, kernel->mv);
    for (size_t q = 0; q < panels; ++q) {
        const size_t height = f64_piece(vectors, panels, q) * lanes;
        const size_t width = f64_least(m, height);
        f64_panel(width, height, k, a, rsa, csa, to);
        a += width * rsa;
        m -= width;
        to += height * k;
    }
}

/* A block of B, k x n, into panels of at most nr columns by k. */
static void f64_pack_b(const struct f64_kernel *kernel, size_t k, size_t n, const double *b, size_t rsb,
                       size_t csb, double *to) {
    const size_t panels = f64_parts(n, kernel->nr);
    for (size_t q = 0; q < panels; ++q) {
        const size_t width = f64_piece(n, panels, q);
        f64_panel(width, width, k, b, csb, rsb, to);
        b += width * csb;
        to += width * k;
    }
}

/* C = beta * C; at beta = 0 C is not read. */
static __attribute__((noinline)) void f64_scale(size_t m, size_t n, double beta, double *c, size_t ldc) {
    if (beta == 1)
        return;
    for (size_t j = 0; j < n; ++j)
        for (size_t i = 0; i < m; ++i)
            c[i + j * ldc] = beta == 0 ? 0 : beta * c[i + j * ldc];
}

/* All tiles of one block: columns of B's block outside, rows of A's inside, so that a panel of B stays in L1.
 * `row` and `column` are the distances between A's rows and B's columns (in panels: k); lda = 0 says A is in
 * panels. */
static inline __attribute__((always_inline)) void
f64_block(const struct f64_kernel *kernel, const f64_tile *table, size_t lanes, size_t m, size_t n, size_t k,
          double alpha, const double *a, size_t row, size_t lda, const double *b, size_t column, size_t sb,
          double beta, double *c, size_t ldc) {
    const size_t vectors = f64_parts(m, lanes), rows = f64_parts(vectors, kernel->mv);
    const size_t least = f64_piece(vectors, rows, rows), larger = vectors - least * rows;
    const size_t columns = f64_parts(n, kernel->nr);
    for (size_t q = 0; q < columns; ++q) {
        const size_t width = f64_piece(n, columns, q);
        const f64_tile *tiles = table + (width - 1) * (kernel->any_height ? 1 : kernel->mv);
        for (size_t r = 0, i = 0; r < rows; ++r) {
            const size_t v = least + (r < larger), height = f64_least(m - i, v * lanes);
            tiles[kernel->any_height ? 0 : v - 1](height, k, a + i * row, lda ? lda : v * lanes, b, sb, alpha,
                                                  beta, c + i, ldc);
            i += height;
        }
        b += width * column;
        c += width * ldc;
    }
}

/* Whether A and B are packed, as they lie. */
static inline int f64_packs_a(const struct f64_variant *variant, size_t lanes, size_t m, size_t rsa,
                              size_t csa) {
    if (variant->kernel->by_rows)
        return csa != 1;
    if (variant->pack_a)
        return 1;
    (void)lanes;
    return m != 1 && rsa != 1;
}

static inline int f64_packs_b(const struct f64_variant *variant, size_t rsb) {
    return variant->kernel->by_rows ? rsb != 1 : variant->pack_b;
}

/* The three outer loops, with packing; A and B by strides as in f64_run. Never inlined: its many values would
 * slow the short way down. */
static __attribute__((noinline)) void f64_blocks(const struct f64_variant *variant, const f64_tile *table,
                                                 size_t lanes, int pack_a, int pack_b, size_t m, size_t n,
                                                 size_t k, double alpha, const double *a, size_t rsa,
                                                 size_t csa, const double *b, size_t rsb, size_t csb,
                                                 double beta, double *c, size_t ldc, double *work) {
    const struct f64_kernel *kernel = variant->kernel;
    const int by_rows = kernel->by_rows;
    const size_t panels = f64_parts(n, kernel->nr),
                 ncp = variant->nc > kernel->nr ? variant->nc / kernel->nr : 1;
    const size_t jcs = f64_parts(panels, ncp), pcs = f64_parts(k, variant->kc);
    const size_t vectors = f64_parts(m, lanes);
    const size_t mcv = variant->mc > lanes ? variant->mc / lanes : 1, ics = f64_parts(vectors, mcv);
    double *packed_a = work + (64 - (uintptr_t)work % 64) % 64 / sizeof *work;
    double *packed_b = packed_a + f64_round(f64_least(vectors, mcv) * lanes * f64_least(k, variant->kc));
    for (size_t jq = 0, jc = 0; jq < jcs; ++jq) {
        const size_t nb = f64_least(n - jc, f64_piece(panels, jcs, jq) * kernel->nr); /* whole panels */
        for (size_t pq = 0, pc = 0; pq < pcs; ++pq) {
            const size_t kb = f64_piece(k, pcs, pq);
            const double *bb = b + pc * rsb + jc * csb;
            size_t column = csb, sb = rsb == 1 ? csb : rsb;
            if (pack_b) {
                if (by_rows) /* columns, k contiguous: a panel across k */
                    f64_panel(kb, kb, nb, bb, rsb, csb, packed_b);
                else
                    f64_pack_b(kernel, kb, nb, bb, rsb, csb, packed_b);
                bb = packed_b, column = sb = kb;
            }
            for (size_t iq = 0, ic = 0; iq < ics; ++iq) {
                const size_t mb = f64_least(m - ic, f64_piece(vectors, ics, iq) * lanes);
                const double *ab = a + ic * rsa + pc * csa;
                size_t row = rsa, lda = by_rows ? rsa : csa;
                if (pack_a) {
                    if (by_rows)
                        f64_panel(kb, kb, mb, ab, csa, rsa, packed_a);
                    else
                        f64_pack_a(kernel, lanes, mb, kb, ab, rsa, csa, packed_a);
                    ab = packed_a, row = kb, lda = by_rows ? kb : 0;
                }
                f64_block(kernel, table, lanes, mb, nb, kb, alpha, ab, row, lda, bb, column, sb,
                          pq == 0 ? beta : 1, c + ic + jc * ldc, ldc);
                ic += mb;
            }
            pc += kb;
        }
        jc += nb;
    }
}

/* C = alpha * A * B + beta * C with A m x k and B k x n by strides, of which each has one that is 1; C
 * column-major. `work` holds f64_work() elements. Inlined where the variant is known, so that its numbers
 * become constants and its divisions multiplications, which a small product notices. */
static inline __attribute__((always_inline)) void f64_run(const struct f64_variant *variant, size_t m,
                                                          size_t n, size_t k, double alpha, const double *a,
                                                          size_t rsa, size_t csa, const double *b, size_t rsb,
                                                          size_t csb, double beta, double *c, size_t ldc,
                                                          double *work) {
    const struct f64_kernel *kernel = variant->kernel;
    const size_t lanes = kernel->lanes();
    const int by_rows = kernel->by_rows;
    if (m == 0 || n == 0)
        return;
    if (k == 0 || alpha == 0) {
        f64_scale(m, n, beta, c, ldc);
        return;
    }
    const int pack_a = f64_packs_a(variant, lanes, m, rsa, csa), pack_b = f64_packs_b(variant, rsb);
    if (m == 1 && !by_rows)
        rsa = 1;
    const f64_tile *table = by_rows || (!pack_b && rsb == 1) ? kernel->along_k
                            : pack_b                         ? kernel->packed
                                                             : kernel->along_n;
    if (!pack_a && !pack_b && m <= variant->mc && n <= variant->nc && k <= variant->kc)
        f64_block(kernel, table, lanes, m, n, k, alpha, a, rsa, by_rows ? rsa : csa, b, csb,
                  rsb == 1 ? csb : rsb, beta, c, ldc);
    else
        f64_blocks(variant, table, lanes, pack_a, pack_b, m, n, k, alpha, a, rsa, csa, b, rsb, csb, beta, c,
                   ldc, work);
}

/* Elements of workspace a variant needs for this problem, wherever it begins; none when nothing is packed. */
static inline size_t f64_work(const struct f64_variant *variant, size_t m, size_t n, size_t k, size_t rsa,
                              size_t csa, size_t rsb) {
    const size_t lanes = variant->kernel->lanes(), depth = f64_least(k, variant->kc);
    if (!f64_packs_a(variant, lanes, m, rsa, csa) && !f64_packs_b(variant, rsb))
        return 0;
    const size_t mcv = variant->mc > lanes ? variant->mc / lanes : 1;
    const size_t vectors = f64_least(f64_parts(m, lanes), mcv);
    return f64_round(vectors * lanes * depth) + f64_round(f64_least(n, variant->nc) * depth) + 64;
}

static size_t k0_lanes(void) { return 1; }

static const struct f64_kernel k0_kernel = {
    .mv = 1,
    .nr = 2,
    .by_rows = 0,
    .any_height = 0,
    .lanes = k0_lanes,
    .packed = &k0_packed[0][0],
};

static const struct f64_variant k0_variant = {&k0_kernel, 128, 256, 512, 1, 1};

/* buffer 3, given by the caller, is the workspace: a candidate allocates nothing */
void tensorop_candidate_0(const struct tensorop_call *call) {
    size_t m = (size_t)call->dim[0], n = (size_t)call->dim[1], k = (size_t)call->dim[2];
    const double *a = call->buffer[0], *b = call->buffer[1];
    size_t lda = (size_t)call->ld[0], ldb = (size_t)call->ld[1], ldc = (size_t)call->ld[2];
    int row_major = call->flag[0] == 101, ta = (int)call->flag[1], tb = (int)call->flag[2];
    if (row_major) { /* C^T = op(B)^T op(A)^T, and a row-major matrix is its transpose in column-major */
        const double *x = a;
        size_t t = m, ld = lda;
        int trans = ta;
        a = b, b = x;
        m = n, n = t;
        lda = ldb, ldb = ld;
        ta = tb, tb = trans;
    }
    struct f64_variant variant = k0_variant;
    if (call->dim[3]) { /* other block sizes than it was written with */
        variant.mc = (size_t)call->dim[3];
        variant.kc = (size_t)call->dim[4];
        variant.nc = (size_t)call->dim[5];
    }
    f64_run(&variant, m, n, k, (double)call->scalar[0], a, ta ? lda : 1, ta ? 1 : lda, b, tb ? ldb : 1,
            tb ? 1 : ldb, (double)call->scalar[1], call->buffer[2], ldc, call->buffer[3]);
}

void tensorop_candidate_1(const struct tensorop_call *call) {
    size_t m = (size_t)call->dim[0], n = (size_t)call->dim[1], k = (size_t)call->dim[2];
    const size_t lanes = k0_lanes();
    f64_block(&k0_kernel, k0_kernel.packed, lanes, m, n, k, 1, call->buffer[0], k, 0, call->buffer[1], k, 1,
              0, call->buffer[2], (size_t)call->ld[2]);
}
