// gemm bf16 by small
//
// batches of small matrices: one warp per tile of 32 columns, from memory to registers and back, without shared memory
#include <stdint.h>

#ifndef TENSOROP_EPILOGUE
#define TENSOROP_EPILOGUE
/* What follows the sums of a row-major C, in this order: scales, bias, residual, activation. NULL: not asked for. */
struct Epilogue {
    const void *bias, *residual; /* of C's type */
    const float *by_row, *by_col; /* scales */
    int64_t ld, stride; /* of the residual's rows and matrices */
    int bias_by_row; /* the bias has an element for each row, else for each column */
    int pairs; /* 1: two adjacent elements of bias and residual are a word; 2: also eight of the residual, of 16 bytes */
    int activation; /* 1 ReLU, 2 GELU, 3 SiLU */
    int present; /* 0: nothing of this is; 1: no more than a bias by columns and an activation; 2: more */
};
#endif
/* Arguments of a launch with pointers. */
struct Args {
    int m, n, k, batch;
    int tiles_m, tiles_n, group;
    float alpha, beta;
    const void *a, *b;
    void *c;
    int64_t lda, ldb, ldc, stride_a, stride_b, stride_c;
    int general; /* beta is not 0, or there is an epilogue */
    struct Epilogue epilogue;
};

namespace {
constexpr int BK = 64; // of K a stage holds: 128 bytes, the longest row that is swizzled

__device__ __forceinline__ int elements_before_word(const uint16_t *p) {
    return static_cast<int>(-reinterpret_cast<intptr_t>(p) & 15) / 2;
}

__device__ __forceinline__ void word_store(uint16_t *p, uint4 v) {
    *reinterpret_cast<uint4 *>(p) = v;
}

__device__ __forceinline__ uint32_t pair_packed(float low, float high) {
    uint32_t v;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(high), "f"(low));
    return v;
}

__device__ __forceinline__ float element_value(uint16_t bits) {
    return __uint_as_float(uint32_t(bits) << 16);
}

__device__ __forceinline__ uint4 word_read(const uint16_t *p, int left) {
    uint4 v = make_uint4(0, 0, 0, 0);
    if (left >= 8) {
        asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                     : "l"(p)
                     : "memory");
    } else if (left > 0) {
        uint32_t w[4] = {0, 0, 0, 0};
#pragma unroll
        for (int e = 0; e < 7; ++e)
            if (e < left)
                w[e / 2] |= uint32_t(p[e]) << e % 2 * 16;
        v = make_uint4(w[0], w[1], w[2], w[3]);
    }
    return v;
}

__device__ __forceinline__ void warp_multiply(float *d, uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void previous_done() {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

__device__ __forceinline__ void next_may_begin() {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

__device__ __forceinline__ void block(int m, int n, int k, float alpha, float beta, const uint16_t *a, size_t lda, const uint16_t *b,
           size_t ldb, uint16_t *c, size_t ldc, int row0, int col0, unsigned thread, bool pairs, bool words,
           uint16_t *tiles, float *sums, bool general, const Epilogue *epilogue, int matrix) {
    const int lane = thread % 32, g = lane / 4, t = lane % 4;
    // Thread t of four holds 8 adjacent elements along K of each of its rows and columns. Their order makes its sums 8
    // adjacent elements of a row of C.
    const bool whole = row0 + 32 <= m && col0 + 32 <= n && k == 32;
    if (whole && beta == 0 && words) {
        const int p = 8 * t;
        uint32_t of_a[16] = {0}, of_b[16] = {0};
                    const uint16_t *const from_a = a + (row0 + g) * lda + p;
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int left = 8;
                const uint4 v = word_read(from_a + i * 8 * lda, left);
                of_a[4 * i] = v.x, of_a[4 * i + 1] = v.y;
                of_a[4 * i + 2] = v.z, of_a[4 * i + 3] = v.w;
            }
                    const uint16_t *const from_b = b + (col0 + (g / 2 * 8 + g % 2)) * ldb + p;
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int left = 8;
                const uint4 v = word_read(from_b + i * 2 * ldb, left);
                of_b[4 * i] = v.x, of_b[4 * i + 1] = v.y;
                of_b[4 * i + 2] = v.z, of_b[4 * i + 3] = v.w;
            }
#pragma unroll
        for (int i = 0; i < 2; ++i) { // of 16 rows
            float sum[16] = {0};
            #pragma unroll
        for (int j = 0; j < 4; ++j) {
            warp_multiply(sum + 4 * j, of_a[4 * (2 * i)], of_a[4 * (2 * i) + 4], of_a[4 * (2 * i) + 1], of_a[4 * (2 * i) + 4 + 1], of_b[4 * j], of_b[4 * j + 1]);
            warp_multiply(sum + 4 * j, of_a[4 * (2 * i) + 2], of_a[4 * (2 * i) + 4 + 2], of_a[4 * (2 * i) + 3], of_a[4 * (2 * i) + 4 + 3], of_b[4 * j + 2],
                          of_b[4 * j + 3]);
        }
            #pragma unroll
        for (int half = 0; half < 2; ++half) {
            float s[8] = {0};
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                s[2 * j] = sum[4 * j + 2 * half];
                s[2 * j + 1] = sum[4 * j + 2 * half + 1];
            }
            const int line = row0 + 16 * i + g + half * 8, col = col0 + 8 * t;
            uint16_t *const at = c + line * ldc + col;
#pragma unroll
            for (int e = 0; e < 8; ++e) {
                s[e] *= alpha;
            }
            const uint32_t packed[4] = {pair_packed(s[0], s[1]), pair_packed(s[2], s[3]), pair_packed(s[4], s[5]),
                                       pair_packed(s[6], s[7])};
                            word_store(at, make_uint4(packed[0], packed[1], packed[2], packed[3]));
        }
}
    } else {
        const int end = m < row0 + 32 ? m : row0 + 32;
#pragma unroll 1
        for (int row = row0; row < end; row += 16) {
            float sum[16] = {0};
#pragma unroll 1
            for (int p = 8 * t; p < k + 8 * t; p += 32) {
                uint32_t of_a[8] = {0};
                            const uint16_t *const from_a = a + (row + g) * lda + p;
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const int line = row + g + i * 8;
                const int left = line < m ? k - p : 0;
                const uint4 v = word_read(from_a + i * 8 * lda, left);
                of_a[4 * i] = v.x, of_a[4 * i + 1] = v.y;
                of_a[4 * i + 2] = v.z, of_a[4 * i + 3] = v.w;
            }
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const int line = col0 + g / 2 * 8 + 2 * j + g % 2;
                    const uint4 v = word_read(b + line * ldb + p, line < n ? k - p : 0);
                    warp_multiply(sum + 4 * j, of_a[0], of_a[4], of_a[1], of_a[5], v.x, v.y);
                    warp_multiply(sum + 4 * j, of_a[2], of_a[6], of_a[3], of_a[7], v.z, v.w);
                }
            }
            #pragma unroll
        for (int half = 0; half < 2; ++half) {
            float s[8] = {0};
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                s[2 * j] = sum[4 * j + 2 * half];
                s[2 * j + 1] = sum[4 * j + 2 * half + 1];
            }
            const int line = row + g + half * 8, col = col0 + 8 * t;
            if (line < m && col < n) {
            uint16_t *const at = c + line * ldc + col;
            const int there = n - col < 8 ? n - col : 8;
#pragma unroll
            for (int e = 0; e < 8; ++e) {
                s[e] *= alpha;
                if (beta != 0 && e < there)
                    s[e] += beta * element_value(at[e]);
            }
            const uint32_t packed[4] = {pair_packed(s[0], s[1]), pair_packed(s[2], s[3]), pair_packed(s[4], s[5]),
                                       pair_packed(s[6], s[7])};
            if (there == 8 && elements_before_word(at) == 0) {
                                word_store(at, make_uint4(packed[0], packed[1], packed[2], packed[3]));
} else {
#pragma unroll
                for (int e = 0; e < 8; ++e)
                    if (e < there)
                        at[e] = (uint16_t)(packed[e / 2] >> e % 2 * 16);
            }
            }
        }
}
    }
}

extern "C" __global__ __launch_bounds__(64, 14) void tensorop_kernel(
    const __grid_constant__ Args p) {
    unsigned char *const raw = nullptr;
    const unsigned thread = threadIdx.x;
    const int matrix = blockIdx.z * 2 + thread / 32;
    const int row0 = blockIdx.x % p.tiles_m * 32, col0 = blockIdx.x / p.tiles_m * 32;
    previous_done();
    next_may_begin();
    if (matrix >= p.batch)
        return;
    uint16_t *const c = static_cast<uint16_t *>(p.c) + matrix * p.stride_c;
    const auto at = reinterpret_cast<uintptr_t>(c);
    block(p.m, p.n, p.k, p.alpha, p.beta, static_cast<const uint16_t *>(p.a) + matrix * p.stride_a, p.lda,
          static_cast<const uint16_t *>(p.b) + matrix * p.stride_b, p.ldb, c, p.ldc, row0, col0, thread,
          p.ldc % 2 == 0 && p.stride_c % 2 == 0 && at % 4 == 0, p.ldc % 8 == 0 && at % 16 == 0,
          reinterpret_cast<uint16_t *>(raw), reinterpret_cast<float *>(raw), p.general, &p.epilogue, matrix);
}
} // namespace
