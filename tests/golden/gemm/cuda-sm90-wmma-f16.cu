// gemm f16 by wmma
//
// nvcuda::wmma from shared memory, filled by asynchronous copies; serves every layout, alignment, alpha and beta
#include <stdint.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

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
using namespace nvcuda;
using Element = __half;
using SumTile = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;
using TileA = wmma::fragment<wmma::matrix_a, 16, 16, 16, Element, wmma::row_major>;
using TileB = wmma::fragment<wmma::matrix_b, 16, 16, 16, Element, wmma::col_major>;

__device__ __forceinline__ void elements_copy(Element *to, const Element *from, int left) {
    for (int e = 0; e < 8; ++e)
        to[e] = e < left ? from[e] : Element(0.f);
}

__device__ __forceinline__ void copies_commit() {
    __pipeline_commit();
}

template <int LEFT>
__device__ __forceinline__ void copies_wait() {
    __pipeline_wait_prior(LEFT);
}

__device__ __forceinline__ void sum_clear(SumTile &sum) {
    wmma::fill_fragment(sum, 0.f);
}

__device__ __forceinline__ void tile_a(TileA &tile, const Element *from, int ld) {
    uint32_t *const r = reinterpret_cast<uint32_t *>(&tile);
    asm volatile("wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 "
                 "{ %0, %1, %2, %3, %4, %5, %6, %7 }, [%8], %9;"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7])                 : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(from))), "r"(ld)
                 : "memory");
}

__device__ __forceinline__ void tile_b(TileB &tile, const Element *from, int ld) {
    uint32_t *const r = reinterpret_cast<uint32_t *>(&tile);
    asm volatile("wmma.load.b.sync.aligned.col.m16n16k16.shared.f16 "
                 "{ %0, %1, %2, %3, %4, %5, %6, %7 }, [%8], %9;"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7])                 : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(from))), "r"(ld)
                 : "memory");
}

__device__ __forceinline__ void tile_multiply(SumTile &sum, const TileA &a, const TileB &b) {
    wmma::mma_sync(sum, a, b, sum);
}

__device__ __forceinline__ void sum_spread(float *to, const SumTile &sum, int ld) {
    wmma::store_matrix_sync(to, sum, ld, wmma::mem_row_major);
}

__device__ __forceinline__ float value(Element element) {
    return static_cast<float>(element);
}

__device__ __forceinline__ void pair_put(Element *at, float x, float y, bool two, bool together) {
    const Element both[2] = {Element(x), Element(y)};
    if (together && two) {
        *reinterpret_cast<uint32_t *>(at) = *reinterpret_cast<const uint32_t *>(both);
    } else {
        at[0] = both[0];
        if (two)
            at[1] = both[1];
    }
}

__device__ __forceinline__ void block(int m, int n, int k, float alpha, float beta, const Element *a, size_t lda, const Element *b,
           size_t ldb, Element *c, size_t ldc, int row0, int col0, unsigned thread, bool pairs, bool words,
           Element *tiles, float *sums, bool general, const Epilogue *epilogue, int matrix) {
    const int warp = thread / 32, lane = thread % 32;
    const int wm = warp / 4 * 64, wn = warp % 4 * 32;
    SumTile sum0_0;
    sum_clear(sum0_0);
    SumTile sum0_1;
    sum_clear(sum0_1);
    SumTile sum1_0;
    sum_clear(sum1_0);
    SumTile sum1_1;
    sum_clear(sum1_1);
    SumTile sum2_0;
    sum_clear(sum2_0);
    SumTile sum2_1;
    sum_clear(sum2_1);
    SumTile sum3_0;
    sum_clear(sum3_0);
    SumTile sum3_1;
    sum_clear(sum3_1);
    const int steps = (k + 31) / 32;
    for (int s = 0; s < 1; ++s) {
        if (s < steps)             {
                Element *const sa = tiles + s * 10240;
                Element *const sb = sa + 5120;
                {
                                            {
                const int r = thread / 4, q = thread % 4 * 8;
                const int inside = k - s * 32 - q;
                Element *const at = sa + r * 40 + q;
                const Element *source = a + (row0 + r) * lda + s * 32 + q;
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const int left = row0 + r + i * 64 < m ? inside : 0;
                    elements_copy(at + i * 2560, source, left);
                    source += 64 * lda;
                }
            }
            {
                const int r = thread / 4, q = thread % 4 * 8;
                const int inside = k - s * 32 - q;
                Element *const at = sb + r * 40 + q;
                const Element *source = b + (col0 + r) * ldb + s * 32 + q;
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const int left = col0 + r + i * 64 < n ? inside : 0;
                    elements_copy(at + i * 2560, source, left);
                    source += 64 * ldb;
                }
            }
}
            }
copies_commit();
    }
    for (int step = 0; step < steps; ++step) {
        copies_wait<0>();
        __syncthreads();
        const int ahead = step + 1;
        if (ahead < steps) {
            const int stage = ahead % 2, k0 = ahead * 32;
                        {
                Element *const sa = tiles + stage * 10240;
                Element *const sb = sa + 5120;
                {
                                            {
                const int r = thread / 4, q = thread % 4 * 8;
                const int inside = k - k0 - q;
                Element *const at = sa + r * 40 + q;
                const Element *source = a + (row0 + r) * lda + k0 + q;
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const int left = row0 + r + i * 64 < m ? inside : 0;
                    elements_copy(at + i * 2560, source, left);
                    source += 64 * lda;
                }
            }
            {
                const int r = thread / 4, q = thread % 4 * 8;
                const int inside = k - k0 - q;
                Element *const at = sb + r * 40 + q;
                const Element *source = b + (col0 + r) * ldb + k0 + q;
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const int left = col0 + r + i * 64 < n ? inside : 0;
                    elements_copy(at + i * 2560, source, left);
                    source += 64 * ldb;
                }
            }
}
            }
}
        copies_commit();
        const Element *const sa = tiles + step % 2 * 10240;
        const Element *const sb = sa + 5120;
#pragma unroll
        for (int kk = 0; kk < 32; kk += 16) {
            TileA fa0;
            tile_a(fa0, sa + (wm + 0) * 40 + kk, 40);
            TileA fa1;
            tile_a(fa1, sa + (wm + 16) * 40 + kk, 40);
            TileA fa2;
            tile_a(fa2, sa + (wm + 32) * 40 + kk, 40);
            TileA fa3;
            tile_a(fa3, sa + (wm + 48) * 40 + kk, 40);
            TileB fb0;
            tile_b(fb0, sb + (wn + 0) * 40 + kk, 40);
            tile_multiply(sum0_0, fa0, fb0);
            tile_multiply(sum1_0, fa1, fb0);
            tile_multiply(sum2_0, fa2, fb0);
            tile_multiply(sum3_0, fa3, fb0);
            TileB fb1;
            tile_b(fb1, sb + (wn + 16) * 40 + kk, 40);
            tile_multiply(sum0_1, fa0, fb1);
            tile_multiply(sum1_1, fa1, fb1);
            tile_multiply(sum2_1, fa2, fb1);
            tile_multiply(sum3_1, fa3, fb1);
        }
    }
    copies_wait<0>();
    __syncthreads();
    float *const mine = sums + warp * 16 * 20;
    sum_spread(mine, sum0_0, 20);
    __syncwarp();
#pragma unroll
    for (int e = 0; e < 4; ++e) {
        const int r = e * 4 + lane / 8, q = lane % 8 * 2;
        const int row = row0 + wm + 0 + r, col = col0 + wn + 0 + q;
        if (row < m && col < n) {
            Element *const at = c + row * ldc + col;
            const bool two = col + 1 < n;
            float s[2] = {alpha * mine[r * 20 + q], alpha * mine[r * 20 + q + 1]};
            if (beta != 0) {
                s[0] += beta * value(at[0]);
                s[1] += two ? beta * value(at[1]) : 0.f;
            }
            
            pair_put(at, s[0], s[1], two, pairs);
        }
    }
    __syncwarp();
    sum_spread(mine, sum0_1, 20);
    __syncwarp();
#pragma unroll
    for (int e = 0; e < 4; ++e) {
        const int r = e * 4 + lane / 8, q = lane % 8 * 2;
        const int row = row0 + wm + 0 + r, col = col0 + wn + 16 + q;
        if (row < m && col < n) {
            Element *const at = c + row * ldc + col;
            const bool two = col + 1 < n;
            float s[2] = {alpha * mine[r * 20 + q], alpha * mine[r * 20 + q + 1]};
            if (beta != 0) {
                s[0] += beta * value(at[0]);
                s[1] += two ? beta * value(at[1]) : 0.f;
            }
            
            pair_put(at, s[0], s[1], two, pairs);
        }
    }
    __syncwarp();
    sum_spread(mine, sum1_0, 20);
    __syncwarp();
#pragma unroll
    for (int e = 0; e < 4; ++e) {
        const int r = e * 4 + lane / 8, q = lane % 8 * 2;
        const int row = row0 + wm + 16 + r, col = col0 + wn + 0 + q;
        if (row < m && col < n) {
            Element *const at = c + row * ldc + col;
            const bool two = col + 1 < n;
            float s[2] = {alpha * mine[r * 20 + q], alpha * mine[r * 20 + q + 1]};
            if (beta != 0) {
                s[0] += beta * value(at[0]);
                s[1] += two ? beta * value(at[1]) : 0.f;
            }
            
            pair_put(at, s[0], s[1], two, pairs);
        }
    }
    __syncwarp();
    sum_spread(mine, sum1_1, 20);
    __syncwarp();
#pragma unroll
    for (int e = 0; e < 4; ++e) {
        const int r = e * 4 + lane / 8, q = lane % 8 * 2;
        const int row = row0 + wm + 16 + r, col = col0 + wn + 16 + q;
        if (row < m && col < n) {
            Element *const at = c + row * ldc + col;
            const bool two = col + 1 < n;
            float s[2] = {alpha * mine[r * 20 + q], alpha * mine[r * 20 + q + 1]};
            if (beta != 0) {
                s[0] += beta * value(at[0]);
                s[1] += two ? beta * value(at[1]) : 0.f;
            }
            
            pair_put(at, s[0], s[1], two, pairs);
        }
    }
    __syncwarp();
    sum_spread(mine, sum2_0, 20);
    __syncwarp();
#pragma unroll
    for (int e = 0; e < 4; ++e) {
        const int r = e * 4 + lane / 8, q = lane % 8 * 2;
        const int row = row0 + wm + 32 + r, col = col0 + wn + 0 + q;
        if (row < m && col < n) {
            Element *const at = c + row * ldc + col;
            const bool two = col + 1 < n;
            float s[2] = {alpha * mine[r * 20 + q], alpha * mine[r * 20 + q + 1]};
            if (beta != 0) {
                s[0] += beta * value(at[0]);
                s[1] += two ? beta * value(at[1]) : 0.f;
            }
            
            pair_put(at, s[0], s[1], two, pairs);
        }
    }
    __syncwarp();
    sum_spread(mine, sum2_1, 20);
    __syncwarp();
#pragma unroll
    for (int e = 0; e < 4; ++e) {
        const int r = e * 4 + lane / 8, q = lane % 8 * 2;
        const int row = row0 + wm + 32 + r, col = col0 + wn + 16 + q;
        if (row < m && col < n) {
            Element *const at = c + row * ldc + col;
            const bool two = col + 1 < n;
            float s[2] = {alpha * mine[r * 20 + q], alpha * mine[r * 20 + q + 1]};
            if (beta != 0) {
                s[0] += beta * value(at[0]);
                s[1] += two ? beta * value(at[1]) : 0.f;
            }
            
            pair_put(at, s[0], s[1], two, pairs);
        }
    }
    __syncwarp();
    sum_spread(mine, sum3_0, 20);
    __syncwarp();
#pragma unroll
    for (int e = 0; e < 4; ++e) {
        const int r = e * 4 + lane / 8, q = lane % 8 * 2;
        const int row = row0 + wm + 48 + r, col = col0 + wn + 0 + q;
        if (row < m && col < n) {
            Element *const at = c + row * ldc + col;
            const bool two = col + 1 < n;
            float s[2] = {alpha * mine[r * 20 + q], alpha * mine[r * 20 + q + 1]};
            if (beta != 0) {
                s[0] += beta * value(at[0]);
                s[1] += two ? beta * value(at[1]) : 0.f;
            }
            
            pair_put(at, s[0], s[1], two, pairs);
        }
    }
    __syncwarp();
    sum_spread(mine, sum3_1, 20);
    __syncwarp();
#pragma unroll
    for (int e = 0; e < 4; ++e) {
        const int r = e * 4 + lane / 8, q = lane % 8 * 2;
        const int row = row0 + wm + 48 + r, col = col0 + wn + 16 + q;
        if (row < m && col < n) {
            Element *const at = c + row * ldc + col;
            const bool two = col + 1 < n;
            float s[2] = {alpha * mine[r * 20 + q], alpha * mine[r * 20 + q + 1]};
            if (beta != 0) {
                s[0] += beta * value(at[0]);
                s[1] += two ? beta * value(at[1]) : 0.f;
            }
            
            pair_put(at, s[0], s[1], two, pairs);
        }
    }
    __syncwarp();
}

extern "C" __global__ __launch_bounds__(256, 1) void tensorop_kernel(
    const __grid_constant__ Args p) {
    extern __shared__ __align__(128) unsigned char raw[];
    const unsigned thread = threadIdx.x;
    const int matrix = blockIdx.z;
    // Blocks of `group` rows of tiles run along N together, so that they share B in L2.
    const int first = blockIdx.x / (p.group * p.tiles_n) * p.group, inside = blockIdx.x % (p.group * p.tiles_n);
    const int height = min(p.group, p.tiles_m - first);
    const int row0 = (first + inside % height) * 128, col0 = inside / height * 128;
    Element *const c = static_cast<Element *>(p.c) + matrix * p.stride_c;
    const auto at = reinterpret_cast<uintptr_t>(c);
    block(p.m, p.n, p.k, p.alpha, p.beta, static_cast<const Element *>(p.a) + matrix * p.stride_a, p.lda,
          static_cast<const Element *>(p.b) + matrix * p.stride_b, p.ldb, c, p.ldc, row0, col0, thread,
          p.ldc % 2 == 0 && p.stride_c % 2 == 0 && at % 4 == 0, p.ldc % 8 == 0 && at % 16 == 0,
          reinterpret_cast<Element *>(raw), reinterpret_cast<float *>(raw), p.general, &p.epilogue, matrix);
}
} // namespace
