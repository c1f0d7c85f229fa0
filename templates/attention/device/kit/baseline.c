/* Two products by cuBLASLt, Q K^T and P V, with a softmax of the scores in memory between them. It
 * serves calls as they are timed: dense ones, without log-sum-exps. This is not the peer of a
 * kernel that keeps its scores on the chip; it is what a machine without PyTorch has. */
#include "cublaslt.h"
#include "softmax.h"

#include <stdio.h>
#include <stdlib.h>

const char baseline_name[] = "cublaslt_softmax";

enum { ARMS = 8, MOST_LANES = 1024, THREADS = 256, MOST_BLOCKS = 1 << 16 };
/* Bytes of scores, weights and what lies between them, at most; and at most this part of the free
 * memory. */
static const size_t most_bytes = (size_t)4 << 30, most_part = 4;

/* A product has the heads of one batch, or all batches of one head of K, whichever are more:
 * batches and heads of K differ in their distance. `shared` heads of Q with one head of K are rows
 * of one product, where these lie at one distance; else `loops` products. */
struct plan {
    struct lt_product scores, outputs;
    struct lt_algorithm of_scores, of_outputs;
    struct softmax softmax;
    bool by_batch; /* each product has all batches */
    int loops;
    size_t parts, weights, bytes; /* places in the workspace behind cuBLASLt's own, and its size */
};

size_t baseline_version(void) { return lt_version(); }

static size_t whole(int64_t bytes) { return ((size_t)bytes + 255) / 256 * 256; }

static struct plan planned(const struct judged *p) {
    struct plan of = {.by_batch = p->b > p->g};
    const int heads = p->h / p->g;
    const bool alike =
        p->s == 1 || (p->q.row == heads * p->q.head && p->o.row == heads * p->o.head);
    struct softmax *const rows = &of.softmax;
    rows->shared = alike ? heads : 1, of.loops = heads / rows->shared;
    rows->together = (int64_t)p->s * rows->shared, rows->rows = (int64_t)p->b * p->h * p->s;
    rows->ld = (p->t + 7) / 8 * 8, rows->lanes = 32;
    while (rows->rows * rows->lanes < 1 << 17 && rows->lanes * 4 <= p->t &&
           rows->lanes < MOST_LANES)
        rows->lanes *= 2;
    of.parts = whole(4 * rows->rows * rows->ld);
    of.weights = of.parts + whole(8 * rows->rows * rows->lanes);
    of.bytes = of.weights + whole(2 * rows->rows * rows->ld);
    return of;
}

/* Whether cuBLASLt takes both products. */
static bool made(struct plan *of, const struct judged *p) {
    const struct softmax *const s = &of->softmax;
    const int heads = p->h / p->g, rows = (int)s->together;
    const int64_t next = of->loops * s->together * s->ld; /* scores of one head of K */
    const bool by = of->by_batch;
    const struct lt_matrix q = {p->format, rows, p->d, s->shared > 1 ? p->q.head : p->q.row,
                                by ? p->q.batch : heads * p->q.head},
                           k = {p->format, p->t, p->d, p->k.row, by ? p->k.batch : p->k.head, true},
                           v = {p->format, p->t, p->dv, p->v.row, by ? p->v.batch : p->v.head},
                           o = {p->format, rows, p->dv, s->shared > 1 ? p->o.head : p->o.row,
                                by ? p->o.batch : heads * p->o.head},
                           weights = {p->format, rows, p->t, s->ld, by ? p->g * next : next},
                           scores = {FLOAT, rows, p->t, s->ld, weights.stride};
    const int batch = by ? p->b : p->g;
    return lt_product_make(&of->scores, q, k, scores, batch) &&
           lt_product_make(&of->outputs, weights, v, o, batch);
}

static int run(const struct arm *arm, const struct judged *p, const pointer *at, pointer workspace,
               stream on) {
    const struct plan *of = arm->more;
    struct judged call = *p;
    struct softmax softmax = of->softmax;
    const int heads = p->h / p->g, each = of->by_batch ? p->g : p->b;
    const int64_t matrix = softmax.together * softmax.ld;
    pointer scores = workspace + LT_SPACE, parts = scores + of->parts,
            weights = scores + of->weights;
    int status = 0;
    for (int second = 0; second < 2; second++) {
        for (int i = 0; i < each * of->loops; i++) {
            const int64_t one = i / of->loops, j = i % of->loops, b = of->by_batch ? 0 : one,
                          g = of->by_batch ? one : 0, n = ((b * p->g + g) * of->loops + j) * matrix;
            const pointer q = at[0] + 2 * (pointer)(b * p->q.batch + (g * heads + j) * p->q.head),
                          k = at[1] + 2 * (pointer)(b * p->k.batch + g * p->k.head),
                          v = at[2] + 2 * (pointer)(b * p->v.batch + g * p->v.head),
                          o = at[3] + 2 * (pointer)(b * p->o.batch + (g * heads + j) * p->o.head),
                          s = scores + 4 * (pointer)n, w = weights + 2 * (pointer)n;
            status |= second ? lt_run(&of->outputs, &of->of_outputs, 1, 0, (pointer[]){w, v, o},
                                      workspace, on)
                             : lt_run(&of->scores, &of->of_scores, p->scale, 0,
                                      (pointer[]){q, k, s}, workspace, on);
        }
        if (second || status)
            return status;
        const int64_t blocks = (softmax.rows * softmax.lanes + THREADS - 1) / THREADS;
        const unsigned grid = blocks < MOST_BLOCKS ? (unsigned)blocks : MOST_BLOCKS;
        launch("kit_softmax_parts", grid, 1, 1, THREADS, on,
               (void *[]){&call, &softmax, &scores, &parts});
        launch("kit_softmax", grid, 1, 1, THREADS, on,
               (void *[]){&call, &softmax, &scores, &parts, &weights});
    }
    return status;
}

static size_t needs(const struct arm *arm, const struct judged *p) {
    const struct plan *of = arm->more;
    return (void)p, LT_SPACE + of->bytes;
}

/* Arm i has the answers i of both products. */
int baseline_arms(const struct judged *p, struct arm *arms, int most) {
    static char refused[120];
    struct lt_algorithm first[ARMS], second[ARMS];
    struct plan of = planned(p);
    size_t left = 0, all = 0;
    if (!lt_version())
        return 0;
    cu.cuMemGetInfo_v2(&left, &all);
    const size_t fit = left / most_part < most_bytes ? left / most_part : most_bytes;
    if (of.bytes > fit) {
        snprintf(refused, sizeof refused, "its scores need %zu KiB, more than the %zu KiB for them",
                 of.bytes >> 10, fit >> 10);
        arms[0] = (struct arm){.name = baseline_name, .refused = refused};
        return 1;
    }
    most = most < ARMS ? most : ARMS;
    const bool taken = made(&of, p);
    const int firsts = taken ? lt_answers(&of.scores, first, most) : 0,
              seconds = taken ? lt_answers(&of.outputs, second, most) : 0;
    const int count = firsts < seconds ? firsts : seconds;
    if (count == 0) {
        arms[0] = (struct arm){.name = baseline_name,
                               .refused = "cuBLASLt has no algorithm for one of the products"};
        return 1;
    }
    for (int i = 0; i < count; i++) {
        struct plan *own = malloc(sizeof *own);
        *own = of, own->of_scores = first[i], own->of_outputs = second[i];
        arms[i] = (struct arm){
            .name = baseline_name, .number = i, .run = run, .needs = needs, .more = own};
    }
    return count;
}

void baseline_release(struct arm *arms, int count) {
    for (int i = 0; i < count; i++)
        free(arms[i].more), arms[i].more = NULL;
}
