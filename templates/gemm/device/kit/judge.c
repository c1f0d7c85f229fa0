/* Judges whether a product is correct and no other memory was changed. */
#include "kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 4096, POISON = 0xff /* a NaN in both types */, PICKS = 32, NON_BLOCKING = 1 };
double judge_every = 2048.0 * 2048 * 2048;

static pointer reserve(size_t bytes) {
    pointer at;
    must(cu.cuMemAlloc_v2(&at, bytes + 256), "memory");
    return at;
}

static void release(pointer at) {
    if (at)
        cu.cuMemFree_v2(at);
}

struct buffer buffer_make(size_t bytes, size_t shift) {
    struct buffer b = {.bytes = bytes};
    b.total = 2 * GUARD + (bytes + shift + 255) / 256 * 256;
    b.base = reserve(b.total);
    must(cu.cuMemsetD8_v2(b.base, POISON, b.total), "memory is filled");
    b.at = b.base + GUARD + shift;
    return b;
}

void buffer_free(struct buffer *b) {
    release(b->base);
    b->base = 0;
}

static uint64_t counted(const char *kernel, unsigned blocks, void **arguments, int place) {
    static pointer sum;
    uint64_t found;
    if (!sum)
        sum = reserve(8);
    arguments[place] = &sum;
    must(cu.cuMemsetD8_v2(sum, 0, 8), "a sum is begun");
    launch(kernel, blocks, 1, 1, 256, NULL, arguments);
    must(cu.cuMemcpyDtoH_v2(&found, sum, 8), kernel);
    return found;
}

static uint64_t hash(pointer at, int64_t rows, int64_t cols, int64_t ld) {
    return counted("kit_hash", 528, (void *[]){&at, &rows, &cols, &ld, NULL}, 4);
}

static uint64_t differs(pointer at, int64_t rows, int64_t from, int64_t cols, int64_t ld,
                        int value) {
    return counted("kit_differs", 64, (void *[]){&at, &rows, &from, &cols, &ld, &value, NULL}, 6);
}

bool buffer_intact(const struct buffer *b) {
    const int64_t before = (int64_t)(b->at - b->base) / 2, end = (int64_t)b->bytes / 2,
                  all = (int64_t)b->total / 2;
    const int poison = POISON << 8 | POISON;
    return !differs(b->base, 1, 0, before, before, poison) &&
           !differs(b->at + 2 * (pointer)end, 1, 0, all - before - end, all, poison);
}

void fill_normal(pointer at, int64_t count, uint64_t seed, int format) {
    launch("kit_normal", 1056, 1, 1, 256, NULL, (void *[]){&at, &count, &seed, &format});
}

struct judged problem_of(int m, int n, int k, int batch, int bf16, int a_along_m, int b_along_k,
                         int pad) {
    struct judged p = {
        .m = m, .n = n, .k = k, .batch = batch, .a_along_m = a_along_m, .b_along_k = b_along_k};
    p.bf16 = bf16, p.format_c = FLOAT_C ? FLOAT : bf16, p.alpha = 1,
    p.lda = (a_along_m ? m : k) + pad, p.ldb = (b_along_k ? k : n) + pad, p.ldc = n + pad;
    p.stride_a = (a_along_m ? k : m) * p.lda, p.stride_b = (b_along_k ? n : k) * p.ldb,
    p.stride_c = m * p.ldc;
    return p;
}

int64_t a_size(const struct judged *p) { return p->stride_a * p->batch; }
int64_t b_size(const struct judged *p) { return p->stride_b * p->batch; }
int64_t c_size(const struct judged *p) { return p->stride_c * p->batch; }

static uint64_t mixed(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Rows or columns at the edges of tiles, and some random ones. */
static pointer picked(int extent, uint64_t seed) {
    int v[PICKS] = {0, extent - 1}, many = 2;
    const int edges[] = {64, 128, 256, extent / 2, extent - 2, extent - 65};
    for (int i = 0; i < 6; i++)
        if (edges[i] > 0 && edges[i] < extent)
            v[many++] = edges[i];
    for (int i = 0; many < PICKS; i++)
        v[many++] = (int)(mixed(seed + (uint64_t)i) % (uint64_t)extent);
    const pointer at = reserve(sizeof v);
    must(cu.cuMemcpyHtoD_v2(at, v, sizeof v), "rows are picked");
    return at;
}

static void refer(const struct judged *p, pointer a, pointer b, pointer rows, int row_count,
                  pointer cols, int col_count, pointer sums, pointer magnitudes) {
    struct judged of = *p;
    launch("kit_reference", (unsigned)(col_count + 63) / 64, (unsigned)(row_count + 63) / 64,
           (unsigned)p->batch, 256, NULL,
           (void *[]){&of, &a, &b, &rows, &row_count, &cols, &col_count, &sums, &magnitudes});
}

static void matvec(pointer m, int rows, int cols, int64_t ld, int transposed, int format, pointer x,
                   pointer y, pointer squares) {
    const unsigned high = transposed ? (unsigned)(rows + 255) / 256 : (unsigned)rows;
    const unsigned parts = transposed ? (unsigned)(cols + 63) / 64 : 1;
    must(cu.cuMemsetD8_v2(y, 0, 8 * (size_t)rows), "sums are begun");
    if (squares)
        must(cu.cuMemsetD8_v2(squares, 0, 8 * (size_t)rows), "sums are begun");
    launch("kit_matvec", high, parts, 1, 256, NULL,
           (void *[]){&m, &rows, &cols, &ld, &transposed, &format, &x, &y, &squares});
}

/* A (B x). */
static void project(const struct judged *p, pointer a, pointer b, pointer x, pointer y) {
    const pointer middle = reserve(8 * (size_t)p->k);
    matvec(b, p->k, p->n, p->ldb, p->b_along_k, p->bf16, x, middle, 0);
    matvec(a, p->m, p->k, p->lda, p->a_along_m, p->bf16, middle, y, 0);
    must(cu.cuCtxSynchronize(), "a projection");
    release(middle);
}

static pointer drawn_signs(int n, uint64_t seed) {
    double *x = malloc(sizeof *x * (size_t)n);
    for (int i = 0; i < n; i++)
        x[i] = mixed(seed ^ mixed((uint64_t)i)) & 1 ? 1 : -1;
    const pointer at = reserve(8 * (size_t)n);
    must(cu.cuMemcpyHtoD_v2(at, x, 8 * (size_t)n), "signs");
    free(x);
    return at;
}

struct reference reference_make(const struct judged *p, pointer a, pointer b, uint64_t seed) {
    struct reference r = {
        .a = a, .b = b, .every = p->batch > 1 || (double)p->m * p->n * p->k <= judge_every};
    const int rows[] = {r.every ? p->m : PICKS, p->m}, cols[] = {p->n, PICKS};
    for (int i = 0; i < (r.every ? 1 : 2); i++) {
        const int64_t cells = (int64_t)rows[i] * cols[i] * p->batch;
        r.sums[i] = reserve(8 * (size_t)cells), r.magnitudes[i] = reserve(8 * (size_t)cells);
        r.picks[i] = r.every ? 0 : picked(i ? p->n : p->m, seed + (uint64_t)i);
        r.compared += cells;
        refer(p, a, b, i ? 0 : r.picks[0], rows[i], i ? r.picks[1] : 0, cols[i], r.sums[i],
              r.magnitudes[i]);
    }
    for (int i = 0; i < 3 && !r.every; i++) {
        r.signs[i] = drawn_signs(p->n, seed + 17 * (uint64_t)i),
        r.want[i] = reserve(8 * (size_t)p->m);
        project(p, a, b, r.signs[i], r.want[i]);
    }
    must(cu.cuCtxSynchronize(), "the oracle");
    return r;
}

void reference_free(struct reference *r) {
    for (int i = 0; i < 3; i++) {
        if (i < 2)
            release(r->sums[i]), release(r->magnitudes[i]), release(r->picks[i]);
        release(r->signs[i]), release(r->want[i]);
    }
    memset(r, 0, sizeof *r);
}

/* The largest residual of a row of C x in units of its standard deviation, and the root mean square
 * of all. x has random signs, so a row's rounding errors add up like independent ones. */
static void residuals(const struct reference *r, const struct judged *p, pointer before, pointer c,
                      double ideal, double *most, double *rms) {
    const size_t bytes = 8 * (size_t)p->m;
    double *host = malloc(4 * bytes);
    double *want = host, *got = host + p->m, *squares = got + p->m, *old = squares + p->m;
    const pointer y = reserve(bytes), q = reserve(bytes);
    memset(old, 0, bytes);
    for (int i = 0; i < 3; i++) {
        if (p->beta != 0) {
            matvec(before, p->m, p->n, p->ldc, 0, p->format_c, r->signs[i], y, 0);
            must(cu.cuMemcpyDtoH_v2(old, y, bytes), "a projection");
        }
        matvec(c, p->m, p->n, p->ldc, 0, p->format_c, r->signs[i], y, q);
        must(cu.cuMemcpyDtoH_v2(got, y, bytes), "a projection");
        must(cu.cuMemcpyDtoH_v2(squares, q, bytes), "a projection");
        must(cu.cuMemcpyDtoH_v2(want, r->want[i], bytes), "a projection");
        double sum = 0;
        for (int row = 0; row < p->m; row++) {
            const double expected = (double)p->alpha * want[row] + (double)p->beta * old[row];
            const double sigma = ideal * sqrt(squares[row]);
            const double residual = sigma > 0 ? fabs(got[row] - expected) / sigma : 1e300;
            *most = residual <= *most ? *most : residual;
            sum += residual * residual;
        }
        const double mean = sqrt(sum / p->m);
        *rms = mean <= *rms ? *rms : mean;
    }
    release(y), release(q), free(host);
}

const char *judge_c(const struct reference *r, const struct judged *p, pointer before, pointer c) {
    static char said[200];
    static pointer totals;
    struct totals t = {0};
    struct judged of = *p;
    if (!totals)
        totals = reserve(sizeof t);
    must(cu.cuMemcpyHtoD_v2(totals, &t, sizeof t), "totals");
    for (int i = 0; i < (r->every ? 1 : 2); i++) {
        int rows = r->every || i ? p->m : PICKS, cols = r->every || !i ? p->n : PICKS;
        pointer by_row = i ? 0 : r->picks[0], by_col = i ? r->picks[1] : 0;
        pointer sums = r->sums[i], magnitudes = r->magnitudes[i];
        launch("kit_compare", 264, 1, 1, 256, NULL,
               (void *[]){&of, &before, &c, &by_row, &rows, &by_col, &cols, &sums, &magnitudes,
                          &totals});
    }
    must(cu.cuMemcpyDtoH_v2(&t, totals, sizeof t), "the comparison");
    double worst, most = 0, spread = 0;
    memcpy(&worst, &t.worst, 8);
    const double rms = sqrt(t.error2 / t.reference2), ideal = sqrt(t.ideal2 / t.reference2);
    if (t.wrong) {
        snprintf(said, sizeof said,
                 "%llu of %lld elements exceed the error bound, at most by a factor of %.3g",
                 t.wrong, (long long)r->compared, worst);
        return said;
    }
    /* A float C also has the errors of its sums: tensor cores truncate them at each step of 16. */
    const double sums = FLOAT_C ? 0x1p-24 * (4 + p->k / 16.0) : 1e-7;
    if (!(rms <= 1.15 * ideal + sums) && r->compared > 1000) {
        snprintf(said, sizeof said, "error %.3g, but rounding once causes only %.3g", rms, ideal);
        return said;
    }
    if (r->every)
        return NULL;
    residuals(r, p, before, c, FLOAT_C ? 1.5 * fmax(ideal, rms) : ideal, &most, &spread);
    if (!(most <= 7.5))
        snprintf(said, sizeof said, "a row of C x has an error of %.3g standard deviations", most);
    else if (!(spread <= 1.15 + 4 / sqrt(2.0 * p->m)))
        snprintf(said, sizeof said, "C x has an error of %.3g times the rounding error", spread);
    else
        return NULL;
    return said;
}

/* The operands of a judgement. before: C before the call; copy: C after the call on a second
 * stream. */
struct operands {
    struct buffer a, b, c, before, workspace, copy;
};

static void free_all(struct operands *o) {
    struct buffer *each[] = {&o->a, &o->b, &o->c, &o->before, &o->workspace, &o->copy};
    for (int i = 0; i < 6; i++)
        buffer_free(each[i]);
}

static int held_run(const struct arm *arm, const struct judged *p, const struct operands *o,
                    stream first, stream second) {
    static int *released;
    if (!released)
        must(cu.cuMemHostAlloc((void **)&released, sizeof *released, 2), "a flag");
    *released = 0;
    launch("kit_hold", 1, 1, 1, 1, first, (void *[]){&released});
    launch("kit_hold", 1, 1, 1, 1, NULL, (void *[]){&released});
    int status = arm->run(arm, p, o->a.at, o->b.at, o->c.at, o->workspace.at, second);
    must(cu.cuMemcpyDtoDAsync_v2(o->copy.at, o->c.at, o->c.bytes, second), "a copy");
    status = status ? status : cu.cuStreamSynchronize(second);
    *(volatile int *)released = 1;
    return status ? status : cu.cuCtxSynchronize();
}

/* Sets C's elements from `seed` or to poison. The gaps between rows are always poison. */
static void prepare_c(const struct judged *p, struct operands *o, bool keep, uint64_t seed) {
    struct judged of = *p;
    if (p->beta == 0 && keep)
        return;
    must(cu.cuMemsetD8_v2(o->c.at, POISON, o->c.bytes), "poison");
    if (p->beta == 0)
        return;
    fill_normal(o->before.at, c_size(p), seed, p->format_c);
    launch("kit_copy", 264, 1, 1, 256, NULL, (void *[]){&of, &o->before.at, &o->c.at});
}

static const char *judged_runs(const struct arm *arm, const struct judged *p, struct operands *o,
                               uint64_t seed) {
    static stream first, second;
    static char said[300];
    uint64_t found = 0;
    if (!first) {
        must(cu.cuStreamCreate(&first, NON_BLOCKING), "a stream");
        must(cu.cuStreamCreate(&second, NON_BLOCKING), "a stream");
    }
    /* Run 0 has poisoned C and workspace. Run 1 has other data in the same buffers, with C and
     * workspace unchanged. Run 2 repeats the data of run 1 with poison, on a second stream, while
     * the first stream and the legacy stream are blocked. */
    for (int run = 0; run < 3; run++) {
        if (run < 2) {
            fill_normal(o->a.at, a_size(p), seed + 10 * (uint64_t)run, p->bf16);
            fill_normal(o->b.at, b_size(p), seed + 10 * (uint64_t)run + 1, p->bf16);
        }
        prepare_c(p, o, run == 1, seed + 5 + (run > 0));
        if (run != 1)
            must(cu.cuMemsetD8_v2(o->workspace.at, run ? 0x5a : POISON, o->workspace.bytes),
                 "poison");
        const int64_t a_all = a_size(p), b_all = b_size(p);
        const uint64_t a_was = hash(o->a.at, 1, a_all, a_all),
                       b_was = hash(o->b.at, 1, b_all, b_all);
        must(cu.cuCtxSynchronize(), "operands");
        int status = run == 2 ? held_run(arm, p, o, first, second)
                              : arm->run(arm, p, o->a.at, o->b.at, o->c.at, o->workspace.at, first);
        status = status ? status : cu.cuCtxSynchronize();
        if (status) {
            snprintf(said, sizeof said, "the call or the kernel returned status %d", status);
            return said;
        }
        if (!buffer_intact(&o->a) || !buffer_intact(&o->b) || !buffer_intact(&o->c) ||
            !buffer_intact(&o->workspace))
            return "wrote outside a buffer";
        if (p->ldc != p->n &&
            differs(o->c.at, (int64_t)p->m * p->batch, C_WORDS * p->n, C_WORDS * (p->ldc - p->n),
                    C_WORDS * p->ldc, POISON << 8 | POISON))
            return "wrote between the rows of C";
        if (a_was != hash(o->a.at, 1, a_all, a_all) || b_was != hash(o->b.at, 1, b_all, b_all))
            return "changed an input";
        const uint64_t left = hash(run == 2 ? o->copy.at : o->c.at, (int64_t)p->m * p->batch,
                                   C_WORDS * p->n, C_WORDS * p->ldc);
        if (run == 2)
            return left == found ? NULL : "a second call on another stream gave another result";
        found = left;
        struct reference r = reference_make(p, o->a.at, o->b.at, seed + 99);
        const char *wrong = judge_c(&r, p, o->before.at, o->c.at);
        reference_free(&r);
        if (wrong) {
            snprintf(said, sizeof said, "%s%s",
                     run ? "with C unchanged from the previous call: " : "", wrong);
            return said;
        }
    }
    return NULL;
}

const char *judge_arm(const struct arm *arm, const struct judged *p, uint64_t seed, int shift) {
    const size_t off = 2 * (size_t)shift, wanted = arm->needs(arm, p);
    struct operands o = {.a = buffer_make(2 * (size_t)a_size(p), off),
                         .b = buffer_make(2 * (size_t)b_size(p), off),
                         .c = buffer_make(2 * C_WORDS * (size_t)c_size(p), C_WORDS * off),
                         .before = buffer_make(2 * C_WORDS * (size_t)c_size(p), 0),
                         .workspace = buffer_make(wanted ? (wanted + 255) / 256 * 256 : 256, 0),
                         .copy = buffer_make(2 * C_WORDS * (size_t)c_size(p), 0)};
    const char *wrong = judged_runs(arm, p, &o, seed);
    free_all(&o);
    return wrong;
}

static double decoded(uint16_t bits, int bf16) {
    const int exponent = bf16 ? bits >> 7 & 255 : bits >> 10 & 31,
              mantissa = bits & (bf16 ? 127 : 1023);
    const int digits = bf16 ? 7 : 10, bias = bf16 ? 127 : 15;
    const double size =
        ldexp(mantissa + (exponent ? 1 << digits : 0), (exponent ? exponent : 1) - bias - digits);
    return bits >> 15 ? -size : size;
}

static void *fetched(pointer at, size_t bytes) {
    void *host = malloc(bytes);
    must(cu.cuMemcpyDtoH_v2(host, at, bytes), "copy");
    return host;
}

const char *judge_oracle(uint64_t seed) {
    static char said[200];
    for (int form = 0; form < 8; form++) {
        const struct judged p = problem_of(97, 83, 331, 1, form & 1, form >> 1 & 1, form >> 2, 3);
        const size_t cells = (size_t)p.m * (size_t)p.n;
        const pointer a = reserve(2 * (size_t)a_size(&p)), b = reserve(2 * (size_t)b_size(&p));
        const pointer sums = reserve(8 * cells), magnitudes = reserve(8 * cells),
                      y = reserve(8 * (size_t)p.m);
        const pointer x = drawn_signs(p.n, seed);
        fill_normal(a, a_size(&p), seed, p.bf16), fill_normal(b, b_size(&p), seed + 1, p.bf16);
        refer(&p, a, b, 0, p.m, 0, p.n, sums, magnitudes);
        project(&p, a, b, x, y);
        uint16_t *ha = fetched(a, 2 * (size_t)a_size(&p)), *hb = fetched(b, 2 * (size_t)b_size(&p));
        double *hs = fetched(sums, 8 * cells), *hm = fetched(magnitudes, 8 * cells),
               *hy = fetched(y, 8 * (size_t)p.m);
        double *hx = fetched(x, 8 * (size_t)p.n), worst = 0, mean = 0, square = 0;
        for (int r = 0; r < p.m; r++) {
            double row = 0, all = 0;
            for (int c = 0; c < p.n; c++) {
                double sum = 0, size = 0;
                for (int k = 0; k < p.k; k++) {
                    const double term =
                        decoded(ha[p.a_along_m ? k * p.lda + r : r * p.lda + k], p.bf16) *
                        decoded(hb[p.b_along_k ? c * p.ldb + k : k * p.ldb + c], p.bf16);
                    sum += term, size += fabs(term);
                }
                worst = fmax(worst, fabs(sum - hs[r * p.n + c]) / size);
                worst = fmax(worst, fabs(size - hm[r * p.n + c]) / size);
                row += sum * hx[c], all += size;
            }
            worst = fmax(worst, fabs(row - hy[r]) / all);
        }
        for (int64_t i = 0; i < a_size(&p); i++) {
            const double v = decoded(ha[i], p.bf16);
            mean += v / (double)a_size(&p), square += v * v / (double)a_size(&p);
        }
        release(a), release(b), release(sums), release(magnitudes), release(y), release(x);
        free(ha), free(hb), free(hs), free(hm), free(hy), free(hx);
        if (!(worst < 1e-12) || fabs(mean) > 0.04 || fabs(square - 1) > 0.06) {
            snprintf(said, sizeof said,
                     "device and host differ by %.3g; data have mean %.3g, mean square %.3g", worst,
                     mean, square);
            return said;
        }
    }
    return NULL;
}
