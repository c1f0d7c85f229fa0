/* Adapts gemm to the harness's calling convention; operator.yaml names the slots.
 *
 * Interfaces: "tensorop" is the product's tensorop_gemm_<dtype>_variant; "cblas" any cblas_?gemm;
 * "gemv" any cblas_?gemv, for products of one row or one column; "dnnl" oneDNN's dnnl_sgemm, which
 * is row-major; "xsmm" libxsmm_?gemm, which is column-major as in Fortran. */
#include "bind.h"
#include "slots.h"

#define CBLAS_TRANS(flag) ((flag) ? 112 : 111)

/* A function of the product. real: of C and the coefficients; operand: of A and B, for 16-bit types
 * their bits */
#define OURS(dtype, real, operand)                                                                 \
    typedef int (*ours_##dtype)(int, int, int, int64_t, int64_t, int64_t, real, const operand *,   \
                                int64_t, const operand *, int64_t, real, real *, int64_t, int);    \
    static void call_ours_##dtype(const struct tensorop_bound *self,                               \
                                  const struct tensorop_call *c) {                                 \
        ((ours_##dtype)self->function)(                                                            \
            (int)c->flag[FLAG_layout], CBLAS_TRANS(c->flag[FLAG_ta]),                              \
            CBLAS_TRANS(c->flag[FLAG_tb]), c->dim[DIM_m], c->dim[DIM_n], c->dim[DIM_k],            \
            (real)c->scalar[SCALAR_alpha], c->buffer[BUFFER_A], c->ld[LD_A], c->buffer[BUFFER_B],  \
            c->ld[LD_B], (real)c->scalar[SCALAR_beta], c->buffer[BUFFER_C], c->ld[LD_C],           \
            (int)c->flag[FLAG_variant]);                                                           \
    }

OURS(f32, float, float)
OURS(f64, double, double)
OURS(i8, int32_t, int8_t)
OURS(16, float, uint16_t)

#define CBLAS(dtype, real)                                                                         \
    typedef void (*cblas_##dtype)(int, int, int, int, int, int, real, const real *, int,           \
                                  const real *, int, real, real *, int);                           \
    static void call_cblas_##dtype(const struct tensorop_bound *self,                              \
                                   const struct tensorop_call *c) {                                \
        ((cblas_##dtype)self->function)(                                                           \
            (int)c->flag[FLAG_layout], CBLAS_TRANS(c->flag[FLAG_ta]),                              \
            CBLAS_TRANS(c->flag[FLAG_tb]), (int)c->dim[DIM_m], (int)c->dim[DIM_n],                 \
            (int)c->dim[DIM_k], (real)c->scalar[SCALAR_alpha], c->buffer[BUFFER_A],                \
            (int)c->ld[LD_A], c->buffer[BUFFER_B], (int)c->ld[LD_B], (real)c->scalar[SCALAR_beta], \
            c->buffer[BUFFER_C], (int)c->ld[LD_C]);                                                \
    }

CBLAS(f32, float)
CBLAS(f64, double)

/* In the other layout, a call computes the transposed product of the swapped operands. */
struct plain {
    char ta, tb;
    int64_t m, n, lda, ldb;
    const void *a, *b;
};

static struct plain plain_call(const struct tensorop_call *c, int64_t layout) {
    struct plain p = {c->flag[FLAG_ta] ? 'T' : 'N',
                      c->flag[FLAG_tb] ? 'T' : 'N',
                      c->dim[DIM_m],
                      c->dim[DIM_n],
                      c->ld[LD_A],
                      c->ld[LD_B],
                      c->buffer[BUFFER_A],
                      c->buffer[BUFFER_B]};
    if (c->flag[FLAG_layout] == layout)
        return p;
    return (struct plain){p.tb, p.ta, p.n, p.m, p.ldb, p.lda, p.b, p.a};
}

/* A product of one row or one column as the product of a stored matrix, transposed or not, and a
 * vector. One row is the one column of the transposed product, in the other layout. */
struct of_vector {
    int layout, trans, rows, columns, ld, step_x, step_y;
    const void *matrix, *x;
};

static struct of_vector of_vector(const struct tensorop_call *c) {
    int64_t given = c->flag[FLAG_layout], other = given == LAYOUT_row ? LAYOUT_col : LAYOUT_row;
    int64_t layout = c->dim[DIM_n] == 1 ? given : other;
    struct plain p = plain_call(c, layout);
    int turned = p.ta == 'T', along = (layout == LAYOUT_row) == (p.tb == 'T');
    int m = (int)p.m, k = (int)c->dim[DIM_k];
    return (struct of_vector){(int)layout,
                              CBLAS_TRANS(turned),
                              turned ? k : m,
                              turned ? m : k,
                              (int)p.lda,
                              along ? 1 : (int)p.ldb,
                              layout == LAYOUT_row ? (int)c->ld[LD_C] : 1,
                              p.a,
                              p.b};
}

#define GEMV(dtype, real)                                                                          \
    typedef void (*gemv_##dtype)(int, int, int, int, real, const real *, int, const real *, int,   \
                                 real, real *, int);                                               \
    static void call_gemv_##dtype(const struct tensorop_bound *self,                               \
                                  const struct tensorop_call *c) {                                 \
        struct of_vector v = of_vector(c);                                                         \
        ((gemv_##dtype)self->function)(                                                            \
            v.layout, v.trans, v.rows, v.columns, (real)c->scalar[SCALAR_alpha], v.matrix, v.ld,   \
            v.x, v.step_x, (real)c->scalar[SCALAR_beta], c->buffer[BUFFER_C], v.step_y);           \
    }

GEMV(f32, float)
GEMV(f64, double)

typedef int (*dnnl_f32)(char, char, int64_t, int64_t, int64_t, float, const float *, int64_t,
                        const float *, int64_t, float, float *, int64_t);

static void call_dnnl_f32(const struct tensorop_bound *self, const struct tensorop_call *c) {
    struct plain p = plain_call(c, LAYOUT_row);
    ((dnnl_f32)self->function)(p.ta, p.tb, p.m, p.n, c->dim[DIM_k], (float)c->scalar[SCALAR_alpha],
                               p.a, p.lda, p.b, p.ldb, (float)c->scalar[SCALAR_beta],
                               c->buffer[BUFFER_C], c->ld[LD_C]);
}

typedef int (*dnnl_i8)(char, char, char, int64_t, int64_t, int64_t, float, const int8_t *, int64_t,
                       int8_t, const int8_t *, int64_t, int8_t, float, int32_t *, int64_t,
                       const int32_t *);

/* dnnl_gemm_s8s8s32: the offsets are zero here, and alpha and beta are float */
static void call_dnnl_i8(const struct tensorop_bound *self, const struct tensorop_call *c) {
    static const int32_t no_offset = 0;
    struct plain p = plain_call(c, LAYOUT_row);
    ((dnnl_i8)self->function)(
        p.ta, p.tb, 'F', p.m, p.n, c->dim[DIM_k], (float)c->scalar[SCALAR_alpha], p.a, p.lda, 0,
        p.b, p.ldb, 0, (float)c->scalar[SCALAR_beta], c->buffer[BUFFER_C], c->ld[LD_C], &no_offset);
}

typedef void (*xsmm_any)(const char *, const char *, const int *, const int *, const int *,
                         const void *, const void *, const int *, const void *, const int *,
                         const void *, void *, const int *);

static void call_xsmm(const struct tensorop_bound *self, const struct tensorop_call *c,
                      const void *alpha, const void *beta) {
    struct plain p = plain_call(c, LAYOUT_col);
    int m = (int)p.m, n = (int)p.n, k = (int)c->dim[DIM_k], lda = (int)p.lda, ldb = (int)p.ldb,
        ldc = (int)c->ld[LD_C];
    ((xsmm_any)self->function)(&p.ta, &p.tb, &m, &n, &k, alpha, p.a, &lda, p.b, &ldb, beta,
                               c->buffer[BUFFER_C], &ldc);
}

static void call_xsmm_f32(const struct tensorop_bound *self, const struct tensorop_call *c) {
    float alpha = (float)c->scalar[SCALAR_alpha], beta = (float)c->scalar[SCALAR_beta];
    call_xsmm(self, c, &alpha, &beta);
}

static void call_xsmm_f64(const struct tensorop_bound *self, const struct tensorop_call *c) {
    call_xsmm(self, c, &c->scalar[SCALAR_alpha], &c->scalar[SCALAR_beta]);
}

/* For each interface and dtype: the function's name and the adapter that calls it. A dtype that a
 * baseline lacks has no row. */
static const struct tensorop_interface interfaces[] = {
    {"tensorop", "f32", "tensorop_gemm_f32_variant", call_ours_f32},
    {"tensorop", "f64", "tensorop_gemm_f64_variant", call_ours_f64},
    {"tensorop", "i8", "tensorop_gemm_i8_variant", call_ours_i8},
    {"tensorop", "bf16", "tensorop_gemm_bf16_variant", call_ours_16},
    {"tensorop", "f16", "tensorop_gemm_f16_variant", call_ours_16},
    {"cblas", "f32", "cblas_sgemm", call_cblas_f32},
    {"cblas", "f64", "cblas_dgemm", call_cblas_f64},
    {"gemv", "f32", "cblas_sgemv", call_gemv_f32},
    {"gemv", "f64", "cblas_dgemv", call_gemv_f64},
    {"dnnl", "f32", "dnnl_sgemm", call_dnnl_f32},
    {"dnnl", "i8", "dnnl_gemm_s8s8s32", call_dnnl_i8},
    {"xsmm", "f32", "libxsmm_sgemm", call_xsmm_f32},
    {"xsmm", "f64", "libxsmm_dgemm", call_xsmm_f64},
};

int tensorop_bind(struct tensorop_bound *out, const char *api, const char *dtype,
                  const char *prefix, const char *suffix,
                  void *(*lookup)(void *handle, const char *symbol), void *handle) {
    return tensorop_bind_among(interfaces, sizeof interfaces / sizeof *interfaces, out, api, dtype,
                               prefix, suffix, lookup, handle);
}
