/* Shared declarations of a kit's kernels and its host code: C = alpha A B + beta C, row-major.
 * Elements of A and B have 16 bits, those of C have 16 or 32. Strides count elements. */
#ifndef TENSOROP_JUDGED_H
#define TENSOROP_JUDGED_H

#include <stdint.h>

/* The format of elements; A and B have one of the first two. */
enum format { F16, BF16, FLOAT };

struct judged {
    int m, n, k, batch;
    int a_along_m, b_along_k, bf16; /* A is stored [K, M], B is stored [N, K] */
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

/* The faults of the plain kernel: each one is visible in every call. */
enum fault {
    FAULT_NONE,
    FAULT_LAST_K,
    FAULT_BETA,
    FAULT_PAST_EDGE,
    FAULT_BETWEEN_ROWS,
    FAULT_ZEROED_WORKSPACE,
    FAULT_FIRST_STREAM,
    FAULT_LEGACY_STREAM,
    FAULT_HALVES_K,
    FAULT_ONE_ROW,
    FAULT_SKIPS_WHEN_DONE,
    FAULT_ONCE_A_POINTER,
    FAULT_LOW_PRECISION,
    FAULT_CHANGES_INPUT,
    FAULT_READS_BEYOND,
    FAULT_ANOTHER_EACH_TIME,
    FAULTS
};

#endif
