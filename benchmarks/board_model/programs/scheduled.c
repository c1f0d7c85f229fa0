/* A whole SGEMM around a micro-kernel scheduled as the one that QiMeng-TensorOp published for the
 * K1 is described to be: 16x8, LMUL 1, K unrolled by 2, A loaded one k ahead by whole registers,
 * each scalar of B four pairs of multiply-adds ahead. scheduled N M_BLOCK K_BLOCK: column-major, C
 * = A B, N a multiple of 16, checked on a few elements. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "region.h"

enum { MR = 16, NR = 8 };

#define PAIR(low, high, scalar, a0, a1, ahead, offset)                                             \
    "vfmacc.vf v" #low ", " scalar ", " a0 "\n\tvfmacc.vf v" #high ", " scalar ", " a1             \
    "\n\tflw " ahead ", " #offset "(%[b])\n\t"
/* One k: the scalars of its second half and of the next k's first half are loaded on the way. */
#define STEP(a0, a1, o4, o5, o6, o7, n0, n1, n2, n3)                                               \
    PAIR(16, 17, "ft0", a0, a1, "ft4", o4)                                                         \
    PAIR(18, 19, "ft1", a0, a1, "ft5", o5)                                                         \
    PAIR(20, 21, "ft2", a0, a1, "ft6", o6)                                                         \
    PAIR(22, 23, "ft3", a0, a1, "ft7", o7)                                                         \
    PAIR(24, 25, "ft4", a0, a1, "ft0", n0)                                                         \
    PAIR(26, 27, "ft5", a0, a1, "ft1", n1)                                                         \
    PAIR(28, 29, "ft6", a0, a1, "ft2", n2)                                                         \
    PAIR(30, 31, "ft7", a0, a1, "ft3", n3)
#define ADD(low, high)                                                                             \
    "vle32.v v0, (%[c])\n\tadd t1, %[c], t0\n\tvle32.v v1, (t1)\n\t"                               \
    "vfadd.vv v0, v0, v" #low "\n\tvfadd.vv v1, v1, v" #high                                       \
    "\n\tvse32.v v0, (%[c])\n\tvse32.v v1, (t1)\n\tadd %[c], %[c], %[ldc]\n\t"
#define ZERO(r) "vmv.v.i v" #r ", 0\n\t"

/* c[16 x 8] += a[k][16] b[k][8]; k even; both panels may be read one k beyond their end. */
static void kernel(long k, const float *a, const float *b, float *c, long ldc) {
    long pairs = k / 2, bytes = ldc * 4;
    __asm__ volatile(
        "vsetvli t0, zero, e32, m1, ta, ma\n\tslli t0, t0, 2\n\t" ZERO(16) ZERO(17) ZERO(18)
            ZERO(19) ZERO(20) ZERO(21) ZERO(22) ZERO(23) ZERO(24) ZERO(25) ZERO(26) ZERO(27)
                ZERO(28) ZERO(29) ZERO(30)
                    ZERO(31) "vl2re32.v v0, (%[a])\n\taddi %[a], %[a], 64\n\t"
                             "flw ft0, 0(%[b])\n\tflw ft1, 4(%[b])\n\tflw ft2, "
                             "8(%[b])\n\tflw ft3, 12(%[b])\n\t"
                             "1:\n\t"
                             "vl2re32.v v2, (%[a])\n\taddi %[a], %[a], 64\n\t" STEP(
                                 "v0", "v1", 16, 20, 24, 28, 32, 36, 40,
                                 44) "vl2re32.v v0, (%[a])\n\taddi %[a], %[a], "
                                     "64\n\t" STEP("v2", "v3", 48, 52, 56, 60, 64, 68, 72,
                                                   76) "addi %[b], %[b], 64\n\taddi "
                                                       "%[k], %[k], -1\n\tbnez %[k], "
                                                       "1b\n\t" ADD(16, 17) ADD(18, 19) ADD(20, 21)
                                                           ADD(22, 23) ADD(24, 25) ADD(26, 27)
                                                               ADD(28, 29) ADD(30, 31)
        : [k] "+r"(pairs), [a] "+r"(a), [b] "+r"(b), [c] "+r"(c)
        : [ldc] "r"(bytes)
        : "t0", "t1", "ft0", "ft1", "ft2", "ft3", "ft4", "ft5", "ft6", "ft7", "memory");
}

static long least(long a, long b) { return a < b ? a : b; }

static void pack_a(long m, long k, const float *a, long lda, float *to) {
    for (long i = 0; i < m; i += MR)
        for (long p = 0; p < k; p++, to += MR)
            memcpy(to, a + i + p * lda, MR * sizeof *to);
}

static void pack_b(long k, long n, const float *b, long ldb, float *to) {
    for (long j = 0; j < n; j += NR)
        for (long p = 0; p < k; p++)
            for (long t = 0; t < NR; t++)
                *to++ = b[p + (j + t) * ldb];
}

static void multiply(long n, const float *a, const float *b, float *c, long mc, long kc,
                     float *room_a, float *room_b) {
    memset(c, 0, sizeof *c * (size_t)(n * n));
    for (long p = 0; p < n; p += kc) {
        long k = least(kc, n - p);
        pack_b(k, n, b + p, n, room_b);
        for (long i = 0; i < n; i += mc) {
            long m = least(mc, n - i);
            pack_a(m, k, a + i + p * n, n, room_a);
            for (long j = 0; j < n; j += NR)
                for (long t = 0; t < m; t += MR)
                    kernel(k, room_a + t * k, room_b + j * k, c + i + t + j * n, n);
        }
    }
}

static float *room(long elements) {
    float *at = aligned_alloc(4096, ((size_t)elements * sizeof(float) + 8191) & ~(size_t)4095);
    if (!at)
        exit(1);
    memset(at, 0, (size_t)elements * sizeof(float));
    return at;
}

int main(int argc, char **argv) {
    if (argc != 4)
        return 2;
    long n = atol(argv[1]), mc = atol(argv[2]), kc = atol(argv[3]);
    float *a = room(n * n), *b = room(n * n), *c = room(n * n);
    float *room_a = room(mc * kc + 64), *room_b = room(kc * n + 64);
    for (long i = 0; i < n * n; i++) {
        a[i] = (float)(i % 7);
        b[i] = (float)(i % 5);
    }
    TENSOROP_REGION_BEGIN();
    multiply(n, a, b, c, mc, kc, room_a, room_b);
    TENSOROP_REGION_END();
    for (long i = 0; i < n; i += 37) {
        long j = (i * 11) % n;
        float sum = 0;
        for (long p = 0; p < n; p++)
            sum += a[i + p * n] * b[p + j * n];
        if (fabsf(c[i + j * n] - sum) > 1e-4f * sum)
            return 3;
    }
    return 0;
}
