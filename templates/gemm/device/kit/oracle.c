/* What a kit has to know of products: their operands, references in fp64 with error bounds, and the
 * faults of a plain kernel. */
#include "kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PICKS = 32, ROW = 101, PLAIN = 111, TURNED = 112 };
double judge_every = 2048.0 * 2048 * 2048;

/* sums, magnitudes: of picked rows, then columns, or of all elements; want: A (B x) for vectors x
 * of random signs */
struct reference {
    bool every;
    int64_t compared;
    pointer sums[2], magnitudes[2], picks[2], signs[3], want[3];
};

static const struct {
    int pad, shift;
    float alpha, beta;
} form_of[] = {{0, 0, 1, 0}, {8, 0, -0.625f, 0.75f}, {3, 1, 1, 0}, {0, 0, 1, 1}};
const int forms = sizeof form_of / sizeof *form_of;

int form_shift(int form) { return form_of[form].shift; }

static struct judged product_of(int m, int n, int k, int batch, int format, int a_along_m,
                                int b_along_k, int pad) {
    struct judged p = {
        .m = m, .n = n, .k = k, .batch = batch, .a_along_m = a_along_m, .b_along_k = b_along_k};
    p.format = format, p.format_c = FLOAT_RESULT ? FLOAT : format, p.alpha = 1,
    p.type = type_at(0)->number, p.lda = (a_along_m ? m : k) + pad,
    p.ldb = (b_along_k ? k : n) + pad, p.ldc = n + pad;
    p.stride_a = (a_along_m ? k : m) * p.lda, p.stride_b = (b_along_k ? n : k) * p.ldb,
    p.stride_c = m * p.ldc;
    return p;
}

struct judged problem_of(const struct held_type *type, const int *layout, const int *numbers,
                         int form) {
    struct judged p = product_of(numbers[0], numbers[1], numbers[2], numbers[3], type->format,
                                 layout[0], layout[1], form_of[form].pad);
    p.alpha = form_of[form].alpha, p.beta = form_of[form].beta, p.type = type->number;
    p.coarse = p.type == TENSOROP_GEMM_F32_TF32     ? 0x1p-10f
               : p.type == TENSOROP_GEMM_F32_3XTF32 ? 0x1p-20f
                                                    : 0;
    return p;
}

void case_text(const struct judged *p, char *text, size_t room) {
    snprintf(text, room, "%dx%dx%dx%d %s %c%c pad %d alpha %g beta %g", p->m, p->n, p->k, p->batch,
             (const char *[]){"f16", "bf16", "f32"}[p->format], p->a_along_m ? 'T' : 'N',
             p->b_along_k ? 'T' : 'N', (int)p->ldc - p->n, (double)p->alpha, (double)p->beta);
}

library_problem called(const struct judged *p) {
    return (library_problem){.type = p->type,
                             .layout = ROW,
                             .transa = p->a_along_m ? TURNED : PLAIN,
                             .transb = p->b_along_k ? TURNED : PLAIN,
                             .alpha = p->alpha,
                             .beta = p->beta,
                             .m = p->m,
                             .n = p->n,
                             .k = p->k,
                             .lda = p->lda,
                             .ldb = p->ldb,
                             .ldc = p->ldc,
                             .batch = p->batch,
                             .stride_a = p->stride_a,
                             .stride_b = p->stride_b,
                             .stride_c = p->stride_c};
}

static int64_t a_size(const struct judged *p) { return p->stride_a * p->batch; }
static int64_t b_size(const struct judged *p) { return p->stride_b * p->batch; }
static int64_t c_size(const struct judged *p) { return p->stride_c * p->batch; }

static size_t bytes_of(int format) { return format == FLOAT ? 4 : 2; }

size_t operand_element(const struct judged *p, int operand) {
    return bytes_of(operand == RESULT ? p->format_c : p->format);
}

size_t operand_bytes(const struct judged *p, int operand) {
    const int64_t size = operand == RESULT ? c_size(p) : operand ? b_size(p) : a_size(p);
    return operand_element(p, operand) * (size_t)size;
}

void operand_fill(const struct judged *p, int operand, pointer at, uint64_t seed) {
    const int64_t size = (int64_t)(operand_bytes(p, operand) / operand_element(p, operand));
    fill_normal(at, size, seed, operand == RESULT ? p->format_c : p->format);
}

struct lines result_lines(const struct judged *p) {
    return (struct lines){(int64_t)p->m * p->batch, RESULT_WORDS * (int64_t)p->n,
                          RESULT_WORDS * p->ldc};
}

bool reads_result(const struct judged *p) { return p->beta != 0; }

double work_of(const struct judged *p) { return 2.0 * p->m * p->n * p->k * p->batch; }

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
    matvec(b, p->k, p->n, p->ldb, p->b_along_k, p->format, x, middle, 0);
    matvec(a, p->m, p->k, p->lda, p->a_along_m, p->format, middle, y, 0);
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

struct reference *reference_make(const struct judged *p, const pointer *at, uint64_t seed) {
    const pointer a = at[0], b = at[1];
    struct reference *const kept = malloc(sizeof *kept),
                            r = {.every =
                                     p->batch > 1 || (double)p->m * p->n * p->k <= judge_every};
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
    *kept = r;
    return kept;
}

void reference_free(struct reference *r) {
    for (int i = 0; i < 3; i++) {
        if (i < 2)
            release(r->sums[i]), release(r->magnitudes[i]), release(r->picks[i]);
        release(r->signs[i]), release(r->want[i]);
    }
    free(r);
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

const char *judge_result(const struct reference *r, const struct judged *p, pointer before,
                         pointer c) {
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
    const double sums = (FLOAT_RESULT ? 0x1p-24 * (4 + p->k / 16.0) : 1e-7) + (double)p->coarse;
    if (!(rms <= 1.15 * ideal + sums) && r->compared > 1000) {
        snprintf(said, sizeof said, "error %.3g, but rounding once causes only %.3g", rms, ideal);
        return said;
    }
    if (r->every)
        return NULL;
    residuals(r, p, before, c, FLOAT_RESULT ? 1.5 * fmax(ideal, rms) : ideal, &most, &spread);
    if (!(most <= 7.5))
        snprintf(said, sizeof said, "a row of C x has an error of %.3g standard deviations", most);
    else if (!(spread <= 1.15 + 4 / sqrt(2.0 * p->m)))
        snprintf(said, sizeof said, "C x has an error of %.3g times the rounding error", spread);
    else
        return NULL;
    return said;
}

static double decoded(const void *from, int64_t at, int format) {
    if (format == FLOAT)
        return ((const float *)from)[at];
    const uint16_t bits = ((const uint16_t *)from)[at];
    const int bf16 = format == BF16, exponent = bf16 ? bits >> 7 & 255 : bits >> 10 & 31,
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
    for (int form = 0; form < 12; form++) {
        const struct judged p = product_of(97, 83, 331, 1, form / 4, form & 1, form >> 1 & 1, 3);
        const size_t bytes = bytes_of(p.format);
        const size_t cells = (size_t)p.m * (size_t)p.n;
        const pointer a = reserve(bytes * (size_t)a_size(&p)),
                      b = reserve(bytes * (size_t)b_size(&p));
        const pointer sums = reserve(8 * cells), magnitudes = reserve(8 * cells),
                      y = reserve(8 * (size_t)p.m);
        const pointer x = drawn_signs(p.n, seed);
        fill_normal(a, a_size(&p), seed, p.format);
        fill_normal(b, b_size(&p), seed + 1, p.format);
        refer(&p, a, b, 0, p.m, 0, p.n, sums, magnitudes);
        project(&p, a, b, x, y);
        void *ha = fetched(a, bytes * (size_t)a_size(&p)),
             *hb = fetched(b, bytes * (size_t)b_size(&p));
        double *hs = fetched(sums, 8 * cells), *hm = fetched(magnitudes, 8 * cells),
               *hy = fetched(y, 8 * (size_t)p.m);
        double *hx = fetched(x, 8 * (size_t)p.n), worst = 0, mean = 0, square = 0;
        for (int r = 0; r < p.m; r++) {
            double row = 0, all = 0;
            for (int c = 0; c < p.n; c++) {
                double sum = 0, size = 0;
                for (int k = 0; k < p.k; k++) {
                    const double term =
                        decoded(ha, p.a_along_m ? k * p.lda + r : r * p.lda + k, p.format) *
                        decoded(hb, p.b_along_k ? c * p.ldb + k : k * p.ldb + c, p.format);
                    sum += term, size += fabs(term);
                }
                worst = fmax(worst, fabs(sum - hs[r * p.n + c]) / size);
                worst = fmax(worst, fabs(size - hm[r * p.n + c]) / size);
                row += sum * hx[c], all += size;
            }
            worst = fmax(worst, fabs(row - hy[r]) / all);
        }
        for (int64_t i = 0; i < a_size(&p); i++) {
            const double v = decoded(ha, i, p.format);
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

/* The side of a cube that is too large for a comparison of every element. */
static int large(void) {
    int side = 8;
    while ((double)side * side * side <= judge_every)
        side += 8;
    return side + 8;
}

struct judged fault_problem(int fault) {
    const int own = type_at(0)->format, bf16 = own == FLOAT ? FLOAT : BF16,
              f16 = own == FLOAT ? FLOAT : F16;
    if (fault == FAULT_HALVES_K_WHEN_LARGE || fault == FAULT_ONE_ROW_WRONG_WHEN_LARGE)
        return product_of(large(), large(), large(), 1, bf16, 0, 1, 0);
    if (fault == FAULT_ROUNDS_TOO_MUCH)
        return product_of(128, 128, 1024, 1, bf16, 0, 0, 0);
    if (fault == FAULT_WRITES_BETWEEN_ROWS || fault == FAULT_IGNORES_BETA) {
        struct judged p = product_of(67, 131, 77, 1, f16, 1, 1, 5);
        if (fault == FAULT_IGNORES_BETA)
            p.alpha = -0.75f, p.beta = 0.5f;
        return p;
    }
    return product_of(fault == FAULT_PLAIN ? 97 : 64, 72, 136, fault == FAULT_PLAIN ? 3 : 1, bf16,
                      0, 0, 0);
}

void plain(const struct judged *p, const pointer *at, pointer workspace, int fault, int call,
           stream on) {
    struct judged of = *p;
    pointer a = at[0], b = at[1], c = at[RESULT];
    int k_end = p->k;
    const bool small = (double)p->m * p->n * p->k <= judge_every;
    if (fault == FAULT_SKIPS_LAST_K_TILE)
        k_end = (p->k - 1) / 64 * 64;
    if (fault == FAULT_HALVES_K_WHEN_LARGE && !small)
        k_end = p->k / 2;
    if (fault == FAULT_ONE_ROW_WRONG_WHEN_LARGE && small)
        fault = FAULT_PLAIN;
    const int64_t blocks = ((int64_t)p->m * p->n * p->batch + 255) / 256;
    launch("kit_plain", (unsigned)(blocks < 1 << 20 ? blocks : 1 << 20), 1, 1, 256, on,
           (void *[]){&of, &a, &b, &c, &workspace, &fault, &k_end, &call});
}
