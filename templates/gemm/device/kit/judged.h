/* Shared declarations of a kit's kernels and its host code: C = alpha A B + beta C, row-major.
 * Elements have 16 or 32 bits, C's not fewer than those of A and B. Strides count elements. */
#ifndef TENSOROP_JUDGED_H
#define TENSOROP_JUDGED_H

#include <stdint.h>

struct judged {
    int m, n, k, batch;
    int a_along_m, b_along_k; /* A is stored [K, M], B is stored [N, K] */
    int format, format_c;     /* enum format of A and B; of C */
    int type;                 /* of the library */
    float coarse;             /* the relative error of a product of two elements */
    float alpha, beta;
    int64_t lda, ldb, ldc, stride_a, stride_b, stride_c;
};

/* Totals over all compared elements. worst: the bits of a non-negative double, which have the order
 * of doubles. */
struct totals {
    double error2, ideal2, reference2;
    unsigned long long worst, wrong;
};

#endif
