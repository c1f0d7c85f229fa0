/* What the controls share: a product with its epilogue as plain loops. A control changes one part
 * of `struct finish` or one element's arguments. */
#ifndef TENSOROP_CONTROL_EPILOGUE_H
#define TENSOROP_CONTROL_EPILOGUE_H

#include "product.h"

/* Where an element takes its terms from. NULL: the epilogue has no such step. */
struct finish {
    int activation;
    const REAL *scale_rows, *scale_columns, *bias, *residual;
    int64_t ld;
};

static inline struct finish finish_of(const struct tensorop_call *c) {
    struct finish f = {.activation = (int)c->flag[FLAG_activation], .ld = c->ld[LD_residual]};
    f.scale_rows = c->flag[FLAG_by_rows] ? c->buffer[BUFFER_scale_rows] : 0;
    f.scale_columns = c->flag[FLAG_by_columns] ? c->buffer[BUFFER_scale_columns] : 0;
    f.bias = c->flag[FLAG_biased] ? c->buffer[BUFFER_bias] : 0;
    f.residual = c->flag[FLAG_added] ? c->buffer[BUFFER_residual] : 0;
    return f;
}

/* exp(x) = 2^n exp(x - n ln 2), by Taylor's series */
static inline REAL exponential(REAL x) {
    if (x != x)
        return x;
    x = x < -800 ? -800 : x > 800 ? 800 : x;
    int n = (int)(x * (REAL)1.4426950408889634);
    REAL r = x - (REAL)n * (REAL)0.6931471805599453, sum = 1, term = 1;
    for (int i = 1; i < 24; i++)
        sum += term *= r / (REAL)i;
    for (; n > 0; n--)
        sum *= 2;
    for (; n < 0; n++)
        sum /= 2;
    return sum;
}

static inline REAL activate(REAL x, int activation) {
    if (activation == ACTIVATION_relu)
        return x < 0 ? 0 : x;
    if (activation == ACTIVATION_none)
        return x;
    REAL e = activation == ACTIVATION_silu
                 ? x
                 : x * ((REAL)1.5957691216057308 + (REAL)0.071354816272600249 * x * x);
    return x / (1 + exponential(-e));
}

/* One element behind its sum. */
static inline REAL finished(const struct finish *f, int row_major, REAL sum, int64_t i, int64_t j) {
    if (f->scale_rows)
        sum *= f->scale_rows[i];
    if (f->scale_columns)
        sum *= f->scale_columns[j];
    if (f->bias)
        sum += f->bias[j];
    if (f->residual)
        sum += f->residual[row_major ? i * f->ld + j : i + j * f->ld];
    return activate(sum, f->activation);
}

/* The element of C, which holds its sum when `after` is called. */
static inline void product(const struct tensorop_call *c,
                           REAL (*after)(const struct tensorop_call *c, int row_major, REAL sum,
                                         int64_t i, int64_t j)) {
    const struct product p = product_of(c);
    int row_major = c->flag[FLAG_layout] == LAYOUT_row;
    FOR_EACH_ELEMENT(p, i, j) {
        REAL *at = &p.c[i * p.c_row + j * p.c_col];
        update(&p, i, j, dot(&p, i, j, p.k));
        *at = after(c, row_major, *at, i, j);
    }
}

#define N (c->dim[DIM_n])
#define AFTER(name)                                                                                \
    static REAL after_##name(const struct tensorop_call *c, int row_major, REAL sum, int64_t i,    \
                             int64_t j)
#define CANDIDATE(name)                                                                            \
    void tensorop_candidate_0(const struct tensorop_call *c) { product(c, after_##name); }

#endif
