/* Products by a pool of threads that was made before the caller chose how to round and flush.
 * Arguments: side, threads, calls of each kind. Says what differs, a line each; nothing when all is
 * right. */
#define _GNU_SOURCE
#include <fenv.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <tensorop/gemm.h>

static int n, threads, calls;
static float *a, *b, *c, *alone;

/* Variant 0 sums each element in the same order however C is cut. */
static void product(int among) {
    tensorop_set_num_threads(among);
    tensorop_gemm_f32_variant(TENSOROP_ROW_MAJOR, TENSOROP_NO_TRANS, TENSOROP_NO_TRANS, n, n, n, 1,
                              a, n, b, n, 0, c, n, 0);
}

static void flush(int on) {
#if defined(__x86_64__)
    const unsigned bits = 0x8040; /* FTZ, DAZ */
    __builtin_ia32_ldmxcsr((__builtin_ia32_stmxcsr() & ~bits) | (on ? bits : 0));
#elif defined(__aarch64__)
    uint64_t word;
    __asm__ volatile("mrs %0, fpcr" : "=r"(word));
    word = (word & ~(1ul << 24)) | (uint64_t)on << 24;
    __asm__ volatile("msr fpcr, %0" ::"r"(word));
#else
    (void)on;
#endif
}

static void fill(float scale) {
    uint32_t state = 1;
    for (int i = 0; i < n * n; ++i) {
        a[i] = (float)(int32_t)(state = state * 1664525 + 1013904223) * 0x1p-31f;
        b[i] = (float)(int32_t)(state = state * 1664525 + 1013904223) * 0x1p-31f * scale;
    }
}

/* The same call again and again: bits and flags of one thread's, and the caller's modes as they
 * were. */
static void compare(const char *what) {
    const int rounding = fegetround();
    int flags, others = 0, raised = 0;
    feclearexcept(FE_ALL_EXCEPT);
    product(1);
    flags = fetestexcept(FE_ALL_EXCEPT);
    memcpy(alone, c, sizeof *c * n * n);
    for (int i = 0; i < calls; ++i) {
        feclearexcept(FE_ALL_EXCEPT);
        product(threads);
        raised += fetestexcept(FE_ALL_EXCEPT) != flags;
        others += memcmp(c, alone, sizeof *c * n * n) != 0;
    }
    if (others || raised || fegetround() != rounding)
        printf("%s: %d of %d calls differ in bits, %d in flags, rounding %d is %d\n", what, others,
               calls, raised, rounding, fegetround());
}

/* One element of each quarter overflows in turn: whoever computes it, the caller sees the flag. */
static void overflows(void) {
    int missed = 0;
    for (int i = 0; i < 4 * calls; ++i) {
        float *row = a + (size_t)(i & 1 ? n - 1 : 0) * n, *column = b + (i & 2 ? n - 1 : 0);
        const float row_was = *row, column_was = *column;
        *row = *column = 3e38f;
        feclearexcept(FE_ALL_EXCEPT);
        product(threads);
        missed += !fetestexcept(FE_OVERFLOW);
        *row = row_was, *column = column_was;
    }
    if (missed)
        printf("%d of %d overflows unseen\n", missed, 4 * calls);
}

static float *asleep; /* a page that its owner opens when it is touched */

static void open_page(int number, siginfo_t *info, void *context) {
    (void)context;
    const uintptr_t page = (uintptr_t)info->si_addr & ~(uintptr_t)4095;
    if (!asleep || page < (uintptr_t)asleep || page >= (uintptr_t)(asleep + n * n))
        signal(number, SIG_DFL);
    else
        mprotect((void *)page, 4096, PROT_READ);
}

static void sleeping_pages(void) {
    const size_t bytes = (sizeof *a * n * n + 4095) / 4096 * 4096;
    const struct sigaction action = {.sa_sigaction = open_page, .sa_flags = SA_SIGINFO};
    float *const was = a;
    int others = 0;
    product(1);
    memcpy(alone, c, sizeof *c * n * n);
    sigaction(SIGSEGV, &action, NULL);
    a = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(a, was, sizeof *a * n * n);
    asleep = a;
    for (int i = 0; i < calls; ++i) {
        mprotect(a, bytes, PROT_NONE);
        product(threads);
        others += memcmp(c, alone, sizeof *c * n * n) != 0;
    }
    a = was;
    if (others)
        printf("%d of %d calls differ where pages are opened on demand\n", others, calls);
}

#if defined(__x86_64__)
static sigjmp_buf trapped;

static void leap(int number) { siglongjmp(trapped, number); }

/* A caller who traps is interrupted within the call, in the caller's own thread, and may go on to
 * other calls. */
static void traps(void) {
    int caught = 0;
    fenv_t before;
    fegetenv(&before);
    signal(SIGFPE, leap);
    for (int i = 0; i < calls; ++i) {
        a[i % 2 ? 0 : n * (n - 1)] = b[n - 1] = 3e38f; /* of the first or the last part */
        if (!sigsetjmp(trapped, 1)) {
            feclearexcept(FE_ALL_EXCEPT);
            feenableexcept(FE_OVERFLOW);
            product(threads);
        } else
            ++caught;
        fesetenv(&before);
        fill(1);
    }
    if (caught != calls)
        printf("%d of %d traps reached the caller\n", caught, calls);
}
#endif

int main(int count, char **word) {
    if (count != 5)
        return 2;
    n = atoi(word[1]), threads = atoi(word[2]), calls = atoi(word[3]);
    a = calloc(n * n, sizeof *a), b = calloc(n * n, sizeof *b), c = calloc(n * n, sizeof *c);
    alone = calloc(n * n, sizeof *c);
    static const struct {
        const char *name;
        int rounding, flush;
        float scale;
    } kinds[] = {{"upward", FE_UPWARD, 0, 1},
                 {"flushed", FE_TONEAREST, 1, 0x1p-125f},
                 {"downward", FE_DOWNWARD, 0, 1},
                 {"toward zero", FE_TOWARDZERO, 0, 1},
                 {"nearest", FE_TONEAREST, 0, 1},
                 {"upward and flushed", FE_UPWARD, 1, 0x1p-125f},
                 {"nearest, not flushed", FE_TONEAREST, 0, 0x1p-125f}};
    fill(1);
    product(threads); /* makes the pool */
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && i < (size_t)atoi(word[4]); ++i) {
        fill(kinds[i].scale);
        fesetround(kinds[i].rounding);
        flush(kinds[i].flush);
        compare(kinds[i].name);
    }
    fill(1);
    overflows();
    sleeping_pages();
#if defined(__x86_64__)
    traps();
    compare("after traps");
#endif
    return 0;
}
