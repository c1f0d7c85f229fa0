/* What a kit has to know of attention: operands, references in fp64 with error bounds, and the
 * faults of a plain kernel. */
#include "kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The scores of picked rows take this many doubles, twice; of larger problems some rows are
 * compared. */
static const int64_t most_scores = 1 << 25;
double judge_every = 2048.0 * 2048 * 2048;

struct reference {
    struct picked of;
    pointer rows, found;
};

/* How sequences lie: in batches, one behind the other, or keys in pages of 1 << page keys. */
enum { RAGGED = 1, PAGED = 2 };
/* Places of operands, scale (1: the usual one), and masks of problems with masks. */
static const struct {
    int by_head, pad, shift, lse, align, left, right;
    float scale;
    int lie, page;
} form_of[] = {{0, 0, 0, 0, 0, -1, 0, 1, 0, 0},
               {1, 8, 0, 1, 0, 40, 0, -0.3f, 0, 0},
               {0, 3, 1, 1, 1, -1, 0, 1, 0, 0},
               {0, 16, 0, 1, 0, 7, 21, 0.05f, 0, 0},
               {1, 0, 0, 1, 1, 19, -1, 0, 0, 0},
               {0, 0, 0, 1, 0, -1, 0, 1, RAGGED, 0},
               {1, 3, 1, 1, 1, 9, 4, 1, RAGGED, 0},
               {0, 8, 0, 1, 0, -1, 0, 1, PAGED, 6},
               {1, 0, 0, 0, 0, 33, 1, 0, RAGGED | PAGED, 4},
               {0, 1, 1, 1, 0, -1, 0, 1, PAGED, 8}};
const int forms = sizeof form_of / sizeof *form_of;

int form_shift(int form) { return form_of[form].shift; }

static struct lying lying(const struct judged *p, int heads, int rows, int dim) {
    const int64_t row = (p->by_head ? dim : (int64_t)heads * dim) + p->pad;
    if (p->by_head)
        return (struct lying){heads * rows * row, row, rows * row};
    return (struct lying){rows * row, row, dim};
}

static uint64_t uploaded(pointer *at, const int *numbers, int count) {
    must(cu.cuMemcpyHtoD_v2(*at, numbers, 4 * (size_t)count), "numbers of sequences");
    *at += 4 * (size_t)count;
    return *at - 4 * (size_t)count;
}

/* Places of a problem whose sequences have up to s queries and t keys; some have none. */
static void laid_out(struct judged *p, int lie, int page) {
    static pointer room;
    static size_t size;
    const int n = p->b + (lie & RAGGED ? 2 : 0), most = ((p->t - 1) >> page) + 2;
    const size_t bytes = 4 * (size_t)(n * (most + 3) + 2);
    int *const starts_q = calloc(bytes, 2), *const starts_k = starts_q + n + 1;
    int *const lengths = starts_k + n + 1, *const pages = lengths + n;
    p->sequences = n, p->longest = p->s, p->page = page, p->pages_row = most;
    for (int i = 0, used = n * most; i < n; i++) {
        const int of_q[] = {p->s, 0, p->s / 2 + 1, 1},
                  of_k[] = {p->t, p->t / 2 + 1, p->t / 3 + 1, 0};
        lengths[i] = of_k[lie & RAGGED ? i % 4 : i % 2];
        starts_q[i + 1] = starts_q[i] + of_q[i % 4], starts_k[i + 1] = starts_k[i] + lengths[i];
        for (int j = 0; j < most; j++)
            pages[i * most + j] = --used;
    }
    p->keys = p->t, p->parts = p->b;
    p->starts_q = p->starts_k = p->lengths = p->pages = 0;
    if (lie && bytes > size) {
        if (room)
            release(room);
        room = reserve(size = bytes);
    }
    pointer at = room;
    if (lie & RAGGED) {
        p->b = 1, p->s = starts_q[n];
        p->starts_q = uploaded(&at, starts_q, n + 1);
    }
    if (lie & PAGED) {
        p->keys = 1 << page, p->parts = n * most;
        p->lengths = uploaded(&at, lengths, n), p->pages = uploaded(&at, pages, n * most);
    } else if (lie & RAGGED) {
        p->keys = starts_k[n], p->parts = 1;
        p->starts_k = uploaded(&at, starts_k, n + 1);
    }
    free(starts_q);
    p->q = lying(p, p->h, p->s, p->d), p->o = lying(p, p->h, p->s, p->dv);
    p->k = lying(p, p->g, p->keys, p->d), p->v = lying(p, p->g, p->keys, p->dv);
}

/* Log-sum-exps of the problem that is judged. */
static struct buffer sums;

static pointer room_for_sums(const struct judged *p) {
    const size_t bytes = 4 * (size_t)p->b * (size_t)p->h * (size_t)p->s;
    if (sums.bytes != bytes) {
        if (sums.base)
            buffer_free(&sums);
        sums = buffer_make(bytes, 0);
    }
    must(cu.cuMemsetD8_v2(sums.at, POISON, sums.bytes), "poison");
    return sums.at;
}

struct judged problem_of(const struct held_type *type, const int *layout, const int *numbers,
                         int form) {
    struct judged p = {.b = numbers[0], .h = numbers[1], .g = numbers[2], .s = numbers[3]};
    p.t = numbers[4], p.d = numbers[5], p.dv = numbers[6];
    p.format = type->format, p.type = type->number;
    p.by_head = form_of[form].by_head, p.pad = form_of[form].pad;
    p.scale = form_of[form].scale != 1 ? form_of[form].scale : (float)(1 / sqrt(p.d));
    p.align = layout[0] ? form_of[form].align : 0;
    p.left = layout[0] ? form_of[form].left : -1, p.right = layout[0] ? form_of[form].right : -1;
    laid_out(&p, form_of[form].lie, form_of[form].page);
    p.lse = form_of[form].lse ? room_for_sums(&p) : 0;
    return p;
}

void case_text(const struct judged *p, char *text, size_t room) {
    snprintf(text, room,
             "b%dh%dg%ds%dt%dd%dv%d %s %s pad %d align %d left %d right %d scale %g%s%s%s", p->b,
             p->h, p->g, p->s, p->t, p->d, p->dv, p->format == BF16 ? "bf16" : "f16",
             p->by_head ? "bhsd" : "bshd", p->pad, p->align, p->left, p->right, (double)p->scale,
             p->lse ? " lse" : "", p->starts_q ? " ragged" : "", p->pages ? " paged" : "");
}

library_problem called(const struct judged *p) {
    return (library_problem){.type = p->type,
                             .align = p->align | (p->dv == p->d ? 0 : TENSOROP_ATTENTION_V_DIM),
                             .batch = p->sequences,
                             .heads = p->h,
                             .key_heads = p->g,
                             .queries = p->s,
                             .keys = p->starts_k ? p->keys : p->t,
                             .dim = p->d,
                             .v_dim = p->dv,
                             .q_batch = p->q.batch,
                             .q_row = p->q.row,
                             .q_head = p->q.head,
                             .k_batch = p->k.batch,
                             .k_row = p->k.row,
                             .k_head = p->k.head,
                             .v_batch = p->v.batch,
                             .v_row = p->v.row,
                             .v_head = p->v.head,
                             .o_batch = p->o.batch,
                             .o_row = p->o.row,
                             .o_head = p->o.head,
                             .scale = (double)p->scale,
                             .left = p->left,
                             .right = p->right,
                             .lse = (float *)(uintptr_t)p->lse,
                             .starts_q = (const int32_t *)(uintptr_t)p->starts_q,
                             .starts_k = (const int32_t *)(uintptr_t)p->starts_k,
                             .lengths = (const int32_t *)(uintptr_t)p->lengths,
                             .pages = (const int32_t *)(uintptr_t)p->pages,
                             .most_queries = p->longest,
                             .most_keys = p->t,
                             .page = p->pages ? 1 << p->page : 0,
                             .pages_row = p->pages_row};
}

size_t operand_element(const struct judged *p, int operand) { return (void)p, (void)operand, 2; }

size_t operand_bytes(const struct judged *p, int operand) {
    const struct lying *const of[] = {&p->q, &p->k, &p->v, &p->o};
    const int batches = operand == 1 || operand == 2 ? p->parts : p->b;
    return 2 * (size_t)batches * (size_t)of[operand]->batch;
}

void operand_fill(const struct judged *p, int operand, pointer at, uint64_t seed) {
    fill_normal(at, (int64_t)operand_bytes(p, operand) / 2, seed, p->format);
}

struct lines result_lines(const struct judged *p) {
    const int64_t rows = (int64_t)p->b * p->s * (p->by_head ? p->h : 1);
    return (struct lines){rows, p->o.row - p->pad, p->o.row};
}

bool reads_result(const struct judged *p) { return (void)p, false; }

/* Queries see the same keys as in templates/attention/reference.py. */
double work_of(const struct judged *p) {
    double pairs = 0;
    for (int i = 0; i < p->s; i++) {
        const int64_t own = i + (p->align ? 0 : (int64_t)p->t - p->s);
        const int64_t low = p->left < 0 || own < p->left ? 0 : own - p->left;
        const int64_t high = p->right < 0 || own + p->right >= p->t ? p->t : own + p->right + 1;
        pairs += high > low ? (double)(high - low) : 0;
    }
    return 2.0 * p->b * p->h * (p->d + p->dv) * pairs;
}

struct reference *reference_make(const struct judged *p, const pointer *at, uint64_t seed) {
    struct reference *const r = malloc(sizeof *r);
    struct judged of = *p;
    pointer q = at[0], k = at[1], v = at[2];
    const int64_t rows = (int64_t)p->b * p->h * p->s;
    const int64_t fit = p->t ? most_scores / p->t : rows;
    const int64_t step = (rows + (fit ? fit : 1) - 1) / (fit ? fit : 1);
    r->of =
        (struct picked){step, rows / step, step > 1 ? (int64_t)(mixed(seed) % (uint64_t)step) : 0};
    pointer scores = reserve(8 * (size_t)(r->of.count * p->t)),
            sizes = reserve(8 * (size_t)(r->of.count * p->t));
    r->rows = reserve(24 * (size_t)r->of.count),
    r->found = reserve(24 * (size_t)(r->of.count * p->dv));
    launch("kit_scores", 2112, 1, 1, 256, NULL, (void *[]){&of, &r->of, &q, &k, &scores, &sizes});
    launch("kit_weights", 264, 1, 1, 128, NULL, (void *[]){&of, &r->of, &scores, &sizes, &r->rows});
    launch("kit_outputs", 2112, 1, 1, 128, NULL,
           (void *[]){&of, &r->of, &v, &scores, &sizes, &r->rows, &r->found});
    must(cu.cuCtxSynchronize(), "the oracle");
    release(scores), release(sizes);
    return r;
}

void reference_free(struct reference *r) { release(r->rows), release(r->found), free(r); }

const char *judge_result(const struct reference *r, const struct judged *p, pointer before,
                         pointer o) {
    static char said[200];
    static pointer totals;
    struct totals t = {0};
    struct judged of = *p;
    struct picked rows = r->of;
    pointer sums_of_rows = r->rows, found = r->found;
    double worst;
    if (!totals)
        totals = reserve(sizeof t);
    must(cu.cuMemcpyHtoD_v2(totals, &t, sizeof t), "totals");
    launch("kit_compare", 1056, 1, 1, 128, NULL,
           (void *[]){&of, &rows, &o, &sums_of_rows, &found, &totals});
    must(cu.cuMemcpyDtoH_v2(&t, totals, sizeof t), "the comparison");
    memcpy(&worst, &t.worst, 8);
    if (p->lse) { /* the next call must write it anew */
        if (!buffer_intact(&sums))
            return "wrote outside the log-sum-exps";
        must(cu.cuMemsetD8_v2(sums.at, POISON, sums.bytes), "poison");
    }
    if (t.wrong) {
        snprintf(said, sizeof said,
                 "%llu of %lld elements and log-sum-exps exceed the error bound, at most by a "
                 "factor of %.3g",
                 t.wrong, (long long)(r->of.count * p->dv), worst);
        return (void)before, said;
    }
    /* Rounding weights and results once causes `ideal2`; the bound allows all errors to add up. */
    if (r->of.count * p->dv > 1000 && !(t.error2 <= 1.5 * 1.5 * t.ideal2)) {
        snprintf(said, sizeof said,
                 "the error is %.3g times the rounding error of weights and results",
                 sqrt(t.error2 / t.ideal2));
        return said;
    }
    return NULL;
}

static double decoded(uint16_t bits) { /* of bf16 */
    const uint32_t word = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &word, 4);
    return (double)value;
}

static void *fetched(pointer at, size_t bytes) {
    void *host = malloc(bytes);
    must(cu.cuMemcpyDtoH_v2(host, at, bytes), "copy");
    return host;
}

static struct judged sample(int b, int h, int g, int s, int t, int d, int dv, int lie) {
    struct judged p = {.b = b, .h = h, .g = g, .s = s, .t = t, .d = d, .dv = dv, .format = BF16};
    p.type = TENSOROP_ATTENTION_BF16, p.scale = (float)(1 / sqrt(d)), p.left = 60, p.right = 2;
    laid_out(&p, lie, 4);
    return p;
}

/* A small problem on the host, row by row. */
const char *judge_oracle(uint64_t seed) {
    static char said[200];
    const struct judged p = sample(2, 4, 2, 9, 70, 24, 40, 0);
    pointer at[3];
    uint16_t *host[3];
    double worst = 0;
    for (int i = 0; i < 3; i++) {
        at[i] = reserve(operand_bytes(&p, i));
        operand_fill(&p, i, at[i], seed + (uint64_t)i);
        host[i] = fetched(at[i], operand_bytes(&p, i));
    }
    struct reference *r = reference_make(&p, at, seed);
    double *found = fetched(r->found, 24 * (size_t)(r->of.count * p.dv));
    for (int row = 0; row < p.b * p.h * p.s; row++) {
        const int b = row / p.s / p.h, h = row / p.s % p.h, i = row % p.s, own = i + p.t - p.s;
        double w[70], total = 0;
        for (int j = 0; j < p.t; j++) {
            double score = 0;
            for (int c = 0; c < p.d; c++)
                score += decoded(host[0][b * p.q.batch + i * p.q.row + h * p.q.head + c]) *
                         decoded(host[1][b * p.k.batch + j * p.k.row + h / 2 * p.k.head + c]);
            w[j] = j < own - p.left || j > own + p.right ? 0 : exp((double)p.scale * score);
            total += w[j];
        }
        for (int c = 0; c < p.dv; c++) {
            double o = 0;
            for (int j = 0; j < p.t; j++)
                o += w[j] / total *
                     decoded(host[2][b * p.v.batch + j * p.v.row + h / 2 * p.v.head + c]);
            worst = fmax(worst, fabs(o - found[3 * (row * p.dv + c)]));
        }
    }
    reference_free(r), free(found);
    for (int i = 0; i < 3; i++)
        release(at[i]), free(host[i]);
    if (worst < 1e-10)
        return NULL;
    snprintf(said, sizeof said, "device and host differ by %.3g", worst);
    return said;
}

struct judged fault_problem(int fault) {
    const bool of_cache = fault == FAULT_ONE_KEY_TOO_MANY || fault == FAULT_READS_ANOTHER_SEQUENCE;
    struct judged p = fault == FAULT_SUMS_IN_16_BITS
                          ? sample(1, 2, 1, 20, 1000, 32, 32, 0)
                          : sample(1, 2, 1, 40, 150, 32, 32, of_cache ? RAGGED | PAGED : 0);
    if (fault == FAULT_SUMS_IN_16_BITS || of_cache)
        p.left = -1, p.right = -1; /* many blocks */
    p.lse = fault == FAULT_PLAIN || fault == FAULT_FORGETS_THE_LOG_SUM_EXP ? room_for_sums(&p) : 0;
    return p;
}

void plain(const struct judged *p, const pointer *at, pointer workspace, int fault, int call,
           stream on) {
    struct judged of = *p;
    pointer q = at[0], k = at[1], v = at[2], o = at[RESULT];
    (void)workspace;
    launch("kit_plain", 1056, 1, 1, 128, on, (void *[]){&of, &q, &k, &v, &o, &fault, &call});
}
