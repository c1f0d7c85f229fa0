/* The functions that are judged and timed: each variant of the library, and the kit's plain kernel
 * with its faults. */
#include "kit.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROW = 101, PLAIN = 111, TURNED = 112 };

static tensorop_gemm_handle handle;

void variants_open(void) {
    const int status = tensorop_gemm_create(&handle, 0);
    if (status) {
        fprintf(stderr, "kit: %s\n", tensorop_gemm_message(status));
        exit(3);
    }
}

static struct tensorop_gemm_problem called(const struct judged *p) {
    return (struct tensorop_gemm_problem){.type =
                                              (p->bf16 ? TENSOROP_GEMM_BF16 : TENSOROP_GEMM_F16) +
                                              FLOAT_C * TENSOROP_GEMM_BF16_F32,
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

/* Addresses with the alignment of a call, for queries before the operands exist. */
static void *like(int bytes) { return (void *)(uintptr_t)(4096 + bytes); }

static int asked(int variant, const struct judged *p, int shift) {
    const struct tensorop_gemm_problem problem = called(p);
    must(tensorop_gemm_force(handle, variant), "a variant is forced");
    return tensorop_gemm_chosen_variant(handle, &problem, like(2 * shift), like(2 * shift),
                                        like(2 * C_WORDS * shift), SIZE_MAX);
}

bool variant_serves(int variant, const struct judged *p, int shift) {
    return asked(variant, p, shift) >= 0;
}

int variant_chosen(const struct judged *p) { return asked(-1, p, 0); }

/* Queries the workspace of this call first, as a user does. */
static int run_variant(const struct arm *arm, const struct judged *p, pointer a, pointer b,
                       pointer c, pointer workspace, stream on) {
    const struct tensorop_gemm_problem problem = called(p);
    void *at[] = {(void *)(uintptr_t)a, (void *)(uintptr_t)b, (void *)(uintptr_t)c};
    size_t bytes = 0;
    int status = tensorop_gemm_force(handle, arm->number);
    if (!status)
        status = tensorop_gemm_workspace(handle, &problem, at[0], at[1], at[2], &bytes);
    if (!status)
        status = tensorop_gemm_ex(handle, on, &problem, at[0], at[1], at[2],
                                  bytes ? (void *)(uintptr_t)workspace : NULL, bytes);
    if (status)
        fprintf(stderr, "kit: %s: %s\n", arm->name, tensorop_gemm_message(status));
    return status;
}

static size_t variant_needs(const struct arm *arm, const struct judged *p) {
    const struct tensorop_gemm_problem problem = called(p);
    size_t most = 0;
    must(tensorop_gemm_force(handle, arm->number), "a variant is forced");
    for (int shift = 0; shift < 2; shift++) {
        size_t bytes = 0;
        tensorop_gemm_workspace(handle, &problem, like(2 * shift), like(2 * shift),
                                like(2 * C_WORDS * shift), &bytes);
        most = bytes > most ? bytes : most;
    }
    return most;
}

struct arm arm_of_variant(int variant) {
    return (struct arm){.name = tensorop_gemm_variant(variant),
                        .number = variant,
                        .run = run_variant,
                        .needs = variant_needs};
}

const char *fault_name(int fault) {
    static const char *const names[] = {"plain",
                                        "skips-last-k-tile",
                                        "ignores-beta",
                                        "writes-past-edge",
                                        "writes-between-rows",
                                        "needs-zeroed-workspace",
                                        "wrong-on-second-stream",
                                        "runs-on-legacy-stream",
                                        "halves-k-when-large",
                                        "one-row-wrong-when-large",
                                        "skips-when-c-is-there",
                                        "runs-once-a-pointer",
                                        "sums-in-16-bits",
                                        "changes-an-input",
                                        "reads-beyond-a",
                                        "another-result-each-time"};
    return names[fault];
}

/* The side of a cube that is too large for a comparison of every element. */
static int large(void) {
    int side = 8;
    while ((double)side * side * side <= judge_every)
        side += 8;
    return side + 8;
}

/* The problem on which a fault must be found. */
struct judged fault_problem(int fault) {
    if (fault == FAULT_HALVES_K || fault == FAULT_ONE_ROW)
        return problem_of(large(), large(), large(), 1, 1, 0, 1, 0);
    if (fault == FAULT_LOW_PRECISION)
        return problem_of(128, 128, 1024, 1, 1, 0, 0, 0);
    if (fault == FAULT_BETWEEN_ROWS || fault == FAULT_BETA) {
        struct judged p = problem_of(67, 131, 77, 1, 0, 1, 1, 5);
        if (fault == FAULT_BETA)
            p.alpha = -0.75f, p.beta = 0.5f;
        return p;
    }
    return problem_of(fault == FAULT_NONE ? 97 : 64, 72, 136, fault == FAULT_NONE ? 3 : 1, 1, 0, 0,
                      0);
}

static int run_fault(const struct arm *arm, const struct judged *p, pointer a, pointer b, pointer c,
                     pointer workspace, stream on) {
    static stream known;
    static pointer seen;
    static int calls;
    struct judged of = *p;
    int fault = arm->number, k_end = p->k;
    ++calls;
    if (!known)
        known = on;
    if (fault == FAULT_ONCE_A_POINTER && seen == c)
        return 0;
    seen = c;
    if (fault == FAULT_FIRST_STREAM)
        on = known;
    if (fault == FAULT_LEGACY_STREAM)
        on = NULL;
    if (fault == FAULT_LAST_K)
        k_end = (p->k - 1) / 64 * 64;
    const bool small = (double)p->m * p->n * p->k <= judge_every;
    if (fault == FAULT_HALVES_K && !small)
        k_end = p->k / 2;
    if (fault == FAULT_ONE_ROW && small)
        fault = FAULT_NONE;
    const int64_t blocks = ((int64_t)p->m * p->n * p->batch + 255) / 256;
    launch("kit_plain", (unsigned)(blocks < 1 << 20 ? blocks : 1 << 20), 1, 1, 256, on,
           (void *[]){&of, &a, &b, &c, &workspace, &fault, &k_end, &calls});
    return 0;
}

static size_t fault_needs(const struct arm *arm, const struct judged *p) {
    return (void)arm, (void)p, 256;
}

struct arm arm_of_fault(int fault) {
    return (struct arm){
        .name = fault_name(fault), .number = fault, .run = run_fault, .needs = fault_needs};
}
