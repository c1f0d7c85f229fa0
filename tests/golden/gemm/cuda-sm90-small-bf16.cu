// gemm bf16 by small
//
// batches of small matrices, a warp a tile of 32 columns, from memory to registers and back without shared memory
#include <stdint.h>

/* A launch over pointers. */
struct Args {
    int m, n, k, batch;
    int tiles_m, tiles_n, group;
    float alpha, beta;
    const void *a, *b;
    void *c;
    int64_t lda, ldb, ldc, stride_a, stride_b, stride_c;
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

__device__ __forceinline__ void warp_multiply(float (&d)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1) {
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

constexpr int HALVES = 2; // of 16 rows

__device__ __forceinline__ void clear(float (&sum)[4][4]) {
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e)
            sum[j][e] = 0;
}

// 8 neighbours of a row to C.
__device__ __forceinline__ void put(const Args &p, uint16_t *c, int row, int col, float (&s)[8]) {
    if (row >= p.m || col >= p.n)
        return;
    uint16_t *at = c + row * p.ldc + col;
    const int there = min(8, p.n - col);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
        s[e] *= p.alpha;
        if (p.beta != 0 && e < there)
            s[e] += p.beta * element_value(at[e]);
    }
    const uint32_t pairs[4] = {pair_packed(s[0], s[1]), pair_packed(s[2], s[3]), pair_packed(s[4], s[5]),
                               pair_packed(s[6], s[7])};
    if (there == 8 && elements_before_word(at) == 0) {
        word_store(at, make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]));
        return;
    }
#pragma unroll
    for (int e = 0; e < 8; ++e)
        if (e < there)
            at[e] = static_cast<uint16_t>(pairs[e / 2] >> e % 2 * 16);
}

extern "C" __global__ __launch_bounds__(64, 14) void tensorop_kernel(
    const __grid_constant__ Args p) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int matrix = blockIdx.z * 2 + threadIdx.x / 32;
    const int row0 = blockIdx.x % p.tiles_m * 32, col0 = blockIdx.x / p.tiles_m * 32;
    previous_done();
    next_may_begin();
    if (matrix >= p.batch)
        return;
    const uint16_t *const a = static_cast<const uint16_t *>(p.a) + matrix * p.stride_a;
    const uint16_t *const b = static_cast<const uint16_t *>(p.b) + matrix * p.stride_b;
    uint16_t *const c = static_cast<uint16_t *>(p.c) + matrix * p.stride_c;
    // Thread t of four has 8 neighbours along K of each of its rows and columns, so ordered that its sums are 8 neighbours
    // of a row of C.
    const bool whole = row0 + 32 <= p.m && col0 + 32 <= p.n && p.k == 32;
    if (whole && p.beta == 0 && elements_before_word(c) == 0 && p.ldc % 8 == 0) {
        const int k = 8 * t;
        uint32_t of_a[2 * HALVES][4], of_b[4][4];
                    const uint16_t *const from_a = a + (row0 + g) * p.lda + k;
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int left = 8;
                const uint4 v = word_read(from_a + i * 8 * p.lda, left);
                of_a[i][0] = v.x, of_a[i][1] = v.y;
                of_a[i][2] = v.z, of_a[i][3] = v.w;
            }
                    const uint16_t *const from_b = b + (col0 + (g / 2 * 8 + g % 2)) * p.ldb + k;
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int left = 8;
                const uint4 v = word_read(from_b + i * 2 * p.ldb, left);
                of_b[i][0] = v.x, of_b[i][1] = v.y;
                of_b[i][2] = v.z, of_b[i][3] = v.w;
            }
#pragma unroll
        for (int i = 0; i < HALVES; ++i) {
            float sum[4][4];
            clear(sum);
            #pragma unroll
        for (int j = 0; j < 4; ++j) {
            warp_multiply(sum[j], of_a[2 * i][0], of_a[2 * i + 1][0], of_a[2 * i][1], of_a[2 * i + 1][1], of_b[j][0], of_b[j][1]);
            warp_multiply(sum[j], of_a[2 * i][2], of_a[2 * i + 1][2], of_a[2 * i][3], of_a[2 * i + 1][3], of_b[j][2], of_b[j][3]);
        }
            #pragma unroll
        for (int half = 0; half < 2; ++half) {
            float s[8];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                s[2 * j] = sum[j][2 * half];
                s[2 * j + 1] = sum[j][2 * half + 1];
            }
            uint16_t *const at = c + (row0 + 16 * i + g + half * 8) * p.ldc + col0 + 8 * t;
#pragma unroll
            for (int e = 0; e < 8; ++e)
                s[e] *= p.alpha;
            word_store(at, make_uint4(pair_packed(s[0], s[1]), pair_packed(s[2], s[3]), pair_packed(s[4], s[5]),
                                      pair_packed(s[6], s[7])));
        }
}
        return;
    }
#pragma unroll 1
    for (int row = row0; row < min(p.m, row0 + 32); row += 16) {
        float sum[4][4];
        clear(sum);
#pragma unroll 1
        for (int k = 8 * t; k < p.k + 8 * t; k += 32) {
            uint32_t of_a[2][4];
                        const uint16_t *const from_a = a + (row + g) * p.lda + k;
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const int line = row + g + i * 8;
                const int left = line < p.m ? p.k - k : 0;
                const uint4 v = word_read(from_a + i * 8 * p.lda, left);
                of_a[i][0] = v.x, of_a[i][1] = v.y;
                of_a[i][2] = v.z, of_a[i][3] = v.w;
            }
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int line = col0 + g / 2 * 8 + 2 * j + g % 2;
                const uint4 v = word_read(b + line * p.ldb + k, line < p.n ? p.k - k : 0);
                warp_multiply(sum[j], of_a[0][0], of_a[1][0], of_a[0][1], of_a[1][1], v.x, v.y);
                warp_multiply(sum[j], of_a[0][2], of_a[1][2], of_a[0][3], of_a[1][3], v.z, v.w);
            }
        }
        #pragma unroll
        for (int half = 0; half < 2; ++half) {
            float s[8];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                s[2 * j] = sum[j][2 * half];
                s[2 * j + 1] = sum[j][2 * half + 1];
            }
            put(p, c, row + g + half * 8, col0 + 8 * t, s);
        }
}
}

} // namespace
