/* Products of matrices by cuBLASLt, which is opened with dlopen. */
#ifndef TENSOROP_DEVICE_KIT_CUBLASLT_H
#define TENSOROP_DEVICE_KIT_CUBLASLT_H

#include "kit.h"

enum { LT_ANSWERS = 64, LT_SPACE = 32 << 20 /* bytes of workspace of a product */ };

enum { TF32 = FLOAT + 1 }; /* a format of A: floats, rounded to tf32 before they are multiplied */

struct lt_algorithm {
    uint64_t data[8];
};

/* As it lies in memory: rows of `cols` elements, ld elements apart. turned: it is the transpose of
 * the operand; stride: between the matrices of a batch, in elements */
struct lt_matrix {
    int format, rows, cols;
    int64_t ld, stride;
    bool turned;
};

/* C = alpha A B + beta C of row-major matrices. */
struct lt_product {
    void *description, *first, *second, *result;
};

size_t lt_version(void); /* 0: not installed */
bool lt_product_make(struct lt_product *of, struct lt_matrix a, struct lt_matrix b,
                     struct lt_matrix c, int batch);
/* The number of distinct answers to seven queries, in the order found. The first is cuBLASLt's own
 * choice. */
int lt_answers(const struct lt_product *of, struct lt_algorithm *found, int most);
/* at: A, B and C; workspace: of LT_SPACE bytes. 0: enqueued */
int lt_run(const struct lt_product *of, const struct lt_algorithm *by, float alpha, float beta,
           const pointer *at, pointer workspace, stream on);

#endif
