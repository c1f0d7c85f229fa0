/* k0: micro-kernel 'dot' at fetch=4 kc=256 ku=2 lead=0 lmul=1 mc=64 mv=2 nc=256 nr=1 pack_a=1 pack_b=1
 * (spacemit-k1, f32) mv x nr inner products: vectors run along k in rows of A and columns of B alike, each
 * accumulator gathers one element of C and is summed at the end; nothing is broadcast and no lane idles
 * however few rows or columns there are; B is loaded `lead` columns before its use, rows and columns are
 * prefetched `fetch` cache lines ahead */
static inline __attribute__((always_inline)) void k0_tile_1x1(size_t m, size_t k, const float *restrict a,
                                                              size_t lda, const float *restrict b, size_t rsb,
                                                              size_t csb, float alpha, float beta,
                                                              float *restrict c, size_t ldc) {
    const size_t lanes = (256 / 32 * 1);
    const size_t full = lanes;
    (void)m, (void)full, (void)lanes, (void)rsb;
    vfloat32m1_t c0_0 = __riscv_vfmv_v_f_f32m1(0, full);
    size_t p = 0;
    for (; p + 2 * lanes <= k; p += 2 * lanes) {
        {
            const vfloat32m1_t a0 = __riscv_vle32_v_f32m1(a + 0 * lda + p + 0 * lanes, full);
            __builtin_prefetch(a + 0 * lda + p + 0 * lanes + 64);
            const vfloat32m1_t b0 = __riscv_vle32_v_f32m1(b + 0 * csb + p + 0 * lanes, full);
            __builtin_prefetch(b + 0 * csb + p + 0 * lanes + 64);
            c0_0 = __riscv_vfmacc_vv_f32m1(c0_0, a0, b0, full);
        }
        {
            const vfloat32m1_t a0 = __riscv_vle32_v_f32m1(a + 0 * lda + p + 1 * lanes, full);
            __builtin_prefetch(a + 0 * lda + p + 1 * lanes + 64);
            const vfloat32m1_t b0 = __riscv_vle32_v_f32m1(b + 0 * csb + p + 1 * lanes, full);
            __builtin_prefetch(b + 0 * csb + p + 1 * lanes + 64);
            c0_0 = __riscv_vfmacc_vv_f32m1(c0_0, a0, b0, full);
        }
    }
    for (; p + lanes <= k; p += lanes) {
        const vfloat32m1_t a0 = __riscv_vle32_v_f32m1(a + 0 * lda + p, full);
        __builtin_prefetch(a + 0 * lda + p + 64);
        const vfloat32m1_t b0 = __riscv_vle32_v_f32m1(b + 0 * csb + p, full);
        __builtin_prefetch(b + 0 * csb + p + 64);
        c0_0 = __riscv_vfmacc_vv_f32m1(c0_0, a0, b0, full);
    }
    if (p < k) {
        const size_t tail = ((size_t)(k - p));
        const vfloat32m1_t a0 = __riscv_vle32_v_f32m1(a + 0 * lda + p, tail);
        const vfloat32m1_t b0 = __riscv_vle32_v_f32m1(b + 0 * csb + p, tail);
        c0_0 = __riscv_vfmacc_vv_f32m1_tu(c0_0, a0, b0, tail);
    }
    {
        float *at = c + 0 + 0 * ldc;
        const float dot = alpha * __riscv_vfmv_f_s_f32m1_f32(__riscv_vfredusum_vs_f32m1_f32m1(
                                      c0_0, __riscv_vfmv_v_f_f32m1(0, 1), lanes));
        *at = beta == 0 ? dot : dot + beta * *at; /* at beta = 0 C is not read */
    }
}

static inline __attribute__((always_inline)) void k0_tile_2x1(size_t m, size_t k, const float *restrict a,
                                                              size_t lda, const float *restrict b, size_t rsb,
                                                              size_t csb, float alpha, float beta,
                                                              float *restrict c, size_t ldc) {
    const size_t lanes = (256 / 32 * 1);
    const size_t full = lanes;
    (void)m, (void)full, (void)lanes, (void)rsb;
    vfloat32m1_t c0_0 = __riscv_vfmv_v_f_f32m1(0, full);
    vfloat32m1_t c1_0 = __riscv_vfmv_v_f_f32m1(0, full);
    size_t p = 0;
    for (; p + 2 * lanes <= k; p += 2 * lanes) {
        {
            const vfloat32m1_t a0 = __riscv_vle32_v_f32m1(a + 0 * lda + p + 0 * lanes, full);
            __builtin_prefetch(a + 0 * lda + p + 0 * lanes + 64);
            const vfloat32m1_t a1 = __riscv_vle32_v_f32m1(a + 1 * lda + p + 0 * lanes, full);
            __builtin_prefetch(a + 1 * lda + p + 0 * lanes + 64);
            const vfloat32m1_t b0 = __riscv_vle32_v_f32m1(b + 0 * csb + p + 0 * lanes, full);
            __builtin_prefetch(b + 0 * csb + p + 0 * lanes + 64);
            c0_0 = __riscv_vfmacc_vv_f32m1(c0_0, a0, b0, full);
            c1_0 = __riscv_vfmacc_vv_f32m1(c1_0, a1, b0, full);
        }
        {
            const vfloat32m1_t a0 = __riscv_vle32_v_f32m1(a + 0 * lda + p + 1 * lanes, full);
            __builtin_prefetch(a + 0 * lda + p + 1 * lanes + 64);
            const vfloat32m1_t a1 = __riscv_vle32_v_f32m1(a + 1 * lda + p + 1 * lanes, full);
            __builtin_prefetch(a + 1 * lda + p + 1 * lanes + 64);
            const vfloat32m1_t b0 = __riscv_vle32_v_f32m1(b + 0 * csb + p + 1 * lanes, full);
            __builtin_prefetch(b + 0 * csb + p + 1 * lanes + 64);
            c0_0 = __riscv_vfmacc_vv_f32m1(c0_0, a0, b0, full);
            c1_0 = __riscv_vfmacc_vv_f32m1(c1_0, a1, b0, full);
        }
    }
    for (; p + lanes <= k; p += lanes) {
        const vfloat32m1_t a0 = __riscv_vle32_v_f32m1(a + 0 * lda + p, full);
        __builtin_prefetch(a + 0 * lda + p + 64);
        const vfloat32m1_t a1 = __riscv_vle32_v_f32m1(a + 1 * lda + p, full);
        __builtin_prefetch(a + 1 * lda + p + 64);
        const vfloat32m1_t b0 = __riscv_vle32_v_f32m1(b + 0 * csb + p, full);
        __builtin_prefetch(b + 0 * csb + p + 64);
        c0_0 = __riscv_vfmacc_vv_f32m1(c0_0, a0, b0, full);
        c1_0 = __riscv_vfmacc_vv_f32m1(c1_0, a1, b0, full);
    }
    if (p < k) {
        const size_t tail = ((size_t)(k - p));
        const vfloat32m1_t a0 = __riscv_vle32_v_f32m1(a + 0 * lda + p, tail);
        const vfloat32m1_t a1 = __riscv_vle32_v_f32m1(a + 1 * lda + p, tail);
        const vfloat32m1_t b0 = __riscv_vle32_v_f32m1(b + 0 * csb + p, tail);
        c0_0 = __riscv_vfmacc_vv_f32m1_tu(c0_0, a0, b0, tail);
        c1_0 = __riscv_vfmacc_vv_f32m1_tu(c1_0, a1, b0, tail);
    }
    {
        float *at = c + 0 + 0 * ldc;
        const float dot = alpha * __riscv_vfmv_f_s_f32m1_f32(__riscv_vfredusum_vs_f32m1_f32m1(
                                      c0_0, __riscv_vfmv_v_f_f32m1(0, 1), lanes));
        *at = beta == 0 ? dot : dot + beta * *at; /* at beta = 0 C is not read */
    }
    {
        float *at = c + 1 + 0 * ldc;
        const float dot = alpha * __riscv_vfmv_f_s_f32m1_f32(__riscv_vfredusum_vs_f32m1_f32m1(
                                      c1_0, __riscv_vfmv_v_f_f32m1(0, 1), lanes));
        *at = beta == 0 ? dot : dot + beta * *at; /* at beta = 0 C is not read */
    }
}

#define k0_ARGS                                                                                              \
    size_t m, size_t k, const float *a, size_t lda, const float *b, size_t sb, float alpha, float beta,      \
        float *c, size_t ldc

static void k0_along_k_1x1(k0_ARGS) {
    (void)sb, (void)lda;
    k0_tile_1x1(m, k, a, lda, b, 1, sb, alpha, beta, c, ldc);
}
static void k0_along_k_2x1(k0_ARGS) {
    (void)sb, (void)lda;
    k0_tile_2x1(m, k, a, lda, b, 1, sb, alpha, beta, c, ldc);
}

static void (*const k0_along_k[1][2])(k0_ARGS) = {
    {k0_along_k_1x1, k0_along_k_2x1},
};

/* A micro-kernel's tables are indexed [columns - 1][vectors (or rows) - 1]; an entry may be missing (0). */
typedef void (*f32_tile)(size_t m, size_t k, const float *a, size_t lda, const float *b, size_t sb,
                         float alpha, float beta, float *c, size_t ldc);

struct f32_kernel {
    size_t mv, nr;           /* largest tile: vectors along m, columns */
    int by_rows;             /* vectors run along k: A by rows, B by columns, lanes() is 1 */
    int any_height;          /* one tile for all heights: tables are indexed [columns - 1] */
    size_t (*lanes)(void);   /* rows of A in one of mv */
    const f32_tile *packed;  /* B in panels; 0 in a kernel for variants that do not pack B */
    const f32_tile *along_k; /* B read in place, k contiguous; 0 in a kernel for variants that pack B */
    const f32_tile *along_n; /* B read in place, n contiguous; likewise */
};

struct f32_variant {
    const struct f32_kernel *kernel;
    size_t mc, kc, nc;  /* block sizes */
    int pack_a, pack_b; /* 0: the operand is read in place where its layout allows it */
};

/* The i-th of `parts` nearly equal pieces of `total`: edges are shared out, so no tile is left much smaller.
 */
static inline size_t f32_piece(size_t total, size_t parts, size_t i) {
    return parts == 1 ? total : total / parts + (i < total % parts);
}

static inline size_t f32_parts(size_t total, size_t most) {
    return total <= most ? 1 : (total + most - 1) / most; /* small problems are spared the division */
}

static inline size_t f32_least(size_t x, size_t y) { return x < y ? x : y; }

/* elements up to the next cache line */
static inline size_t f32_round(size_t elements) {
    return (elements + 63) / 64 * 64;
} /* rows of n elements each, ldf apart where they come from and ldt where they go */
static void f32_copy(size_t n, size_t rows, const float *from, size_t ldf, float *to, size_t ldt) {
    const size_t lanes = (256 / 32 * 1);
    const size_t full = lanes;
    size_t p = 0;
    (void)full;
    for (; p + 8 <= rows; p += 8) {
        size_t i = 0;
        for (; i + lanes <= n; i += lanes) {
            const vfloat32m1_t v0 = __riscv_vle32_v_f32m1(from + (p + 0) * ldf + i, full);
            const vfloat32m1_t v1 = __riscv_vle32_v_f32m1(from + (p + 1) * ldf + i, full);
            const vfloat32m1_t v2 = __riscv_vle32_v_f32m1(from + (p + 2) * ldf + i, full);
            const vfloat32m1_t v3 = __riscv_vle32_v_f32m1(from + (p + 3) * ldf + i, full);
            const vfloat32m1_t v4 = __riscv_vle32_v_f32m1(from + (p + 4) * ldf + i, full);
            const vfloat32m1_t v5 = __riscv_vle32_v_f32m1(from + (p + 5) * ldf + i, full);
            const vfloat32m1_t v6 = __riscv_vle32_v_f32m1(from + (p + 6) * ldf + i, full);
            const vfloat32m1_t v7 = __riscv_vle32_v_f32m1(from + (p + 7) * ldf + i, full);
            __riscv_vse32_v_f32m1(to + (p + 0) * ldt + i, v0, full);
            __riscv_vse32_v_f32m1(to + (p + 1) * ldt + i, v1, full);
            __riscv_vse32_v_f32m1(to + (p + 2) * ldt + i, v2, full);
            __riscv_vse32_v_f32m1(to + (p + 3) * ldt + i, v3, full);
            __riscv_vse32_v_f32m1(to + (p + 4) * ldt + i, v4, full);
            __riscv_vse32_v_f32m1(to + (p + 5) * ldt + i, v5, full);
            __riscv_vse32_v_f32m1(to + (p + 6) * ldt + i, v6, full);
            __riscv_vse32_v_f32m1(to + (p + 7) * ldt + i, v7, full);
        }
        if (i < n) {
            const size_t tail = ((size_t)(n - i));
            const vfloat32m1_t v0 = __riscv_vle32_v_f32m1(from + (p + 0) * ldf + i, tail);
            const vfloat32m1_t v1 = __riscv_vle32_v_f32m1(from + (p + 1) * ldf + i, tail);
            const vfloat32m1_t v2 = __riscv_vle32_v_f32m1(from + (p + 2) * ldf + i, tail);
            const vfloat32m1_t v3 = __riscv_vle32_v_f32m1(from + (p + 3) * ldf + i, tail);
            const vfloat32m1_t v4 = __riscv_vle32_v_f32m1(from + (p + 4) * ldf + i, tail);
            const vfloat32m1_t v5 = __riscv_vle32_v_f32m1(from + (p + 5) * ldf + i, tail);
            const vfloat32m1_t v6 = __riscv_vle32_v_f32m1(from + (p + 6) * ldf + i, tail);
            const vfloat32m1_t v7 = __riscv_vle32_v_f32m1(from + (p + 7) * ldf + i, tail);
            __riscv_vse32_v_f32m1(to + (p + 0) * ldt + i, v0, tail);
            __riscv_vse32_v_f32m1(to + (p + 1) * ldt + i, v1, tail);
            __riscv_vse32_v_f32m1(to + (p + 2) * ldt + i, v2, tail);
            __riscv_vse32_v_f32m1(to + (p + 3) * ldt + i, v3, tail);
            __riscv_vse32_v_f32m1(to + (p + 4) * ldt + i, v4, tail);
            __riscv_vse32_v_f32m1(to + (p + 5) * ldt + i, v5, tail);
            __riscv_vse32_v_f32m1(to + (p + 6) * ldt + i, v6, tail);
            __riscv_vse32_v_f32m1(to + (p + 7) * ldt + i, v7, tail);
        }
    }
    for (; p + 1 <= rows; p += 1) {
        size_t i = 0;
        for (; i + lanes <= n; i += lanes) {
            const vfloat32m1_t v0 = __riscv_vle32_v_f32m1(from + (p + 0) * ldf + i, full);
            __riscv_vse32_v_f32m1(to + (p + 0) * ldt + i, v0, full);
        }
        if (i < n) {
            const size_t tail = ((size_t)(n - i));
            const vfloat32m1_t v0 = __riscv_vle32_v_f32m1(from + (p + 0) * ldf + i, tail);
            __riscv_vse32_v_f32m1(to + (p + 0) * ldt + i, v0, tail);
        }
    }
}

/* to[p * ldt + i] = from[i * ld + p] */
static void f32_transpose(size_t rows, size_t k, const float *from, size_t ld, float *to, size_t ldt) {
    const size_t lanes = (256 / 32 * 1);
    for (size_t p = 0; p < k; p += lanes)
        for (size_t i = 0; i < rows; i += lanes) {
            const size_t height = f32_least(rows - i, lanes), width = f32_least(k - p, lanes);
            const float *block = from + i * ld + p;
            float *turned = to + p * ldt + i;
            if (height == lanes && width == lanes)
                tensorop_transpose_f32m1(turned, ldt, block, ld, lanes, lanes);
            else
                tensorop_transpose_f32m1(turned, ldt, block, ld, height, width);
        }
}

/* A panel: `height` elements a step of k, the first `width` from memory, the rest zero. One stride is 1:
 * `across` the panel or `along` it. */
static void f32_panel(size_t width, size_t height, size_t k, const float *from, size_t across, size_t along,
                      float *to) {
    if (across == 1)
        f32_copy(width, k, from, along, to, height);
    else
        f32_transpose(width, k, from, across, to, height);
    if (width < height)
        for (size_t p = 0; p < k; ++p)
            for (size_t i = width; i < height; ++i)
                to[p * height + i] = 0;
}

/* A block of A, m x k, into panels of at most mv vectors by k. */
static void f32_pack_a(const struct f32_kernel *kernel, size_t lanes, size_t m, size_t k, const float *a,
                       size_t rsa, size_t csa, float *to) {
    const size_t vectors = f32_parts(m, lanes), panels = f32_parts(vectors, kernel->mv);
    for (size_t q = 0; q < panels; ++q) {
        const size_t height = f32_piece(vectors, panels, q) * lanes;
        const size_t width = f32_least(m, height);
        f32_panel(width, height, k, a, rsa, csa, to);
        a += width * rsa;
        m -= width;
        to += height * k;
    }
}

/* A block of B, k x n, into panels of at most nr columns by k. */
static void f32_pack_b(const struct f32_kernel *kernel, size_t k, size_t n, const float *b, size_t rsb,
                       size_t csb, float *to) {
    const size_t panels = f32_parts(n, kernel->nr);
    for (size_t q = 0; q < panels; ++q) {
        const size_t width = f32_piece(n, panels, q);
        f32_panel(width, width, k, b, csb, rsb, to);
        b += width * csb;
        to += width * k;
    }
}

/* C = beta * C; at beta = 0 C is not read. */
static __attribute__((noinline)) void f32_scale(size_t m, size_t n, float beta, float *c, size_t ldc) {
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
f32_block(const struct f32_kernel *kernel, const f32_tile *table, size_t lanes, size_t m, size_t n, size_t k,
          float alpha, const float *a, size_t row, size_t lda, const float *b, size_t column, size_t sb,
          float beta, float *c, size_t ldc) {
    const size_t vectors = f32_parts(m, lanes), rows = f32_parts(vectors, kernel->mv);
    const size_t least = f32_piece(vectors, rows, rows), larger = vectors - least * rows;
    const size_t columns = f32_parts(n, kernel->nr);
    for (size_t q = 0; q < columns; ++q) {
        const size_t width = f32_piece(n, columns, q);
        const f32_tile *tiles = table + (width - 1) * (kernel->any_height ? 1 : kernel->mv);
        for (size_t r = 0, i = 0; r < rows; ++r) {
            const size_t v = least + (r < larger), height = f32_least(m - i, v * lanes);
            tiles[kernel->any_height ? 0 : v - 1](height, k, a + i * row, lda ? lda : v * lanes, b, sb, alpha,
                                                  beta, c + i, ldc);
            i += height;
        }
        b += width * column;
        c += width * ldc;
    }
}

/* Whether A and B are packed, as they lie. */
static inline int f32_packs_a(const struct f32_variant *variant, size_t lanes, size_t m, size_t rsa,
                              size_t csa) {
    if (variant->kernel->by_rows)
        return csa != 1;
    if (variant->pack_a)
        return 1;
    (void)lanes;
    return m != 1 && rsa != 1;
}

static inline int f32_packs_b(const struct f32_variant *variant, size_t rsb) {
    return variant->kernel->by_rows ? rsb != 1 : variant->pack_b;
}

/* The three outer loops, with packing; A and B by strides as in f32_run. Never inlined: its many values would
 * slow the short way down. */
static __attribute__((noinline)) void f32_blocks(const struct f32_variant *variant, const f32_tile *table,
                                                 size_t lanes, int pack_a, int pack_b, size_t m, size_t n,
                                                 size_t k, float alpha, const float *a, size_t rsa,
                                                 size_t csa, const float *b, size_t rsb, size_t csb,
                                                 float beta, float *c, size_t ldc, float *work) {
    const struct f32_kernel *kernel = variant->kernel;
    const int by_rows = kernel->by_rows;
    const size_t panels = f32_parts(n, kernel->nr),
                 ncp = variant->nc > kernel->nr ? variant->nc / kernel->nr : 1;
    const size_t jcs = f32_parts(panels, ncp), pcs = f32_parts(k, variant->kc);
    const size_t vectors = f32_parts(m, lanes);
    const size_t mcv = variant->mc > lanes ? variant->mc / lanes : 1, ics = f32_parts(vectors, mcv);
    float *packed_a = work + (64 - (uintptr_t)work % 64) % 64 / sizeof *work;
    float *packed_b = packed_a + f32_round(f32_least(vectors, mcv) * lanes * f32_least(k, variant->kc));
    for (size_t jq = 0, jc = 0; jq < jcs; ++jq) {
        const size_t nb = f32_least(n - jc, f32_piece(panels, jcs, jq) * kernel->nr); /* whole panels */
        for (size_t pq = 0, pc = 0; pq < pcs; ++pq) {
            const size_t kb = f32_piece(k, pcs, pq);
            const float *bb = b + pc * rsb + jc * csb;
            size_t column = csb, sb = rsb == 1 ? csb : rsb;
            if (pack_b) {
                if (by_rows) /* columns, k contiguous: a panel across k */
                    f32_panel(kb, kb, nb, bb, rsb, csb, packed_b);
                else
                    f32_pack_b(kernel, kb, nb, bb, rsb, csb, packed_b);
                bb = packed_b, column = sb = kb;
            }
            for (size_t iq = 0, ic = 0; iq < ics; ++iq) {
                const size_t mb = f32_least(m - ic, f32_piece(vectors, ics, iq) * lanes);
                const float *ab = a + ic * rsa + pc * csa;
                size_t row = rsa, lda = by_rows ? rsa : csa;
                if (pack_a) {
                    if (by_rows)
                        f32_panel(kb, kb, mb, ab, csa, rsa, packed_a);
                    else
                        f32_pack_a(kernel, lanes, mb, kb, ab, rsa, csa, packed_a);
                    ab = packed_a, row = kb, lda = by_rows ? kb : 0;
                }
                f32_block(kernel, table, lanes, mb, nb, kb, alpha, ab, row, lda, bb, column, sb,
                          pq == 0 ? beta : 1, c + ic + jc * ldc, ldc);
                ic += mb;
            }
            pc += kb;
        }
        jc += nb;
    }
}

/* C = alpha * A * B + beta * C with A m x k and B k x n by strides, of which each has one that is 1; C
 * column-major. `work` holds f32_work() elements. Inlined where the variant is known, so that its numbers
 * become constants and its divisions multiplications, which a small product notices. */
static inline __attribute__((always_inline)) void f32_run(const struct f32_variant *variant, size_t m,
                                                          size_t n, size_t k, float alpha, const float *a,
                                                          size_t rsa, size_t csa, const float *b, size_t rsb,
                                                          size_t csb, float beta, float *c, size_t ldc,
                                                          float *work) {
    const struct f32_kernel *kernel = variant->kernel;
    const size_t lanes = kernel->lanes();
    const int by_rows = kernel->by_rows;
    if (m == 0 || n == 0)
        return;
    if (k == 0 || alpha == 0) {
        f32_scale(m, n, beta, c, ldc);
        return;
    }
    const int pack_a = f32_packs_a(variant, lanes, m, rsa, csa), pack_b = f32_packs_b(variant, rsb);
    if (m == 1 && !by_rows)
        rsa = 1;
    const f32_tile *table = by_rows || (!pack_b && rsb == 1) ? kernel->along_k
                            : pack_b                         ? kernel->packed
                                                             : kernel->along_n;
    if (!pack_a && !pack_b && m <= variant->mc && n <= variant->nc && k <= variant->kc)
        f32_block(kernel, table, lanes, m, n, k, alpha, a, rsa, by_rows ? rsa : csa, b, csb,
                  rsb == 1 ? csb : rsb, beta, c, ldc);
    else
        f32_blocks(variant, table, lanes, pack_a, pack_b, m, n, k, alpha, a, rsa, csa, b, rsb, csb, beta, c,
                   ldc, work);
}

/* Elements of workspace a variant needs for this problem, wherever it begins; none when nothing is packed. */
static inline size_t f32_work(const struct f32_variant *variant, size_t m, size_t n, size_t k, size_t rsa,
                              size_t csa, size_t rsb) {
    const size_t lanes = variant->kernel->lanes(), depth = f32_least(k, variant->kc);
    if (!f32_packs_a(variant, lanes, m, rsa, csa) && !f32_packs_b(variant, rsb))
        return 0;
    const size_t mcv = variant->mc > lanes ? variant->mc / lanes : 1;
    const size_t vectors = f32_least(f32_parts(m, lanes), mcv);
    return f32_round(vectors * lanes * depth) + f32_round(f32_least(n, variant->nc) * depth) + 64;
}

static size_t k0_lanes(void) { return 1; }

static const struct f32_kernel k0_kernel = {
    .mv = 2,
    .nr = 1,
    .by_rows = 1,
    .any_height = 0,
    .lanes = k0_lanes,
    .along_k = &k0_along_k[0][0],
};

static const struct f32_variant k0_variant = {&k0_kernel, 64, 256, 256, 1, 1};

/* buffer 3, given by the caller, is the workspace: a candidate allocates nothing */
void tensorop_candidate_0(const struct tensorop_call *call) {
    size_t m = (size_t)call->dim[0], n = (size_t)call->dim[1], k = (size_t)call->dim[2];
    const float *a = call->buffer[0], *b = call->buffer[1];
    size_t lda = (size_t)call->ld[0], ldb = (size_t)call->ld[1], ldc = (size_t)call->ld[2];
    int row_major = call->flag[0] == 101, ta = (int)call->flag[1], tb = (int)call->flag[2];
    if (row_major) { /* C^T = op(B)^T op(A)^T, and a row-major matrix is its transpose in column-major */
        const float *x = a;
        size_t t = m, ld = lda;
        int trans = ta;
        a = b, b = x;
        m = n, n = t;
        lda = ldb, ldb = ld;
        ta = tb, tb = trans;
    }
    struct f32_variant variant = k0_variant;
    if (call->dim[3]) { /* other block sizes than it was written with */
        variant.mc = (size_t)call->dim[3];
        variant.kc = (size_t)call->dim[4];
        variant.nc = (size_t)call->dim[5];
    }
    f32_run(&variant, m, n, k, (float)call->scalar[0], a, ta ? lda : 1, ta ? 1 : lda, b, tb ? ldb : 1,
            tb ? 1 : ldb, (float)call->scalar[1], call->buffer[2], ldc, call->buffer[3]);
}

void tensorop_candidate_1(const struct tensorop_call *call) {
    size_t m = (size_t)call->dim[0], n = (size_t)call->dim[1], k = (size_t)call->dim[2];
    const size_t lanes = k0_lanes();
    f32_block(&k0_kernel, k0_kernel.along_k, lanes, m, n, k, 1, call->buffer[0], k, k, call->buffer[1], k, k,
              0, call->buffer[2], (size_t)call->ld[2]);
}
