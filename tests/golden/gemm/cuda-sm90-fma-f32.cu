// gemm f32 by fma
//
// f32 exact to a rounding each: a tile of sums in each thread, operands by asynchronous copies, and warps that share k where tiles are few
#include <stdint.h>
#include <cuda_pipeline.h>

/* Arguments of a launch with pointers. */
struct Args {
    int m, n, k, batch;
    int tiles_m, tiles_n, group;
    float alpha, beta;
    const void *a, *b;
    void *c;
    int64_t lda, ldb, ldc, stride_a, stride_b, stride_c;
    int parts; /* of k, whose sums another kernel adds up (combine.h.j2); 1: C is written here */
    float *sums;
};

namespace {


__device__ __forceinline__ void float_copy(float *to, const float *from, int left) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                 :
                 : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(to))), "l"(__cvta_generic_to_global(from)),
                   "r"(left > 0 ? 4 : 0)
                 : "memory");
}

__device__ __forceinline__ void copies_commit() {
    __pipeline_commit();
}

template <int LEFT>
__device__ __forceinline__ void copies_wait() {
    __pipeline_wait_prior(LEFT);
}

__device__ __forceinline__ int row_in_warp(unsigned thread, int apart) {
    return (thread % 2 + thread % 32 / 16 * 2) * apart;
}

__device__ __forceinline__ int column_in_warp(unsigned thread, int apart) {
    return thread / 2 % 8 * apart;
}

__device__ __forceinline__ float4 floats_at(const float *from) {
    return *reinterpret_cast<const float4 *>(from);
}

__device__ __forceinline__ void block(int m, int n, int k, float alpha, float beta, const float *a, size_t lda, const float *b,
           size_t ldb, float *c, size_t ldc, int row0, int col0, unsigned thread, bool pairs, bool words,
           float *tiles, float *sums) {
    const int warp = thread / 32, ty = row_in_warp(thread, 1);
    const int tx = column_in_warp(thread, 1);
    const int wm = warp / 2 * 32, wn = warp % 2 * 64;
    const bool within = row0 + 128 <= m && col0 + 128 <= n;
    float sum[64] = {0};
    const int steps = (k + 15) / 16;
    for (int s = 0; s < 2; ++s) {
        if (s < steps)             {
                float *const sa = tiles + s * 5120;
                float *const sb = sa + 2560;
                if (within && s * 16 + 16 <= k) {
                                            {
                const int r = thread / 16, q = thread % 16;
                float *const at = sa + r * 20 + q;
                const float *source = a + (row0 + r) * lda + s * 16 + q;
#pragma unroll
                for (int i = 0; i < 8; ++i) {
                    float_copy(at + i * 320, source, 1);
                    source += 16 * lda;
                }
            }
            {
                const int r = thread / 16, q = thread % 16;
                float *const at = sb + r * 20 + q;
                const float *source = b + (col0 + r) * ldb + s * 16 + q;
#pragma unroll
                for (int i = 0; i < 8; ++i) {
                    float_copy(at + i * 320, source, 1);
                    source += 16 * ldb;
                }
            }
} else {
                                            {
                const int r = thread / 16, q = thread % 16;
                const int inside = k - s * 16 - q;
                float *const at = sa + r * 20 + q;
                const float *source = a + (row0 + r) * lda + s * 16 + q;
#pragma unroll
                for (int i = 0; i < 8; ++i) {
                    const int left = row0 + r + i * 16 < m ? inside : 0;
                    float_copy(at + i * 320, left > 0 ? source : a, left);
                    source += 16 * lda;
                }
            }
            {
                const int r = thread / 16, q = thread % 16;
                const int inside = k - s * 16 - q;
                float *const at = sb + r * 20 + q;
                const float *source = b + (col0 + r) * ldb + s * 16 + q;
#pragma unroll
                for (int i = 0; i < 8; ++i) {
                    const int left = col0 + r + i * 16 < n ? inside : 0;
                    float_copy(at + i * 320, left > 0 ? source : b, left);
                    source += 16 * ldb;
                }
            }
}
            }
copies_commit();
    }
    for (int step = 0; step < steps; ++step) {
        copies_wait<1>();
        __syncthreads();
        const int ahead = step + 2;
        if (ahead < steps) {
            const int stage = ahead % 3, k0 = ahead * 16;
                        {
                float *const sa = tiles + stage * 5120;
                float *const sb = sa + 2560;
                if (within && k0 + 16 <= k) {
                                            {
                const int r = thread / 16, q = thread % 16;
                float *const at = sa + r * 20 + q;
                const float *source = a + (row0 + r) * lda + k0 + q;
#pragma unroll
                for (int i = 0; i < 8; ++i) {
                    float_copy(at + i * 320, source, 1);
                    source += 16 * lda;
                }
            }
            {
                const int r = thread / 16, q = thread % 16;
                float *const at = sb + r * 20 + q;
                const float *source = b + (col0 + r) * ldb + k0 + q;
#pragma unroll
                for (int i = 0; i < 8; ++i) {
                    float_copy(at + i * 320, source, 1);
                    source += 16 * ldb;
                }
            }
} else {
                                            {
                const int r = thread / 16, q = thread % 16;
                const int inside = k - k0 - q;
                float *const at = sa + r * 20 + q;
                const float *source = a + (row0 + r) * lda + k0 + q;
#pragma unroll
                for (int i = 0; i < 8; ++i) {
                    const int left = row0 + r + i * 16 < m ? inside : 0;
                    float_copy(at + i * 320, left > 0 ? source : a, left);
                    source += 16 * lda;
                }
            }
            {
                const int r = thread / 16, q = thread % 16;
                const int inside = k - k0 - q;
                float *const at = sb + r * 20 + q;
                const float *source = b + (col0 + r) * ldb + k0 + q;
#pragma unroll
                for (int i = 0; i < 8; ++i) {
                    const int left = col0 + r + i * 16 < n ? inside : 0;
                    float_copy(at + i * 320, left > 0 ? source : b, left);
                    source += 16 * ldb;
                }
            }
}
            }
}
        copies_commit();
        const float *const sa = tiles + step % 3 * 5120;
        const float *const sb = sa + 2560;
#pragma unroll 1
        for (int kk = 0; kk < 16; kk += 4) {
            float fa[32] = {0};
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                const float4 v = floats_at(sa + (wm + ty + 4 * i) * 20 + kk);
                fa[4 * i] = v.x, fa[4 * i + 1] = v.y, fa[4 * i + 2] = v.z, fa[4 * i + 3] = v.w;
            }
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                const float4 v = floats_at(sb + (wn + tx + 8 * j) * 20 + kk);
#pragma unroll
                for (int i = 0; i < 8; ++i)
                    sum[i * 8 + j] += fa[4 * i + 0] * v.x;
#pragma unroll
                for (int i = 0; i < 8; ++i)
                    sum[i * 8 + j] += fa[4 * i + 1] * v.y;
#pragma unroll
                for (int i = 0; i < 8; ++i)
                    sum[i * 8 + j] += fa[4 * i + 2] * v.z;
#pragma unroll
                for (int i = 0; i < 8; ++i)
                    sum[i * 8 + j] += fa[4 * i + 3] * v.w;
            }
        }
    }
    {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
                        const int row = row0 + wm + ty + 4 * i;
            if (row < m) {
#pragma unroll
                for (int j = 0; j < 8; ++j) {
                    const int col = col0 + wn + tx + 8 * j;
                    if (col < n) {
                        float *const at = c + row * ldc + col;
                        float x = alpha * sum[i * 8 + j];
                        if (beta != 0)
                            x += beta * at[0];
                        at[0] = x;
                    }
                }
            }
}
    }
}

extern "C" __global__ __launch_bounds__(256, 2) void tensorop_kernel(
    const __grid_constant__ Args p) {
    extern __shared__ __align__(128) unsigned char raw[];
    const unsigned thread = threadIdx.x;
    const int matrix = blockIdx.z / p.parts;
    // Blocks of `group` rows of tiles run along N together, so that they share B in L2.
    const int first = blockIdx.x / (p.group * p.tiles_n) * p.group, inside = blockIdx.x % (p.group * p.tiles_n);
    const int height = min(p.group, p.tiles_m - first);
    const int row0 = (first + inside % height) * 128, col0 = inside / height * 128;
    // Its part of k, in whole steps, and where the sums go.
    const int part = blockIdx.z % p.parts;
    const int64_t steps = (p.k + 15) / 16;
    const int k0 = int(steps * part / p.parts) * 16, k1 = min(p.k, int(steps * (part + 1) / p.parts) * 16);
    const bool whole = p.parts == 1;
    float *const c = whole ? static_cast<float *>(p.c) + matrix * p.stride_c : p.sums + int64_t(blockIdx.z) * p.m * p.n;
    const int64_t ldc = whole ? p.ldc : p.n;
    const auto at = reinterpret_cast<uintptr_t>(c);
    block(p.m, p.n, k1 - k0, whole ? p.alpha : 1, whole ? p.beta : 0,
          static_cast<const float *>(p.a) + matrix * p.stride_a + k0, p.lda,
          static_cast<const float *>(p.b) + matrix * p.stride_b + k0, p.ldb, c, ldc, row0,
          col0, thread, ldc % 2 == 0 && at % 8 == 0, ldc % 4 == 0 && at % 16 == 0, reinterpret_cast<float *>(raw),
          reinterpret_cast<float *>(raw));
}
} // namespace
