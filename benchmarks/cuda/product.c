/* Judges a product on a GPU: every element of C, in double on the host, guards around C, inputs
 * compared after. Faulty calls first, which must all be refused.
 *
 *     make -C benchmarks/cuda build/product PRODUCT=DIR && benchmarks/cuda/build/product [SHAPE...]
 *
 * Links the product's own archive; needs libc, libdl, libpthread and the driver. */
#define _GNU_SOURCE
#include <tensorop/gemm_cuda.h>

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { GUARD = 256, THREADS = 64, ROW = 101, PLAIN = 111 };

typedef uint64_t pointer;
static void *driver;

/* A function of the driver, of this type. */
#define CU(type, name) ((int(*) type)found(#name))

static void *found(const char *name) {
    void *at = dlsym(driver, name);
    if (!at) {
        fprintf(stderr, "the driver has no %s\n", name);
        exit(2);
    }
    return at;
}

static void must(int status, const char *doing) {
    if (status) {
        fprintf(stderr, "%s: driver's error %d\n", doing, status);
        exit(2);
    }
}

/* A fault of the caller's, in place of a kernel's: what it leaves must be refused. */
enum fault {
    NONE,
    NOT_LAUNCHED,
    LAST_K_LOST,
    BETA_IGNORED,
    ONE_OFF,
    BEHIND_C,
    INPUT_CHANGED,
    FAULTS
};
static const char *const faults[] = {
    "none",    "not launched",     "the last 16 of k lost", "beta ignored",
    "one off", "written behind C", "an input changed",
};

struct matrix {
    uint16_t *host, *before;
    pointer at;
    int64_t size, ld; /* elements */
};

struct call {
    int64_t m, n, k;
    int f16, column, ta, tb, pad, shift;
    float alpha, beta;
    struct matrix a, b, c;
    float *left, *right; /* op(A) by rows, op(B) by columns */
};

/* A thread's share of C's rows, and what it found: the largest error over what is allowed. */
struct share {
    const struct call *call;
    int first, step;
    double worst;
    pthread_t thread;
};

static uint64_t state;
static uint16_t pool[2][1 << 14]; /* of N(0, 1), in either type */

static uint64_t draw(void) {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double normal(void) {
    double one = (double)(draw() >> 11) * 0x1p-53, two = (double)(draw() >> 11) * 0x1p-53;
    return sqrt(-2 * log(one + 1e-300)) * cos(6.283185307179586 * two);
}

static uint16_t encoded(double x, int f16) {
    uint16_t held;
    if (f16) {
        _Float16 half = (_Float16)x;
        memcpy(&held, &half, 2);
        return held;
    }
    float whole = (float)x;
    uint32_t bits;
    memcpy(&bits, &whole, 4);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static void fill_pool(void) {
    for (int i = 0; i < 1 << 14; i++) {
        const double value = normal();
        pool[0][i] = encoded(value, 0), pool[1][i] = encoded(value, 1);
    }
}

static float decoded(uint16_t held, int f16) {
    if (f16) {
        _Float16 half;
        memcpy(&half, &held, 2);
        return (float)half;
    }
    uint32_t bits = (uint32_t)held << 16;
    float whole;
    memcpy(&whole, &bits, 4);
    return whole;
}

/* rows x cols as `column` says, a line `pad` elements longer than it must be; a NaN in all gaps. */
static struct matrix matrix(const struct call *p, int64_t rows, int64_t cols, bool column,
                            bool full) {
    const int64_t inner = column ? rows : cols, outer = column ? cols : rows;
    struct matrix x = {.ld = inner + p->pad};
    x.size = outer * x.ld + p->shift + 2 * GUARD;
    x.host = malloc(2 * (size_t)x.size), x.before = malloc(2 * (size_t)x.size);
    for (int64_t i = 0; i < x.size; i++)
        x.host[i] = 0x7fff;
    uint16_t *first = x.host + GUARD + p->shift;
    for (int64_t i = 0; full && i < outer; i++)
        for (int64_t j = 0; j < inner; j++)
            first[i * x.ld + j] = pool[p->f16][draw() >> 50];
    memcpy(x.before, x.host, 2 * (size_t)x.size);
    must(CU((pointer *, size_t), cuMemAlloc_v2)(&x.at, 2 * (size_t)x.size), "memory");
    must(CU((pointer, const void *, size_t), cuMemcpyHtoD_v2)(x.at, x.host, 2 * (size_t)x.size),
         "copy");
    return x;
}

static void release(struct matrix *x) {
    CU((pointer), cuMemFree_v2)(x->at);
    free(x->host), free(x->before);
}

static void *device(const struct call *p, const struct matrix *x) {
    return (void *)(uintptr_t)(x->at + 2 * (size_t)(GUARD + p->shift)); /* NOLINT */
}

static float element(const struct call *p, const struct matrix *x, const uint16_t *of, bool column,
                     int64_t row, int64_t col) {
    return decoded(of[GUARD + p->shift + (column ? col * x->ld + row : row * x->ld + col)], p->f16);
}

/* One rounding to C's type, and sums of float in any order. */
static void *judge_rows(void *given) {
    struct share *of = given;
    const struct call *p = of->call;
    const double unit = p->f16 ? 0x1p-11 : 0x1p-8;
    for (int64_t row = of->first; row < p->m; row += of->step)
        for (int64_t col = 0; col < p->n; col++) {
            const float *a = p->left + row * p->k, *b = p->right + col * p->k;
            double want[4] = {0}, size[4] = {0};
            for (int64_t i = 0; i < p->k; i++) {
                const double term = (double)a[i] * (double)b[i];
                want[i & 3] += term, size[i & 3] += fabs(term);
            }
            const double before = (double)element(p, &p->c, p->c.before, p->column, row, col);
            const double got = (double)element(p, &p->c, p->c.host, p->column, row, col);
            double exact = (double)p->alpha * (want[0] + want[1] + want[2] + want[3]);
            double sizes = fabs((double)p->alpha) * (size[0] + size[1] + size[2] + size[3]);
            if (p->beta != 0)
                exact += (double)p->beta * before, sizes += fabs((double)p->beta * before);
            const double allowed = unit * fabs(exact) + (double)(p->k + 3) * 0x1p-24 * sizes + 1e-7;
            const double ratio = fabs(got - exact) / allowed;
            if (!(ratio <= of->worst))
                of->worst = isnan(ratio) ? INFINITY : ratio;
        }
    return NULL;
}

static double judge_product(struct call *p) {
    static struct share shares[THREADS];
    const int threads = (int)fmin(THREADS, (double)sysconf(_SC_NPROCESSORS_ONLN));
    p->left = malloc(sizeof(float) * (size_t)(p->m * p->k + 1));
    p->right = malloc(sizeof(float) * (size_t)(p->n * p->k + 1));
    for (int64_t row = 0; row < p->m; row++)
        for (int64_t i = 0; i < p->k; i++)
            p->left[row * p->k + i] = p->ta ? element(p, &p->a, p->a.before, p->column, i, row)
                                            : element(p, &p->a, p->a.before, p->column, row, i);
    for (int64_t col = 0; col < p->n; col++)
        for (int64_t i = 0; i < p->k; i++)
            p->right[col * p->k + i] = p->tb ? element(p, &p->b, p->b.before, p->column, col, i)
                                             : element(p, &p->b, p->b.before, p->column, i, col);
    double worst = 0;
    for (int i = 0; i < threads; i++) {
        shares[i] = (struct share){.call = p, .first = i, .step = threads};
        pthread_create(&shares[i].thread, NULL, judge_rows, &shares[i]);
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(shares[i].thread, NULL);
        worst = fmax(worst, shares[i].worst);
    }
    free(p->left), free(p->right);
    return worst;
}

/* Whether all but C's own elements is as it was. */
static bool kept(const struct call *p, const struct matrix *x, bool output) {
    const int64_t inner = p->column ? p->m : p->n, outer = p->column ? p->n : p->m;
    const int64_t first = GUARD + p->shift;
    for (int64_t i = 0; i < x->size; i++) {
        const int64_t line = (i - first) / x->ld, at = (i - first) % x->ld;
        if (output && i >= first && line < outer && at < inner)
            continue;
        if (x->host[i] != x->before[i])
            return false;
    }
    return true;
}

static void change(const struct matrix *x, int64_t at, uint16_t to) {
    CU((pointer, const void *, size_t), cuMemcpyHtoD_v2)(x->at + 2 * (size_t)at, &to, 2);
}

/* NULL where a call is right, else what is wrong. */
static const char *call(tensorop_gemm_handle handle, struct call *p, enum fault fault,
                        double *worst, const char **label) {
    static char said[160];
    p->a = matrix(p, p->ta ? p->k : p->m, p->ta ? p->m : p->k, p->column, true);
    p->b = matrix(p, p->tb ? p->n : p->k, p->tb ? p->k : p->n, p->column, true);
    p->c = matrix(p, p->m, p->n, p->column, p->beta != 0);
    struct tensorop_gemm_problem problem = {.type = p->f16,
                                            .layout = ROW + p->column,
                                            .transa = PLAIN + p->ta,
                                            .transb = PLAIN + p->tb,
                                            .alpha = p->alpha,
                                            .beta = fault == BETA_IGNORED ? 0 : p->beta,
                                            .m = p->m,
                                            .n = p->n,
                                            .k = p->k - (fault == LAST_K_LOST ? 16 : 0),
                                            .lda = p->a.ld,
                                            .ldb = p->b.ld,
                                            .ldc = p->c.ld,
                                            .batch = 1};
    void *a = device(p, &p->a), *b = device(p, &p->b), *c = device(p, &p->c);
    size_t bytes = 0;
    pointer workspace = 0;
    int status = tensorop_gemm_workspace(handle, &problem, a, b, c, &bytes);
    if (bytes)
        must(CU((pointer *, size_t), cuMemAlloc_v2)(&workspace, bytes), "memory");
    *label = tensorop_gemm_chosen(handle, &problem, a, b, c, bytes);
    if (!status && fault != NOT_LAUNCHED)
        status = tensorop_gemm_ex(handle, NULL, &problem, a, b, c, (void *)(uintptr_t)workspace,
                                  bytes); /* NOLINT */
    must(CU((void), cuCtxSynchronize)(), "the kernel");
    if (fault == ONE_OFF)
        change(&p->c, GUARD + p->shift, encoded(1e4, p->f16));
    if (fault == BEHIND_C)
        change(&p->c, p->c.size - GUARD, 0);
    if (fault == INPUT_CHANGED)
        change(&p->a, GUARD + p->shift, 0x7fff);
    struct matrix *each[] = {&p->a, &p->b, &p->c};
    for (int i = 0; i < 3; i++)
        must(CU((void *, pointer, size_t), cuMemcpyDtoH_v2)(each[i]->host, each[i]->at,
                                                            2 * (size_t)each[i]->size),
             "copy");
    *worst = status ? 0 : judge_product(p);
    const char *wrong = NULL;
    if (status)
        snprintf(said, sizeof said, "%s", tensorop_gemm_message(status)), wrong = said;
    else if (!kept(p, &p->a, false) || !kept(p, &p->b, false))
        wrong = "an input changed";
    else if (!kept(p, &p->c, true))
        wrong = "written outside of C";
    else if (*worst > 1)
        snprintf(said, sizeof said, "an error of %.3g times what is allowed", *worst), wrong = said;
    for (int i = 0; i < 3; i++)
        release(each[i]);
    if (workspace)
        CU((pointer), cuMemFree_v2)(workspace);
    return wrong;
}

static int controls(tensorop_gemm_handle handle) {
    for (enum fault fault = NONE; fault < FAULTS; fault++) {
        struct call p = {.m = 200, .n = 136, .k = 96, .alpha = 0.7f, .beta = -1.3f};
        double worst;
        const char *label, *wrong = call(handle, &p, fault, &worst, &label);
        printf("control: %s: %s\n", faults[fault], wrong ? wrong : "right");
        if ((wrong != NULL) != (fault != NONE)) {
            puts("the judge is broken");
            return 1;
        }
    }
    return 0;
}

static int shape(tensorop_gemm_handle handle, int64_t m, int64_t n, int64_t k, int *calls) {
    int wrongs = 0;
    for (int i = 0; i < 32; i++) {
        const bool odd = i & 8; /* coefficients, gaps between lines, an odd address */
        if (odd && (double)m * (double)n * (double)k > 1e9)
            continue;
        struct call p = {.m = m,
                         .n = n,
                         .k = k,
                         .f16 = i & 1,
                         .ta = i >> 1 & 1,
                         .tb = i >> 2 & 1,
                         .column = i >> 4 & 1,
                         .alpha = odd ? 0.7f : 1,
                         .beta = odd ? -1.3f : 0,
                         .pad = odd ? 3 : 0,
                         .shift = odd ? 1 : 0};
        double worst;
        const char *label, *wrong = call(handle, &p, NONE, &worst, &label);
        printf("%s: %lldx%lldx%lld %s %s %c%c%s, error %.2f of what is allowed: %s%s%s\n",
               wrong ? "wrong" : "right", (long long)m, (long long)n, (long long)k,
               p.f16 ? "f16" : "bf16", p.column ? "column" : "row", p.ta ? 'T' : 'N',
               p.tb ? 'T' : 'N', odd ? " odd" : "", worst, label ? label : "", wrong ? ": " : "",
               wrong ? wrong : "");
        fflush(stdout);
        ++*calls, wrongs += wrong != NULL;
    }
    return wrongs;
}

int main(int count, char **words) {
    static char *usual[] = {"1x1x1",          "16x16x16",       "64x64x64",      "127x129x131",
                            "256x264x72",     "33x40x1000",     "512x512x512",   "511x513x1025",
                            "1x4096x4096",    "16x4096x4096",   "128x4096x4096", "1000x1000x1000",
                            "1001x1001x1001", "2048x2048x2048", "4096x4096x64"};
    if (!(driver = dlopen("libcuda.so.1", RTLD_NOW))) {
        fprintf(stderr, "no libcuda.so.1: is an NVIDIA driver here?\n");
        return 2;
    }
    if (getrandom(&state, sizeof state, 0) != sizeof state)
        return 2;
    fill_pool();
    tensorop_gemm_handle handle;
    const int status = tensorop_gemm_create(&handle, 0);
    if (status) {
        fprintf(stderr, "%s\n", tensorop_gemm_message(status));
        return 2;
    }
    void *context;
    int number = 0, wrongs = 0, calls = 0;
    must(CU((int *, int), cuDeviceGet)(&number, 0), "device");
    must(CU((void **, int), cuDevicePrimaryCtxRetain)(&context, number), "context");
    must(CU((void *), cuCtxSetCurrent)(context), "context");
    if (controls(handle))
        return 1;
    char **each = count > 1 ? words + 1 : usual;
    const int many = count > 1 ? count - 1 : (int)(sizeof usual / sizeof *usual);
    for (int i = 0; i < many; i++) {
        long long m, n, k;
        if (sscanf(each[i], "%lldx%lldx%lld", &m, &n, &k) != 3 || m < 1 || n < 1 || k < 1) {
            fprintf(stderr, "%s: expected MxNxK\n", each[i]);
            return 2;
        }
        wrongs += shape(handle, m, n, k, &calls);
    }
    printf("%d wrong of %d calls\n", wrongs, calls);
    tensorop_gemm_destroy(handle);
    return wrongs > 0;
}
