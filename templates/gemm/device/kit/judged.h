/* Shared declarations of a kit's kernels and its host code: C = alpha A B + beta C, row-major.
 * Elements of A and B have 16 bits, those of C have 16 or 32. Strides count elements. */
#ifndef TENSOROP_JUDGED_H
#define TENSOROP_JUDGED_H

#include <stdint.h>

struct judged {
    int m, n, k, batch;
    int a_along_m, b_along_k,
        bf16; /* A is stored [K, M], B is stored [N, K]; bf16: enum format of both */
    int format_c;
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
