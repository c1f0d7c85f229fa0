/* Calls programs of the templates' language with exactly sized operands, under
 * -fsanitize=address,undefined. */
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct {
    double of[8];
} vector_t;
typedef struct {
    size_t lanes, m, n, k, lda, rsb, csb, ldc;
} sizes_t;
typedef void program_t(size_t, size_t, size_t, const double *, size_t, const double *, size_t,
                       size_t, double *, size_t, double, double);

static size_t plain_lanes;
static size_t now;
static sizes_t at;

static void where(void) {
    fprintf(stderr,
            "program %zu: lanes %zu, m %zu, n %zu, k %zu, lda %zu, rsb %zu, csb %zu, ldc %zu\n",
            now, at.lanes, at.m, at.n, at.k, at.lda, at.rsb, at.csb, at.ldc);
}

static void ended(const char *why) {
    fprintf(stderr, "%s\n", why);
    where();
    _exit(3);
}

static void never(void) { ended("what is held for never executed was executed"); }
static void slow(int signal) {
    (void)signal;
    ended("a loop does not end");
}

static size_t plain_full(void) { return plain_lanes; }
static size_t plain_tail(size_t count) {
    if (count > plain_lanes)
        ended("a predicate has more lanes than a vector");
    return count;
}
static vector_t plain_zero(size_t vl) {
    (void)vl;
    return (vector_t){{0}};
}
static vector_t plain_load_strided(const double *p, size_t by, size_t vl) {
    vector_t x = {{0}};
    for (size_t i = 0; i < plain_tail(vl); ++i)
        x.of[i] = p[i * by];
    return x;
}
static vector_t plain_load_tail(const double *p, size_t vl) { return plain_load_strided(p, 1, vl); }
static vector_t plain_load(const double *p, size_t vl) { return plain_load_strided(p, 1, vl); }
static void plain_store_tail(double *p, vector_t x, size_t vl) {
    for (size_t i = 0; i < plain_tail(vl); ++i)
        p[i] = x.of[i];
}
static void plain_store(double *p, vector_t x, size_t vl) { plain_store_tail(p, x, vl); }
static vector_t plain_add(vector_t x, vector_t y, size_t vl) {
    for (size_t i = 0; i < plain_tail(vl); ++i)
        x.of[i] += y.of[i];
    return x;
}
static vector_t plain_mul(vector_t x, double s, size_t vl) {
    for (size_t i = 0; i < plain_tail(vl); ++i)
        x.of[i] *= s;
    return x;
}
static void plain_prefetch(const double *p) { __builtin_prefetch(p); }

/* @PROGRAMS */

static program_t *const programs[] = {/* @TABLE */};
static const sizes_t calls[] = {/* @CALLS */};

/* Memory of rows * columns elements at i * rs + j * cs; any other element is poisoned. */
static double *operand(size_t rows, size_t rs, size_t columns, size_t cs) {
    const size_t elements = (rows - 1) * rs + (columns - 1) * cs + 1;
    double *const p = malloc(elements * sizeof *p);
    for (size_t i = 0; i < elements; ++i)
        p[i] = 1;
    ASAN_POISON_MEMORY_REGION(p, elements * sizeof *p);
    for (size_t i = 0; i < rows; ++i)
        for (size_t j = 0; j < columns; ++j)
            ASAN_UNPOISON_MEMORY_REGION(p + i * rs + j * cs, sizeof *p);
    return p;
}

/* With an argument: calls this program alone. */
int main(int argc, char **argv) {
    const size_t only = argc > 1 ? strtoul(argv[1], NULL, 10) : SIZE_MAX;
    __sanitizer_set_death_callback(where);
    signal(SIGALRM, slow);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i) {
        at = calls[i];
        plain_lanes = at.lanes;
        double *const a = operand(at.k, at.lda, at.m, 1),
                      *const b = operand(at.k, at.rsb, at.n, at.csb),
                      *const c = operand(at.n, at.ldc, at.m, 1);
        for (now = 0; now < sizeof programs / sizeof *programs; ++now) {
            if (only != SIZE_MAX && now != only)
                continue;
            alarm(5);
            for (int beta = 0; beta < 3; ++beta)
                programs[now](at.m, at.n, at.k, a, at.lda, b, at.rsb, at.csb, c, at.ldc, 2 - beta,
                              beta);
        }
        free(a), free(b), free(c);
    }
    return 0;
}
