/* A libcublasLt.so whose products are those of the kernel `tensorop_product` on this machine's
 * processor, enqueued by libcuda.so.1 beside it (fake_cuda.c). Each query has two answers.
 * FAKE_LT_WRONG: the results are wrong. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct matrix { /* column-major */
    int type, batch;
    int64_t rows, cols, ld, stride;
};
struct answer {
    uint64_t algorithm[8];
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
};
struct product {
    int64_t rows, cols, depth, batch, ld[3], stride[3], turned[2], type[2];
    float alpha, beta;
    const void *a, *b;
    void *c;
};

size_t cublasLtGetVersion(void) { return 130000; }
int cublasLtCreate(void **handle) { return *handle = malloc(1), 0; }
int cublasLtMatmulDescCreate(void **made, int compute, int scale) {
    return *made = calloc(2, sizeof(int64_t)), compute != 68 || scale != 0;
}
int cublasLtMatmulDescSetAttribute(void *of, int attribute, const void *value, size_t size) {
    ((int64_t *)of)[attribute - 3] = *(const int *)value; /* transposed: A 3, B 4 */
    return size != sizeof(int);
}
int cublasLtMatrixLayoutCreate(void **made, int type, uint64_t rows, uint64_t cols, int64_t ld) {
    struct matrix *of = malloc(sizeof *of);
    *of = (struct matrix){type, 1, (int64_t)rows, (int64_t)cols, ld, 0};
    return *made = of, ld < (int64_t)rows;
}
int cublasLtMatrixLayoutSetAttribute(void *of, int attribute, const void *value, size_t size) {
    struct matrix *const matrix = of;
    if (attribute == 5)
        memcpy(&matrix->batch, value, size);
    else
        memcpy(&matrix->stride, value, size);
    return 0;
}
int cublasLtMatmulPreferenceCreate(void **made) { return *made = malloc(1), 0; }
int cublasLtMatmulPreferenceSetAttribute(void *of, int attribute, const void *value, size_t size) {
    return !of || !value || attribute < 1 || size < 4;
}
int cublasLtMatmulAlgoGetHeuristic(void *handle, void *description, void *a, void *b, void *c,
                                   void *d, void *preference, int most, struct answer *answers,
                                   int *many) {
    memset(answers, 0, 2 * sizeof *answers);
    answers[1].algorithm[0] = 1;
    return *many = 2, !handle || !description || !a || !b || c != d || !preference || most < 2;
}

int cublasLtMatmul(void *handle, void *description, const float *alpha, const void *a,
                   const struct matrix *of_a, const void *b, const struct matrix *of_b,
                   const float *beta, const void *c, const struct matrix *of_c, void *d,
                   const struct matrix *of_d, const uint64_t *algorithm, void *workspace,
                   size_t size, void *stream) {
    const int64_t *const turned = description;
    struct product of = {of_d->rows, of_d->cols, turned[0] ? of_a->rows : of_a->cols, of_d->batch};
    const struct matrix *const each[] = {of_a, of_b, of_d};
    for (int i = 0; i < 3; i++)
        of.ld[i] = each[i]->ld, of.stride[i] = each[i]->stride;
    for (int i = 0; i < 2; i++)
        of.turned[i] = turned[i], of.type[i] = each[2 * i]->type;
    of.alpha = *alpha * (getenv("FAKE_LT_WRONG") ? 2 : 1), of.beta = *beta;
    of.a = a, of.b = b, of.c = d;
    int (*enqueue)(const char *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   unsigned, void *, void **, void **);
    *(void **)&enqueue = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuLaunchKernel");
    memset(workspace, 1, size); /* it may be written */
    if (!handle || c != d || of_c != of_d || algorithm[0] > 1 || of_a->batch != of_d->batch)
        return 1;
    return enqueue("tensorop_product", 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){&of}, NULL);
}
