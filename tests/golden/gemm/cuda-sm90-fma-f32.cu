// gemm f32 by fma
//
// f32 exact to a rounding each: a tile of sums in each thread, operands by asynchronous copies, and warps that share k where tiles are few
#include <stdint.h>
#include <cuda_pipeline.h>

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
    int parts; /* of k, whose sums another kernel adds up (combine.h.j2); 1: C is written here */
    float *sums;
    int general; /* beta is not 0, or there is an epilogue */
    struct Epilogue epilogue;
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

__device__ __forceinline__ void floats_put(float *at, float x, float y, float z, float w, int there, bool together) {
    if (together && there >= 4) {
        *reinterpret_cast<float4 *>(at) = make_float4(x, y, z, w);
    } else {
        const float all[4] = {x, y, z, w};
        for (int e = 0; e < 4; ++e)
            if (e < there)
                at[e] = all[e];
    }
}

__device__ __forceinline__ void block(int m, int n, int k, float alpha, float beta, const float *a, size_t lda, const float *b,
           size_t ldb, float *c, size_t ldc, int row0, int col0, unsigned thread, bool pairs, bool words,
           float *tiles, float *sums, bool general, const Epilogue *epilogue, int matrix) {
    const int warp = thread / 32, ty = row_in_warp(thread, 4);
    const int tx = column_in_warp(thread, 4);
    const int wm = warp / 2 * 32, wn = warp % 2 * 64;
    const bool within = row0 + 128 <= m && col0 + 128 <= n;
    float sum[64] = {0};
    const int steps = (k + 15) / 16;
    for (int s = 0; s < 2; ++s) {
        if (s < steps)             {
                float *const sa = tiles + s * 4224;
                float *const sb = sa + 2112;
                if (within && s * 16 + 16 <= k) {
                                            {
                const int r = thread / 8, q = thread % 8;
                float *const at = sa + q * 132 + r;
                const float *source = a + (row0 + r) * lda + s * 16 + q;
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    float_copy(at + i * 32, source, 1);
                    source += 32 * lda;
                }
            }
            {
                const int r = thread / 8, q = thread % 8 + 8;
                float *const at = sa + q * 132 + r;
                const float *source = a + (row0 + r) * lda + s * 16 + q;
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    float_copy(at + i * 32, source, 1);
                    source += 32 * lda;
                }
            }
            {
                const int r = thread / 8, q = thread % 8;
                float *const at = sb + q * 132 + r;
                const float *source = b + (col0 + r) * ldb + s * 16 + q;
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    float_copy(at + i * 32, source, 1);
                    source += 32 * ldb;
                }
            }
            {
                const int r = thread / 8, q = thread % 8 + 8;
                float *const at = sb + q * 132 + r;
                const float *source = b + (col0 + r) * ldb + s * 16 + q;
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    float_copy(at + i * 32, source, 1);
                    source += 32 * ldb;
                }
            }
} else {
                                            {
                const int r = thread / 8, q = thread % 8;
                const int inside = k - s * 16 - q;
                float *const at = sa + q * 132 + r;
                const float *source = a + (row0 + r) * lda + s * 16 + q;
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int left = row0 + r + i * 32 < m ? inside : 0;
                    float_copy(at + i * 32, left > 0 ? source : a, left);
                    source += 32 * lda;
                }
            }
            {
                const int r = thread / 8, q = thread % 8 + 8;
                const int inside = k - s * 16 - q;
                float *const at = sa + q * 132 + r;
                const float *source = a + (row0 + r) * lda + s * 16 + q;
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int left = row0 + r + i * 32 < m ? inside : 0;
                    float_copy(at + i * 32, left > 0 ? source : a, left);
                    source += 32 * lda;
                }
            }
            {
                const int r = thread / 8, q = thread % 8;
                const int inside = k - s * 16 - q;
                float *const at = sb + q * 132 + r;
                const float *source = b + (col0 + r) * ldb + s * 16 + q;
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int left = col0 + r + i * 32 < n ? inside : 0;
                    float_copy(at + i * 32, left > 0 ? source : b, left);
                    source += 32 * ldb;
                }
            }
            {
                const int r = thread / 8, q = thread % 8 + 8;
                const int inside = k - s * 16 - q;
                float *const at = sb + q * 132 + r;
                const float *source = b + (col0 + r) * ldb + s * 16 + q;
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int left = col0 + r + i * 32 < n ? inside : 0;
                    float_copy(at + i * 32, left > 0 ? source : b, left);
                    source += 32 * ldb;
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
                float *const sa = tiles + stage * 4224;
                float *const sb = sa + 2112;
                if (within && k0 + 16 <= k) {
                                            {
                const int r = thread / 8, q = thread % 8;
                float *const at = sa + q * 132 + r;
                const float *source = a + (row0 + r) * lda + k0 + q;
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    float_copy(at + i * 32, source, 1);
                    source += 32 * lda;
                }
            }
            {
                const int r = thread / 8, q = thread % 8 + 8;
                float *const at = sa + q * 132 + r;
                const float *source = a + (row0 + r) * lda + k0 + q;
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    float_copy(at + i * 32, source, 1);
                    source += 32 * lda;
                }
            }
            {
                const int r = thread / 8, q = thread % 8;
                float *const at = sb + q * 132 + r;
                const float *source = b + (col0 + r) * ldb + k0 + q;
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    float_copy(at + i * 32, source, 1);
                    source += 32 * ldb;
                }
            }
            {
                const int r = thread / 8, q = thread % 8 + 8;
                float *const at = sb + q * 132 + r;
                const float *source = b + (col0 + r) * ldb + k0 + q;
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    float_copy(at + i * 32, source, 1);
                    source += 32 * ldb;
                }
            }
} else {
                                            {
                const int r = thread / 8, q = thread % 8;
                const int inside = k - k0 - q;
                float *const at = sa + q * 132 + r;
                const float *source = a + (row0 + r) * lda + k0 + q;
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int left = row0 + r + i * 32 < m ? inside : 0;
                    float_copy(at + i * 32, left > 0 ? source : a, left);
                    source += 32 * lda;
                }
            }
            {
                const int r = thread / 8, q = thread % 8 + 8;
                const int inside = k - k0 - q;
                float *const at = sa + q * 132 + r;
                const float *source = a + (row0 + r) * lda + k0 + q;
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int left = row0 + r + i * 32 < m ? inside : 0;
                    float_copy(at + i * 32, left > 0 ? source : a, left);
                    source += 32 * lda;
                }
            }
            {
                const int r = thread / 8, q = thread % 8;
                const int inside = k - k0 - q;
                float *const at = sb + q * 132 + r;
                const float *source = b + (col0 + r) * ldb + k0 + q;
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int left = col0 + r + i * 32 < n ? inside : 0;
                    float_copy(at + i * 32, left > 0 ? source : b, left);
                    source += 32 * ldb;
                }
            }
            {
                const int r = thread / 8, q = thread % 8 + 8;
                const int inside = k - k0 - q;
                float *const at = sb + q * 132 + r;
                const float *source = b + (col0 + r) * ldb + k0 + q;
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int left = col0 + r + i * 32 < n ? inside : 0;
                    float_copy(at + i * 32, left > 0 ? source : b, left);
                    source += 32 * ldb;
                }
            }
}
            }
}
        copies_commit();
        const float *const sa = tiles + step % 3 * 4224;
        const float *const sb = sa + 2112;
#pragma unroll 4
        for (int kk = 0; kk < 16; kk += 4) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                float fa[8] = {0};
                #pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const float4 v = floats_at(sa + (kk + e) * 132 + wm + ty + i * 16);
                    fa[4 * i + 0] = v.x;
                    fa[4 * i + 1] = v.y;
                    fa[4 * i + 2] = v.z;
                    fa[4 * i + 3] = v.w;
                }
                float fb[8] = {0};
#pragma unroll
                for (int j = 0; j < 2; ++j) {
                    const float4 v = floats_at(sb + (kk + e) * 132 + wn + tx + j * 32);
                    fb[4 * j] = v.x, fb[4 * j + 1] = v.y, fb[4 * j + 2] = v.z, fb[4 * j + 3] = v.w;
                }
                                sum[0] += fa[0] * fb[0];
                sum[8] += fa[1] * fb[0];
                sum[9] += fa[1] * fb[1];
                sum[1] += fa[0] * fb[1];
                sum[16] += fa[2] * fb[0];
                sum[24] += fa[3] * fb[0];
                sum[25] += fa[3] * fb[1];
                sum[17] += fa[2] * fb[1];
                sum[32] += fa[4] * fb[0];
                sum[40] += fa[5] * fb[0];
                sum[41] += fa[5] * fb[1];
                sum[33] += fa[4] * fb[1];
                sum[48] += fa[6] * fb[0];
                sum[56] += fa[7] * fb[0];
                sum[57] += fa[7] * fb[1];
                sum[49] += fa[6] * fb[1];
                sum[58] += fa[7] * fb[2];
                sum[50] += fa[6] * fb[2];
                sum[51] += fa[6] * fb[3];
                sum[59] += fa[7] * fb[3];
                sum[42] += fa[5] * fb[2];
                sum[34] += fa[4] * fb[2];
                sum[35] += fa[4] * fb[3];
                sum[43] += fa[5] * fb[3];
                sum[26] += fa[3] * fb[2];
                sum[18] += fa[2] * fb[2];
                sum[19] += fa[2] * fb[3];
                sum[27] += fa[3] * fb[3];
                sum[10] += fa[1] * fb[2];
                sum[2] += fa[0] * fb[2];
                sum[3] += fa[0] * fb[3];
                sum[11] += fa[1] * fb[3];
                sum[4] += fa[0] * fb[4];
                sum[12] += fa[1] * fb[4];
                sum[13] += fa[1] * fb[5];
                sum[5] += fa[0] * fb[5];
                sum[20] += fa[2] * fb[4];
                sum[28] += fa[3] * fb[4];
                sum[29] += fa[3] * fb[5];
                sum[21] += fa[2] * fb[5];
                sum[36] += fa[4] * fb[4];
                sum[44] += fa[5] * fb[4];
                sum[45] += fa[5] * fb[5];
                sum[37] += fa[4] * fb[5];
                sum[52] += fa[6] * fb[4];
                sum[60] += fa[7] * fb[4];
                sum[61] += fa[7] * fb[5];
                sum[53] += fa[6] * fb[5];
                sum[62] += fa[7] * fb[6];
                sum[54] += fa[6] * fb[6];
                sum[55] += fa[6] * fb[7];
                sum[63] += fa[7] * fb[7];
                sum[46] += fa[5] * fb[6];
                sum[38] += fa[4] * fb[6];
                sum[39] += fa[4] * fb[7];
                sum[47] += fa[5] * fb[7];
                sum[30] += fa[3] * fb[6];
                sum[22] += fa[2] * fb[6];
                sum[23] += fa[2] * fb[7];
                sum[31] += fa[3] * fb[7];
                sum[14] += fa[1] * fb[6];
                sum[6] += fa[0] * fb[6];
                sum[7] += fa[0] * fb[7];
                sum[15] += fa[1] * fb[7];
}
        }
    }
    {
#pragma unroll
        for (int i = 0; i < 2; ++i)
#pragma unroll
            for (int r = 0; r < 4; ++r) {
                        const int row = row0 + wm + ty + 16 * i + r;
            if (row < m) {
#pragma unroll
                for (int j = 0; j < 2; ++j) {
                    const int col = col0 + wn + tx + 32 * j;
                    if (col < n) {
                        float *const at = c + row * ldc + col;
                        const int there = n - col < 4 ? n - col : 4;
                        float s[4] = {0};
#pragma unroll
                        for (int e = 0; e < 4; ++e) {
                            s[e] = alpha * sum[(4 * i + r) * 8 + 4 * j + e];
                            if (beta != 0 && e < there)
                                s[e] += beta * at[e];
                        }
                        
                        floats_put(at, s[0], s[1], s[2], s[3], there, words);
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
          reinterpret_cast<float *>(raw), whole && p.general, &p.epilogue, matrix);
}
} // namespace
