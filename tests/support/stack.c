/* Products of gemm, by every variant, layout and transpose, small and in parts on several threads;
 * refused ones too. */
#include "stack.h"

#include <tensorop/cblas.h>
#include <tensorop/gemm.h>

void dgemm_(const char *, const char *, const int *, const int *, const int *, const double *,
            const double *, const int *, const double *, const int *, const double *, double *,
            const int *, size_t, size_t);

static const int sizes[][3] = {{1, 1, 1},    {2, 2, 1000}, {2, 3, 4},    {3, 300, 300},
                               {300, 3, 70}, {5, 900, 40}, {1, 300, 40}, {300, 1, 300},
                               {1, 1, 3000}, {3, 3, 512},  {64, 64, 4},  {200, 5, 3},
                               {7, 9, 11},   {17, 33, 65}, {31, 300, 9}, {130, 190, 99}};

#define BY_ALL_VARIANTS(dtype, real)                                                               \
    for (int variant = -1, status = 0; status != 15; ++variant) {                                  \
        const real *a = numbers[0], *b = numbers[1];                                               \
        status = tensorop_gemm_##dtype##_variant(layout, ta, tb, m, n, k, 1, a, lda, b, ldb, 0,    \
                                                 numbers[2], ldc, variant);                        \
        if (status != 0 && status != 15)                                                           \
            exit(5);                                                                               \
        snprintf(what, sizeof what, "%s %dx%dx%d, layout %d, transposes %d %d, variant %d",        \
                 #dtype, m, n, k, layout, ta, tb, variant);                                        \
        reached(what);                                                                             \
    }

static void calls(void) {
    static char what[200];
    const int three = 3, wrong = -1;
    double *x = numbers[0], *y = numbers[2], one = 1;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i)
        for (int at = 0; at < 8; ++at) {
            const int m = sizes[i][0], n = sizes[i][1], k = sizes[i][2], by_row = !(at & 1);
            const int layout = by_row ? TENSOROP_ROW_MAJOR : TENSOROP_COL_MAJOR;
            const int ta = at & 2 ? TENSOROP_TRANS : TENSOROP_NO_TRANS,
                      tb = at & 4 ? TENSOROP_TRANS : TENSOROP_NO_TRANS;
            const int lda = by_row == !(at & 2) ? k : m, ldb = by_row == !(at & 4) ? n : k,
                      ldc = by_row ? n : m;
#ifdef TENSOROP_GEMM_HAS_F32
            BY_ALL_VARIANTS(f32, float)
#endif
            BY_ALL_VARIANTS(f64, double)
        }
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasTrans, 2, 2, 1000, 1, x, 2, x, 1000, 0, y, 2);
    reached("cblas_dgemm");
    dgemm_("T", "N", &three, &three, &three, &one, x, &three, x, &three, &one, y, &three, 1, 1);
    reached("dgemm_");
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasTrans, -1, 2, 2, 1, x, 2, x, 2, 0, y, 2);
    reached("cblas_dgemm, refused");
    dgemm_("T", "N", &three, &wrong, &three, &one, x, &three, x, &three, &one, y, &three, 1, 1);
    reached("dgemm_, refused");
}
