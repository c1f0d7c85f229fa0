/* Shared code of the controls: a gemm with plain strides. So a control contains only its fault.
 *
 * op(A)[i,p] = a[i * a_row + p * a_col] in every layout; op(B)[p,j] and C[i,j] likewise.
 * OPERAND is the stored type of A and B. REAL is the type of C and of all arithmetic; for integers
 * it is unsigned, so that sums wrap. STEP is a small number of type REAL. The build defines
 * TENSOROP_DTYPE_<dtype>. */
#ifndef TENSOROP_CONTROL_PRODUCT_H
#define TENSOROP_CONTROL_PRODUCT_H

#include "call.h"
#include "slots.h"

#include <string.h>

#if defined TENSOROP_DTYPE_f32
#define OPERAND float
#define REAL float
#elif defined TENSOROP_DTYPE_f64
#define OPERAND double
#define REAL double
#elif defined TENSOROP_DTYPE_i8
#define OPERAND int8_t
#define REAL uint32_t
#elif defined TENSOROP_DTYPE_bf16 || defined TENSOROP_DTYPE_f16
#define OPERAND uint16_t
#define REAL float
#else
#error "no element type: TENSOROP_DTYPE_<dtype> must be defined"
#endif

static const REAL STEP = (REAL)0.5 != 0 ? (REAL)0.5 : (REAL)1;

/* The value of a stored operand. */
static inline REAL value_of(OPERAND x) {
#if defined TENSOROP_DTYPE_bf16
    uint32_t bits = (uint32_t)x << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
#elif defined TENSOROP_DTYPE_f16
    int exponent = x >> 10 & 31, fraction = x & 1023;
    float value = (float)(exponent ? fraction + 1024 : fraction);
    if (exponent == 31)
        value = fraction ? __builtin_nanf("") : __builtin_inff();
    for (int i = exponent ? exponent : 1; i < 25; ++i)
        value *= 0.5f;
    for (int i = 25; i < exponent; ++i)
        value *= 2;
    return x >> 15 ? -value : value;
#else
    return (REAL)x;
#endif
}

struct product {
    int64_t m, n, k;
    int64_t lda, ldb, ldc;
    int64_t a_row, a_col, b_row, b_col, c_row, c_col;
    int64_t a_size, b_size, c_size; /* in elements, without the gap after the last line */
    REAL alpha, beta;
    const OPERAND *a, *b;
    REAL *c;
};

/* One operand: `rows` x `columns` after its transpose; by_column: stored column by column. */
static inline int64_t strides(int64_t rows, int64_t columns, int64_t ld, int by_column,
                              int64_t *row, int64_t *col) {
    if (rows == 0 || columns == 0) {
        *row = *col = 0;
        return 0;
    }
    *row = by_column ? 1 : ld;
    *col = by_column ? ld : 1;
    return (rows - 1) * *row + (columns - 1) * *col + 1;
}

static inline struct product product_of(const struct tensorop_call *call) {
    struct product p = {.m = call->dim[DIM_m], .n = call->dim[DIM_n], .k = call->dim[DIM_k]};
    int by_column = call->flag[FLAG_layout] == LAYOUT_col;
    p.lda = call->ld[LD_A], p.ldb = call->ld[LD_B], p.ldc = call->ld[LD_C];
    p.a_size =
        strides(p.m, p.k, p.lda, by_column != (call->flag[FLAG_ta] != 0), &p.a_row, &p.a_col);
    p.b_size =
        strides(p.k, p.n, p.ldb, by_column != (call->flag[FLAG_tb] != 0), &p.b_row, &p.b_col);
    p.c_size = strides(p.m, p.n, p.ldc, by_column, &p.c_row, &p.c_col);
#if defined TENSOROP_DTYPE_i8
    p.alpha = (REAL)(int64_t)call->scalar[SCALAR_alpha],
    p.beta = (REAL)(int64_t)call->scalar[SCALAR_beta];
#else
    p.alpha = (REAL)call->scalar[SCALAR_alpha], p.beta = (REAL)call->scalar[SCALAR_beta];
#endif
    p.a = call->buffer[BUFFER_A], p.b = call->buffer[BUFFER_B], p.c = call->buffer[BUFFER_C];
    return p;
}

/* op(A)[i,q] and op(B)[q,j] */
static inline REAL a_at(const struct product *p, int64_t i, int64_t q) {
    return value_of(p->a[i * p->a_row + q * p->a_col]);
}

static inline REAL b_at(const struct product *p, int64_t q, int64_t j) {
    return value_of(p->b[q * p->b_row + j * p->b_col]);
}

/* The sum of the first k products of row i of op(A) and column j of op(B). */
static inline REAL dot(const struct product *p, int64_t i, int64_t j, int64_t k) {
    REAL sum = 0;
    if (p->alpha != 0)
        for (int64_t q = 0; q < k; ++q)
            sum += a_at(p, i, q) * b_at(p, q, j);
    return sum;
}

/* C[i,j] = alpha * sum + beta * C[i,j]; C is not read when beta is 0. */
static inline void update(const struct product *p, int64_t i, int64_t j, REAL sum) {
    REAL *c = &p->c[i * p->c_row + j * p->c_col];
    *c = p->beta == 0 ? p->alpha * sum : p->alpha * sum + p->beta * *c;
}

#define FOR_EACH_ELEMENT(p, i, j)                                                                  \
    for (int64_t j = 0; j < (p).n; ++j)                                                            \
        for (int64_t i = 0; i < (p).m; ++i)

/* The whole product, computed correctly. */
static inline void honest(const struct product *p) {
    FOR_EACH_ELEMENT(*p, i, j) { update(p, i, j, dot(p, i, j, p->k)); }
}

#endif
