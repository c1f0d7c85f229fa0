/* cuBLASLt, opened with dlopen: the distinct answers to seven queries, in the order found. The
 * first is cuBLASLt's own choice. The part of cublasLt.h that is used is declared here, so that a
 * build does not need that file. */
#define _GNU_SOURCE
#include "kit.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { R_16F = 2, R_16BF = 14, R_32F = 0, COMPUTE_32F = 68, ANSWERS = 64, SPACE = 32 << 20 };
enum { DESC_TRANSA = 3, DESC_TRANSB = 4, LAYOUT_BATCH_COUNT = 5, LAYOUT_BATCH_STRIDE = 6 };
enum { PREFERENCE_WORKSPACE = 1, PREFERENCE_ALIGNMENT_A = 5, PREFERENCE_WAVES = 9 };

struct algorithm {
    uint64_t data[8];
};
struct heuristic {
    struct algorithm algorithm;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
};
static struct {
    size_t (*cublasLtGetVersion)(void);
    int (*cublasLtCreate)(void **);
    int (*cublasLtMatmulDescCreate)(void **, int, int);
    int (*cublasLtMatmulDescSetAttribute)(void *, int, const void *, size_t);
    int (*cublasLtMatrixLayoutCreate)(void **, int, uint64_t, uint64_t, int64_t);
    int (*cublasLtMatrixLayoutSetAttribute)(void *, int, const void *, size_t);
    int (*cublasLtMatmulPreferenceCreate)(void **);
    int (*cublasLtMatmulPreferenceSetAttribute)(void *, int, const void *, size_t);
    int (*cublasLtMatmulAlgoGetHeuristic)(void *, void *, void *, void *, void *, void *, void *,
                                          int, struct heuristic *, int *);
    int (*cublasLtMatmul)(void *, void *, const void *, const void *, void *, const void *, void *,
                          const void *, const void *, void *, void *, void *,
                          const struct algorithm *, void *, size_t, stream);
} lt;
static void *handle;
static const char *said;
const char baseline_name[] = "cublaslt";

/* A row-major product is the column-major product C' = B' A'. */
struct plan {
    void *description, *first, *second, *result;
    struct algorithm algorithm;
};

size_t baseline_version(void) {
    static const char *const names[] = {"cublasLtGetVersion",
                                        "cublasLtCreate",
                                        "cublasLtMatmulDescCreate",
                                        "cublasLtMatmulDescSetAttribute",
                                        "cublasLtMatrixLayoutCreate",
                                        "cublasLtMatrixLayoutSetAttribute",
                                        "cublasLtMatmulPreferenceCreate",
                                        "cublasLtMatmulPreferenceSetAttribute",
                                        "cublasLtMatmulAlgoGetHeuristic",
                                        "cublasLtMatmul"};
    const char *named = getenv("TENSOROP_KIT_CUBLASLT");
    const bool asked_for = named && *named;
    const char *const places[] = {asked_for ? named : "libcublasLt.so.13",
                                  "/usr/local/cuda/lib64/libcublasLt.so.13", "libcublasLt.so.12",
                                  "/usr/local/cuda/lib64/libcublasLt.so.12"};
    void *library = NULL;
    if (handle)
        return lt.cublasLtGetVersion();
    if (said)
        return 0;
    for (size_t i = 0; i < (asked_for ? 1 : sizeof places / sizeof *places) && !library; i++)
        library = dlopen(places[i], RTLD_NOW | RTLD_LOCAL);
    said = library ? "cuBLASLt lacks a function"
                   : "cuBLASLt is not found; set TENSOROP_KIT_CUBLASLT to its file";
    for (size_t i = 0; i < sizeof names / sizeof *names && library; i++) {
        void *found = dlsym(library, names[i]);
        if (!found)
            return 0;
        memcpy((char *)&lt + i * sizeof found, &found, sizeof found);
    }
    if (!library)
        return 0;
    if (lt.cublasLtCreate(&handle)) {
        handle = NULL, said = "cuBLASLt does not start";
        return 0;
    }
    said = "";
    return lt.cublasLtGetVersion();
}

static void *layout(int type, int rows, int cols, int64_t ld, int batch, int64_t stride) {
    void *made = NULL;
    int bad = lt.cublasLtMatrixLayoutCreate(&made, type, (uint64_t)rows, (uint64_t)cols, ld);
    if (!bad && batch > 1) {
        bad |= lt.cublasLtMatrixLayoutSetAttribute(made, LAYOUT_BATCH_COUNT, &batch, sizeof batch);
        bad |=
            lt.cublasLtMatrixLayoutSetAttribute(made, LAYOUT_BATCH_STRIDE, &stride, sizeof stride);
    }
    return bad ? NULL : made;
}

static int run(const struct arm *arm, const struct judged *p, const pointer *operands,
               pointer workspace, stream on) {
    const struct plan *of = arm->more;
    void *at[] = {(void *)(uintptr_t)operands[0], (void *)(uintptr_t)operands[1],
                  (void *)(uintptr_t)operands[2], (void *)(uintptr_t)workspace};
    return lt.cublasLtMatmul(handle, of->description, &p->alpha, at[1], of->first, at[0],
                             of->second, &p->beta, at[2], of->result, at[2], of->result,
                             &of->algorithm, at[3], SPACE, on);
}

static size_t needs(const struct arm *arm, const struct judged *p) {
    return (void)arm, (void)p, SPACE;
}

/* Appends the new answers of a query. */
static int asked(const struct plan *of, size_t workspace, float waves, uint32_t alignment,
                 struct algorithm *known, int count, int most) {
    static struct heuristic answers[ANSWERS];
    const uint64_t bytes = workspace;
    void *preference;
    int many = 0;
    if (lt.cublasLtMatmulPreferenceCreate(&preference))
        return count;
    lt.cublasLtMatmulPreferenceSetAttribute(preference, PREFERENCE_WORKSPACE, &bytes, sizeof bytes);
    if (waves > 0)
        lt.cublasLtMatmulPreferenceSetAttribute(preference, PREFERENCE_WAVES, &waves, sizeof waves);
    for (int i = 0; alignment && i < 4; i++)
        lt.cublasLtMatmulPreferenceSetAttribute(preference, PREFERENCE_ALIGNMENT_A + i, &alignment,
                                                sizeof alignment);
    if (lt.cublasLtMatmulAlgoGetHeuristic(handle, of->description, of->first, of->second,
                                          of->result, of->result, preference, ANSWERS, answers,
                                          &many))
        return count;
    for (int i = 0; i < many && count < most; i++) {
        bool old = answers[i].state != 0;
        for (int j = 0; j < count; j++)
            old |= !memcmp(&known[j], &answers[i].algorithm, sizeof *known);
        if (!old)
            known[count++] = answers[i].algorithm;
    }
    return count;
}

int baseline_arms(const struct judged *p, struct arm *arms, int most) {
    struct algorithm known[ANSWERS];
    struct plan of;
    const int type = p->bf16 ? R_16BF : R_16F, yes = 1;
    if (!baseline_version() || lt.cublasLtMatmulDescCreate(&of.description, COMPUTE_32F, R_32F))
        return 0;
    if (p->b_along_k)
        lt.cublasLtMatmulDescSetAttribute(of.description, DESC_TRANSA, &yes, sizeof yes);
    if (p->a_along_m)
        lt.cublasLtMatmulDescSetAttribute(of.description, DESC_TRANSB, &yes, sizeof yes);
    of.first = layout(type, p->b_along_k ? p->k : p->n, p->b_along_k ? p->n : p->k, p->ldb,
                      p->batch, p->stride_b);
    of.second = layout(type, p->a_along_m ? p->m : p->k, p->a_along_m ? p->k : p->m, p->lda,
                       p->batch, p->stride_a);
    of.result = layout(FLOAT_RESULT ? R_32F : type, p->n, p->m, p->ldc, p->batch, p->stride_c);
    if (!of.first || !of.second || !of.result)
        return 0;
    most = most < ANSWERS ? most : ANSWERS;
    static const struct {
        size_t workspace;
        float waves;
        uint32_t alignment;
    } queries[] = {{SPACE, 0, 0},  {0, 0, 0},     {SPACE, 1, 0}, {SPACE, 2, 0},
                   {SPACE, 0, 16}, {SPACE, 0, 2}, {0, 1, 0}};
    int count = 0;
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++)
        count = asked(&of, queries[i].workspace, queries[i].waves, queries[i].alignment, known,
                      count, most);
    for (int i = 0; i < count; i++) {
        struct plan *own = malloc(sizeof *own);
        *own = of, own->algorithm = known[i];
        arms[i] =
            (struct arm){.name = "cublaslt", .number = i, .run = run, .needs = needs, .more = own};
    }
    return count;
}

void baseline_release(struct arm *arms, int count) {
    for (int i = 0; i < count; i++)
        free(arms[i].more), arms[i].more = NULL;
}
