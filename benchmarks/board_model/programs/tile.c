/* The 16x15 micro-kernel at LMUL 2 alone, A and B in level 1: all 15 accumulators and one group of
 * A, so that A cannot be loaded ahead; the scalars of B are spread over the multiply-adds. tile K
 * REPEATS. */
#include <stdlib.h>

#include "region.h"

#define FMA(group, scalar, ahead, offset)                                                          \
    "vfmacc.vf v" #group ", " scalar ", v0\n\tflw " ahead ", " #offset "(%[b])\n\t"
#define ZERO(r) "vmv.v.i v" #r ", 0\n\t"

static void kernel(long k, const float *a, const float *b) {
    __asm__ volatile(
        "vsetvli t0, zero, e32, m2, ta, ma\n\t" ZERO(2) ZERO(4) ZERO(6) ZERO(8) ZERO(10) ZERO(12)
            ZERO(14) ZERO(16) ZERO(18) ZERO(20) ZERO(22) ZERO(24) ZERO(26) ZERO(28) ZERO(
                30) "flw ft0, 0(%[b])\n\tflw ft1, 4(%[b])\n\tflw ft2, 8(%[b])\n\tflw ft3, "
                    "12(%[b])\n\t"
                    "1:\n\t"
                    "vle32.v v0, (%[a])\n\taddi %[a], %[a], 64\n\t" FMA(2, "ft0", "ft4", 16)
                        FMA(4, "ft1", "ft5", 20) FMA(6, "ft2", "ft6", 24) FMA(8, "ft3", "ft7", 28)
                            FMA(10, "ft4", "ft0", 32) FMA(12, "ft5", "ft1", 36)
                                FMA(14, "ft6", "ft2", 40) FMA(16, "ft7", "ft3", 44)
                                    FMA(18, "ft0", "ft4", 48) FMA(20, "ft1", "ft5", 52)
                                        FMA(22, "ft2", "ft6", 56) FMA(24, "ft3", "ft0", 60)
                                            FMA(26, "ft4", "ft1", 64) FMA(28, "ft5", "ft2", 68)
                                                FMA(30, "ft6", "ft3",
                                                    72) "addi %[b], %[b], 60\n\taddi %[k], %[k], "
                                                        "-1\n\tbnez %[k], 1b\n\t"
        : [k] "+r"(k), [a] "+r"(a), [b] "+r"(b)
        :
        : "t0", "ft0", "ft1", "ft2", "ft3", "ft4", "ft5", "ft6", "ft7", "memory");
}

int main(int argc, char **argv) {
    static float a[16 * 160], b[15 * 164];
    if (argc != 3 || atol(argv[1]) > 160)
        return 2;
    long k = atol(argv[1]), repeats = atol(argv[2]);
    kernel(k, a, b);
    TENSOROP_REGION_BEGIN();
    for (long i = 0; i < repeats; i++)
        kernel(k, a, b);
    TENSOROP_REGION_END();
    return 0;
}
