/* The part of cublasLt.h that is used is declared here, so that a build does not need that file. */
#define _GNU_SOURCE
#include "cublaslt.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { R_16F = 2, R_16BF = 14, R_32F = 0, COMPUTE_32F = 68, COMPUTE_TF32 = 77 };
enum { DESC_TRANSA = 3, DESC_TRANSB = 4, LAYOUT_BATCH_COUNT = 5, LAYOUT_BATCH_STRIDE = 6 };
enum { PREFERENCE_WORKSPACE = 1, PREFERENCE_ALIGNMENT_A = 5, PREFERENCE_WAVES = 9 };

struct heuristic {
    struct lt_algorithm algorithm;
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
                          const struct lt_algorithm *, void *, size_t, stream);
} lt;
static void *handle;

/* Whether all functions are found in a library that starts. */
static bool opened(void) {
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
    for (size_t i = 0; i < (asked_for ? 1 : sizeof places / sizeof *places) && !library; i++)
        library = dlopen(places[i], RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; i < sizeof names / sizeof *names && library; i++) {
        void *found = dlsym(library, names[i]);
        if (!found)
            return false;
        memcpy((char *)&lt + i * sizeof found, &found, sizeof found);
    }
    return library && !lt.cublasLtCreate(&handle);
}

size_t lt_version(void) {
    static int state; /* 1: opened, -1: that failed */
    if (!state)
        state = opened() ? 1 : -1;
    return state > 0 ? lt.cublasLtGetVersion() : 0;
}

/* A row-major matrix is the transpose of a column-major one. */
static void *layout(struct lt_matrix of, int batch) {
    void *made = NULL;
    const int type = of.format >= FLOAT ? R_32F : of.format == BF16 ? R_16BF : R_16F;
    int bad =
        lt.cublasLtMatrixLayoutCreate(&made, type, (uint64_t)of.cols, (uint64_t)of.rows, of.ld);
    if (!bad && batch > 1) {
        bad |= lt.cublasLtMatrixLayoutSetAttribute(made, LAYOUT_BATCH_COUNT, &batch, sizeof batch);
        bad |= lt.cublasLtMatrixLayoutSetAttribute(made, LAYOUT_BATCH_STRIDE, &of.stride,
                                                   sizeof of.stride);
    }
    return bad ? NULL : made;
}

/* C = A B of row-major matrices is the column-major C' = B' A'. */
bool lt_product_make(struct lt_product *of, struct lt_matrix a, struct lt_matrix b,
                     struct lt_matrix c, int batch) {
    const int yes = 1, compute = a.format == TF32 ? COMPUTE_TF32 : COMPUTE_32F;
    if (!lt_version() || lt.cublasLtMatmulDescCreate(&of->description, compute, R_32F))
        return false;
    if (b.turned)
        lt.cublasLtMatmulDescSetAttribute(of->description, DESC_TRANSA, &yes, sizeof yes);
    if (a.turned)
        lt.cublasLtMatmulDescSetAttribute(of->description, DESC_TRANSB, &yes, sizeof yes);
    of->first = layout(b, batch), of->second = layout(a, batch), of->result = layout(c, batch);
    return of->first && of->second && of->result;
}

int lt_run(const struct lt_product *of, const struct lt_algorithm *by, float alpha, float beta,
           const pointer *at, pointer workspace, stream on) {
    void *const a = (void *)(uintptr_t)at[0], *const b = (void *)(uintptr_t)at[1],
                *const c = (void *)(uintptr_t)at[2], *const space = (void *)(uintptr_t)workspace;
    return lt.cublasLtMatmul(handle, of->description, &alpha, b, of->first, a, of->second, &beta, c,
                             of->result, c, of->result, by, space, LT_SPACE, on);
}

/* Appends the new answers of a query. */
static int asked(const struct lt_product *of, size_t workspace, float waves, uint32_t alignment,
                 struct lt_algorithm *known, int count, int most) {
    static struct heuristic answers[LT_ANSWERS];
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
                                          of->result, of->result, preference, LT_ANSWERS, answers,
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

int lt_answers(const struct lt_product *of, struct lt_algorithm *found, int most) {
    static const struct {
        size_t workspace;
        float waves;
        uint32_t alignment;
    } queries[] = {{LT_SPACE, 0, 0},  {0, 0, 0},        {LT_SPACE, 1, 0}, {LT_SPACE, 2, 0},
                   {LT_SPACE, 0, 16}, {LT_SPACE, 0, 2}, {0, 1, 0}};
    int count = 0;
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++)
        count = asked(of, queries[i].workspace, queries[i].waves, queries[i].alignment, found,
                      count, most < LT_ANSWERS ? most : LT_ANSWERS);
    return count;
}
