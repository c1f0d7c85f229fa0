/* cuBLASLt: the distinct answers to its queries, each an arm. */
#include "cublaslt.h"

#include <stdlib.h>

const char baseline_name[] = "cublaslt";

struct plan {
    struct lt_product product;
    struct lt_algorithm algorithm;
};

size_t baseline_version(void) { return lt_version(); }

static int run(const struct arm *arm, const struct judged *p, const pointer *operands,
               pointer workspace, stream on) {
    const struct plan *of = arm->more;
    return lt_run(&of->product, &of->algorithm, p->alpha, p->beta, operands, workspace, on);
}

static size_t needs(const struct arm *arm, const struct judged *p) {
    return (void)arm, (void)p, LT_SPACE;
}

int baseline_arms(const struct judged *p, struct arm *arms, int most) {
    struct lt_algorithm known[LT_ANSWERS];
    struct lt_product of;
    const int format = p->type == TENSOROP_GEMM_F32_TF32 ? TF32 : p->format;
    const struct lt_matrix a = {format, p->m, p->k, p->lda, p->stride_a, false},
                           a_along_m = {format, p->k, p->m, p->lda, p->stride_a, true},
                           b = {format, p->k, p->n, p->ldb, p->stride_b, false},
                           b_along_k = {format, p->n, p->k, p->ldb, p->stride_b, true},
                           c = {FLOAT_RESULT ? FLOAT : p->format, p->m, p->n, p->ldc, p->stride_c};
    if (!lt_product_make(&of, p->a_along_m ? a_along_m : a, p->b_along_k ? b_along_k : b, c,
                         p->batch))
        return 0;
    const int count = lt_answers(&of, known, most);
    for (int i = 0; i < count; i++) {
        struct plan *own = malloc(sizeof *own);
        *own = (struct plan){of, known[i]};
        arms[i] = (struct arm){
            .name = baseline_name, .number = i, .run = run, .needs = needs, .more = own};
    }
    return count;
}

void baseline_release(struct arm *arms, int count) {
    for (int i = 0; i < count; i++)
        free(arms[i].more), arms[i].more = NULL;
}
