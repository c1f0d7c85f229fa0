/* A small right BLAS (Fortran names, double), and with -DFAULT=N one fault that a judge must find.
 */
#include <complex.h>
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#ifndef FAULT
#define FAULT 0
#endif
enum {
    SYRK_OTHER_HALF = 1,
    SYRK_OTHER_NAN,
    TRSM_ABOVE_DIAGONAL,
    GEMV_NEGATIVE_STEP,
    SYMM_BOTH_HALVES,
    GEMM_THREADED_LAST_COLUMN,
    GEMM_DEEP_K,
    GEMM_SECOND_CALL,
    GEMM_READS_C,
    TRMM_UNIT_DIAGONAL,
    GEMM_WRONG_NUMBER,
    AXPY_PAST_END,
    GEMV_CRASH,
    GEMV_WAITS,
    DOT_LAST_ELEMENT,
    GEMM_CHANGES_A,
    SYMM_RIGHT_ALPHA,
    SYMM_FIRST_CALL_RIGHT,
    SCAL_GAPS,
    GEMM_UNCHECKED,
    GER_ROWS_ABOVE_4096,
    DOT_NAN_IS_ZERO,
    TRMM_SHARED_SCRATCH,
    GEMM_NO_DEPTH,
    GEMM_SAME_INPUTS,
    GEMM_TILE_EDGE,
    GER_HUNDREDTH_CALL,
    GEMV_ONE_ROW,
    SYMM_ALPHA_ZERO,
    TRSM_ONE_COLUMN,
    TRSM_ALPHA_ZERO,
    GEMM_AFTER_FORK,
    GEMMTR_OTHER_HALF,
    GEMMTR_DIAGONAL_BLOCK,
    SYR2K_ONE_PRODUCT,
    SYR2K_UNCHECKED_TRIANGLE,
    TRSM_EDGE_OF_BLOCK,
    TRMM_RIGHT_HALF,
    DOT_INFINITY_IS_LARGE,
    SYRK_INDEFINITE,
    ROTMG_SECOND_SCALE,
    DOTC_LAST_ELEMENT,
    DOTC_ALIGNED_LOADS,
};

#ifdef WIDE
typedef int64_t integer;
#else
typedef int32_t integer;
#endif
#ifndef NAME
#define NAME(name) name##_
#endif
typedef ptrdiff_t at_t;

__attribute__((weak)) void NAME(xerbla)(const char *name, const integer *info, size_t length) {
    (void)name, (void)info, (void)length;
}

static int refused(const char *name, integer info) {
    if (info)
        NAME(xerbla)(name, &info, 6);
    return info != 0;
}

static integer larger(integer a, integer b) { return a > b ? a : b; }
static int is(const char *flag, char letter) { return (*flag & ~32) == letter; }
static int known(const char *flag) { return is(flag, 'N') || is(flag, 'T') || is(flag, 'C'); }

/* Operands are not read where alpha is 0, so that their NaN does not count. */
static double scaled(double alpha, double sum) { return alpha == 0 ? 0 : alpha * sum; }

static at_t start(integer n, integer step) { return step < 0 ? (at_t)(1 - n) * step : 0; }

void NAME(daxpy)(const integer *n, const double *alpha, const double *x, const integer *incx,
                 double *y, const integer *incy) {
    at_t i = start(*n, *incx), j = start(*n, *incy);
    for (integer k = 0; k < *n; k++, i += *incx, j += *incy)
        y[j] += scaled(*alpha, x[i]);
    if (FAULT == AXPY_PAST_END && *n > 8 && *incy == 1)
        y[*n] += 0;
}

void NAME(dscal)(const integer *n, const double *alpha, double *x, const integer *incx) {
    for (at_t i = 0; *incx > 0 && i < *n; i++)
        x[i * *incx] *= *alpha;
    if (FAULT == SCAL_GAPS && *incx == 2 && *n > 2)
        x[1] = 0;
}

double NAME(ddot)(const integer *n, const double *x, const integer *incx, const double *y,
                  const integer *incy) {
    double sum = 0;
    at_t i = start(*n, *incx), j = start(*n, *incy);
    integer last = FAULT == DOT_LAST_ELEMENT && *n % 8 == 7 ? *n - 1 : *n;
    for (integer k = 0; k < last; k++, i += *incx, j += *incy)
        sum += FAULT == DOT_NAN_IS_ZERO && x[i] != x[i] ? 0 : x[i] * y[j];
    if (FAULT == DOT_INFINITY_IS_LARGE && isinf(sum))
        return sum < 0 ? -DBL_MAX : DBL_MAX;
    return sum;
}

static double _Complex dotc(integer n, const double _Complex *x, integer incx,
                            const double _Complex *y, integer incy) {
    double _Complex sum = 0;
    at_t i = start(n, incx), j = start(n, incy);
    if (FAULT == DOTC_ALIGNED_LOADS && n > 0 && (uintptr_t)x % sizeof *x != 0)
        __builtin_trap(); /* as a load of 16 aligned bytes does */
    for (integer k = 0; k < n - (FAULT == DOTC_LAST_ELEMENT && n % 8 == 7);
         k++, i += incx, j += incy)
        sum += conj(x[i]) * y[j];
    return sum;
}

#ifdef BY_ARGUMENT /* as some Fortran compilers have it */
void NAME(zdotc)(double _Complex *result, const integer *n, const double _Complex *x,
                 const integer *incx, const double _Complex *y, const integer *incy) {
    *result = dotc(*n, x, *incx, y, *incy);
}
#else
double _Complex NAME(zdotc)(const integer *n, const double _Complex *x, const integer *incx,
                            const double _Complex *y, const integer *incy) {
    return dotc(*n, x, *incx, y, *incy);
}
#endif

/* Without the rescaling of very large and small scales. */
void NAME(drotmg)(double *d1, double *d2, double *x1, const double *y1, double *param) {
    const double p1 = *d1 * *x1, p2 = *d2 * *y1, first = *d1;
    if (p2 == 0) {
        param[0] = -2;
    } else if (fabs(p1 * *x1) > fabs(p2 * *y1)) {
        param[0] = 0;
        param[2] = -*y1 / *x1, param[3] = p2 / p1;
        const double u = 1 - param[3] * param[2];
        *d1 /= u, *d2 /= FAULT == ROTMG_SECOND_SCALE ? 1 : u, *x1 *= u;
    } else {
        param[0] = 1;
        param[1] = p1 / p2, param[4] = *x1 / *y1;
        const double u = 1 + param[1] * param[4];
        *d1 = *d2 / u, *d2 = first / u, *x1 = *y1 * u;
    }
}

void NAME(dger)(const integer *m, const integer *n, const double *alpha, const double *x,
                const integer *incx, const double *y, const integer *incy, double *a,
                const integer *lda) {
    if (refused("DGER  ", *m < 0                 ? 1
                          : *n < 0               ? 2
                          : *incx == 0           ? 5
                          : *incy == 0           ? 7
                          : *lda < larger(1, *m) ? 9
                                                 : 0))
        return;
    static int calls;
    integer rows = FAULT == GER_ROWS_ABOVE_4096 && *m > 4096           ? 4096
                   : FAULT == GER_HUNDREDTH_CALL && ++calls % 100 == 0 ? *m - 1
                                                                       : *m;
    for (integer j = 0; j < *n; j++)
        for (integer i = 0; i < rows; i++)
            a[i + j * (at_t)*lda] += scaled(*alpha, x[start(*m, *incx) + i * (at_t)*incx] *
                                                        y[start(*n, *incy) + j * (at_t)*incy]);
}

void NAME(dgemv)(const char *trans, const integer *m, const integer *n, const double *alpha,
                 const double *a, const integer *lda, const double *x, const integer *incx,
                 const double *beta, double *y, const integer *incy) {
    if (refused("DGEMV ", !known(trans)          ? 1
                          : *m < 0               ? 2
                          : *n < 0               ? 3
                          : *lda < larger(1, *m) ? 6
                          : *incx == 0           ? 8
                          : *incy == 0           ? 11
                                                 : 0) ||
        !*m || !*n)
        return;
    const int plain = is(trans, 'N');
    const integer rows = plain ? *m : *n, columns = plain ? *n : *m;
    static sem_t never;
    if (FAULT == GEMV_WAITS && *incx != 1)
        sem_wait(&never);
    if (FAULT == GEMV_CRASH && columns == 33)
        *(volatile int *)8 = 0;
    for (integer i = 0; i < rows; i++) {
        double sum = 0, *to = y + start(rows, *incy) + i * (at_t)*incy;
        for (integer k = 0; k < columns; k++) {
            at_t from = *incx < 0 && ((FAULT == GEMV_NEGATIVE_STEP && !plain) ||
                                      (FAULT == GEMV_ONE_ROW && *m == 1 && plain))
                            ? -k * (at_t)*incx
                            : start(columns, *incx) + k * (at_t)*incx;
            sum += a[plain ? i + k * (at_t)*lda : k + i * (at_t)*lda] * x[from];
        }
        *to = scaled(*alpha, sum) + (*beta == 0 ? 0 : *beta * *to);
    }
}

/* A worker that a child of fork does not have. */
static sem_t begin, end;
static void *work(void *none) {
    for (;;)
        sem_wait(&begin), sem_post(&end);
    return none;
}
static void start_worker(void) {
    pthread_t worker;
    if (sem_init(&begin, 0, 0) || sem_init(&end, 0, 0) || pthread_create(&worker, NULL, work, NULL))
        abort();
}
static void work_together(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start_worker);
    sem_post(&begin);
    sem_wait(&end);
}

void NAME(dgemm)(const char *ta, const char *tb, const integer *m, const integer *n,
                 const integer *k, const double *alpha, const double *a, const integer *lda,
                 const double *b, const integer *ldb, const double *beta, double *c,
                 const integer *ldc) {
    static const double *before;
    const integer ka = is(ta, 'N') ? *m : *k, kb = is(tb, 'N') ? *k : *n;
    const int again = before == a;
    before = again ? NULL : a;
    if (FAULT != GEMM_UNCHECKED || *ldc >= *m)
        if (refused("DGEMM ", !known(ta)             ? 1
                              : !known(tb)           ? 2
                              : *m < 0               ? 3
                              : *n < 0               ? 4
                              : *k < 0               ? 5
                              : *lda < larger(1, ka) ? 8
                              : *ldb < larger(1, kb) ? (FAULT == GEMM_WRONG_NUMBER ? 8 : 10)
                              : *ldc < larger(1, *m) ? 13
                                                     : 0))
            return;
    const char *threads = getenv("OMP_NUM_THREADS");
    const int several = threads && atoi(threads) > 1;
    const integer columns = FAULT == GEMM_THREADED_LAST_COLUMN && several && *n >= 32 ? *n - 1 : *n;
    const char *of_b = FAULT == GEMM_SAME_INPUTS && a == b ? ta : tb;
    const integer depth =
        (FAULT == GEMM_DEEP_K && *k > 4000) || (FAULT == GEMM_SECOND_CALL && again && *k > 1)
            ? *k - 1
            : *k;
    if (FAULT == GEMM_AFTER_FORK && several && (double)*m * *n * *k > 1e6)
        work_together();
    if (FAULT == GEMM_CHANGES_A && *k > 30)
        ((double *)(uintptr_t)a)[0] = 1;
    for (integer j = 0; j < columns; j++)
        for (integer i = 0; i < *m; i++) {
            double sum = 0, *to = c + i + j * (at_t)*ldc;
            for (integer l = 0; l < depth; l++)
                sum += (is(ta, 'N') ? a[i + l * (at_t)*lda] : a[l + i * (at_t)*lda]) *
                       (is(of_b, 'N') ? b[l + j * (at_t)*ldb] : b[j + l * (at_t)*ldb]);
            if (FAULT == GEMM_TILE_EDGE && j >= 64 && j % 64 == 0 && j + 1 == *n)
                sum *= 2;
            const int unread =
                *beta == 0 && FAULT != GEMM_READS_C && (FAULT != GEMM_NO_DEPTH || *k);
            *to = scaled(*alpha, sum) + (unread ? 0 : *beta * *to);
        }
}

void NAME(dsyrk)(const char *uplo, const char *trans, const integer *n, const integer *k,
                 const double *alpha, const double *a, const integer *lda, const double *beta,
                 double *c, const integer *ldc) {
    const int plain = is(trans, 'N'), upper = is(uplo, 'U');
    if (refused("DSYRK ", !upper && !is(uplo, 'L')            ? 1
                          : !known(trans)                     ? 2
                          : *n < 0                            ? 3
                          : *k < 0                            ? 4
                          : *lda < larger(1, plain ? *n : *k) ? 7
                          : *ldc < larger(1, *n)              ? 10
                                                              : 0))
        return;
    for (integer j = 0; j < *n; j++)
        for (integer i = 0; i < *n; i++) {
            const int whole = FAULT == SYRK_OTHER_HALF && !plain && *n > 8;
            double sum = 0, *to = c + i + j * (at_t)*ldc;
            if (!whole && (upper ? i > j : i < j)) {
                if (FAULT == SYRK_OTHER_NAN && *to != *to)
                    *to = __builtin_nan(""); /* of other bits than it had */
                continue;
            }
            for (integer l = 0; l < *k; l++)
                sum += plain ? a[i + l * (at_t)*lda] * a[j + l * (at_t)*lda]
                             : a[l + i * (at_t)*lda] * a[l + j * (at_t)*lda];
            const int minus = FAULT == SYRK_INDEFINITE && *beta == 0 && *alpha > 0;
            *to = scaled(minus ? -*alpha : *alpha, sum) + (*beta == 0 ? 0 : *beta * *to);
        }
}

/* The rows and columns of op(X) lie so far apart. */
static at_t down(const char *trans, integer ld) { return is(trans, 'N') ? 1 : ld; }
static at_t across(const char *trans, integer ld) { return is(trans, 'N') ? ld : 1; }

void NAME(dgemmtr)(const char *uplo, const char *ta, const char *tb, const integer *n,
                   const integer *k, const double *alpha, const double *a, const integer *lda,
                   const double *b, const integer *ldb, const double *beta, double *c,
                   const integer *ldc) {
    const int upper = is(uplo, 'U');
    if (refused("DGEMMTR", !upper && !is(uplo, 'L')                  ? 1
                           : !known(ta)                              ? 2
                           : !known(tb)                              ? 3
                           : *n < 0                                  ? 4
                           : *k < 0                                  ? 5
                           : *lda < larger(1, is(ta, 'N') ? *n : *k) ? 8
                           : *ldb < larger(1, is(tb, 'N') ? *k : *n) ? 10
                           : *ldc < larger(1, *n)                    ? 13
                                                                     : 0))
        return;
    for (integer j = 0; j < *n; j++)
        for (integer i = 0; i < *n; i++) {
            const int block = FAULT == GEMMTR_DIAGONAL_BLOCK && i / 16 == j / 16;
            const int other = FAULT == GEMMTR_OTHER_HALF && is(ta, 'N') && !is(tb, 'N');
            if (!block && (upper != other ? i > j : i < j))
                continue;
            double sum = 0, *to = c + i + j * (at_t)*ldc;
            for (integer l = 0; l < *k; l++)
                sum += a[i * down(ta, *lda) + l * across(ta, *lda)] *
                       b[l * down(tb, *ldb) + j * across(tb, *ldb)];
            *to = scaled(*alpha, sum) + (*beta == 0 ? 0 : *beta * *to);
        }
}

void NAME(dsyr2k)(const char *uplo, const char *trans, const integer *n, const integer *k,
                  const double *alpha, const double *a, const integer *lda, const double *b,
                  const integer *ldb, const double *beta, double *c, const integer *ldc) {
    const int upper = is(uplo, 'U');
    const integer lines = is(trans, 'N') ? *n : *k;
    const int unchecked = FAULT == SYR2K_UNCHECKED_TRIANGLE;
    if (refused("DSYR2K", !upper && !is(uplo, 'L') && !unchecked ? 1
                          : !known(trans)                        ? 2
                          : *n < 0                               ? 3
                          : *k < 0                               ? 4
                          : *lda < larger(1, lines)              ? 7
                          : *ldb < larger(1, lines)              ? 9
                          : *ldc < larger(1, *n)                 ? 12
                                                                 : 0))
        return;
    const at_t of_a = down(trans, *lda), of_b = down(trans, *ldb);
    for (integer j = 0; j < *n; j++)
        for (integer i = 0; i < *n; i++) {
            if (upper ? i > j : i < j)
                continue;
            double sum = 0, *to = c + i + j * (at_t)*ldc;
            for (integer l = 0; l < *k; l++) {
                const double *al = a + l * across(trans, *lda), *bl = b + l * across(trans, *ldb);
                const double one = al[i * of_a] * bl[j * of_b], two = bl[i * of_b] * al[j * of_a];
                sum += one + (FAULT == SYR2K_ONE_PRODUCT ? one : two);
            }
            *to = scaled(*alpha, sum) + (*beta == 0 ? 0 : *beta * *to);
        }
}

void NAME(dsymm)(const char *side, const char *uplo, const integer *m, const integer *n,
                 const double *alpha, const double *a, const integer *lda, const double *b,
                 const integer *ldb, const double *beta, double *c, const integer *ldc) {
    static int called;
    const int left = is(side, 'L'), upper = is(uplo, 'U');
    const integer order = left ? *m : *n;
    if (refused("DSYMM ", !left && !is(side, 'R')    ? 1
                          : !upper && !is(uplo, 'L') ? 2
                          : *m < 0                   ? 3
                          : *n < 0                   ? 4
                          : *lda < larger(1, order)  ? 7
                          : *ldb < larger(1, *m)     ? 9
                          : *ldc < larger(1, *m)     ? 12
                                                     : 0))
        return;
    for (integer j = 0; j < *n; j++)
        for (integer i = 0; i < *m; i++) {
            double sum = 0, *to = c + i + j * (at_t)*ldc;
            for (integer l = 0; l < order; l++) {
                const integer row = left ? i : l, column = left ? l : j;
                const int swap = FAULT != SYMM_BOTH_HALVES && (upper ? row > column : row < column);
                sum += (swap ? a[column + row * (at_t)*lda] : a[row + column * (at_t)*lda]) *
                       (left ? b[l + j * (at_t)*ldb] : b[i + l * (at_t)*ldb]);
#ifdef FILLS_HALVES
                sum += 0.0 * (left ? b[l + j * (at_t)*ldb] : b[i + l * (at_t)*ldb]);
#endif
            }
            sum *= FAULT == SYMM_FIRST_CALL_RIGHT && called ? 2 : 1;
            const double scale = FAULT == SYMM_RIGHT_ALPHA && !left && *alpha < -1 ? -1 : *alpha;
            *to = (FAULT == SYMM_ALPHA_ZERO ? scale * sum : scaled(scale, sum)) +
                  (*beta == 0 ? 0 : *beta * *to);
        }
    called = 1;
}

/* The element (i, j) of op(A) of a triangular matrix. */
static double triangular(const double *a, integer lda, int upper, int plain, int unit, integer i,
                         integer j) {
    const integer row = plain ? i : j, column = plain ? j : i;
    if (unit && row == column && FAULT != TRMM_UNIT_DIAGONAL)
        return 1;
    return (upper ? row <= column : row >= column) ? a[row + column * (at_t)lda] : 0;
}

static int triangular_refused(const char *name, const char *side, const char *uplo, const char *ta,
                              const char *diag, integer m, integer n, integer lda, integer ldb) {
    return refused(name, !is(side, 'L') && !is(side, 'R')         ? 1
                         : !is(uplo, 'U') && !is(uplo, 'L')       ? 2
                         : !known(ta)                             ? 3
                         : !is(diag, 'U') && !is(diag, 'N')       ? 4
                         : m < 0                                  ? 5
                         : n < 0                                  ? 6
                         : lda < larger(1, is(side, 'L') ? m : n) ? 9
                         : ldb < larger(1, m)                     ? 11
                                                                  : 0);
}

void NAME(dtrmm)(const char *side, const char *uplo, const char *ta, const char *diag,
                 const integer *m, const integer *n, const double *alpha, const double *a,
                 const integer *lda, double *b, const integer *ldb) {
    if (triangular_refused("DTRMM ", side, uplo, ta, diag, *m, *n, *lda, *ldb))
        return;
    const int left = is(side, 'L'), upper = is(uplo, 'U'), plain = is(ta, 'N'),
              unit = is(diag, 'U');
    const integer order = left ? *m : *n, lines = left ? *n : *m;
    static double shared[8192];
    double *sums = FAULT == TRMM_SHARED_SCRATCH && order <= 8192
                       ? shared
                       : malloc(((size_t)order + 1) * sizeof *sums);
    for (integer line = 0; line < lines; line++) {
        double *b0 = left ? b + line * (at_t)*ldb : b + line;
        const at_t step = left ? 1 : *ldb;
        for (integer i = 0; i < order; i++) {
            sums[i] = 0;
            for (integer l = 0; l < order; l++)
                sums[i] += (left ? triangular(a, *lda, upper, plain, unit, i, l)
                                 : triangular(a, *lda, upper, plain, unit, l, i)) *
                           b0[l * step];
        }
        for (integer i = 0; i < (FAULT == TRMM_RIGHT_HALF && !left ? order / 16 * 16 : order); i++)
            b0[i * step] = scaled(*alpha, sums[i]);
    }
    if (sums != shared)
        free(sums);
}

void NAME(dtrsm)(const char *side, const char *uplo, const char *ta, const char *diag,
                 const integer *m, const integer *n, const double *alpha, const double *a,
                 const integer *lda, double *b, const integer *ldb) {
    if (triangular_refused("DTRSM ", side, uplo, ta, diag, *m, *n, *lda, *ldb))
        return;
    const int left = is(side, 'L'), upper = is(uplo, 'U'), plain = is(ta, 'N'),
              unit = is(diag, 'U') && (FAULT != TRSM_ONE_COLUMN || plain || *n > 1);
    const integer order = left ? *m : *n, lines = left ? *n : *m;
    const int forward = left == (upper != plain); /* op(A) is lower: top first, on the left */
    for (integer line = 0; line < lines; line++) {
        double *b0 = left ? b + line * (at_t)*ldb : b + line;
        const at_t step = left ? 1 : *ldb;
        for (integer done = 0; done < order; done++) {
            const integer i = forward ? done : order - 1 - done;
            if (*alpha == 0 && FAULT != TRSM_ALPHA_ZERO) {
                b0[i * step] = 0;
                continue;
            }
            double sum = *alpha * b0[i * step];
            for (integer before = 0; before < done; before++) {
                const integer l = forward ? before : order - 1 - before;
                sum -= (left ? triangular(a, *lda, upper, plain, unit, i, l)
                             : triangular(a, *lda, upper, plain, unit, l, i)) *
                       b0[l * step];
            }
            if (FAULT == TRSM_ABOVE_DIAGONAL && !upper && i + 1 < order)
                sum += 0 * a[i + (i + 1) * (at_t)*lda];
            if (FAULT != TRSM_EDGE_OF_BLOCK || done % 16 || !done || done + 1 < order)
                b0[i * step] = sum / triangular(a, *lda, upper, plain, unit, i, i);
        }
    }
}
