// gemm f32_3xtf32 by tf32
//
// f32 on tensor cores by mma.sync, of which each factor counts with 10 bits behind the point, or in two such parts
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
struct SumTile {
    float v[8];
};
struct TileA {
    uint32_t r[4]; // rows thread % 32 / 4 and that + 8 of column thread % 4, then of that + 4
    uint32_t low[4]; // what r lacks
};
struct TileB {
    uint32_t r[4]; // rows thread % 4 and that + 4 of column thread % 32 / 4, then of that + 8
    uint32_t low[4];
};

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

__device__ __forceinline__ void parts(uint32_t *r, uint32_t *low) {
    for (int i = 0; i < 4; ++i) {
        const uint32_t high = r[i] & 0xffffe000u;
        low[i] = __float_as_uint(__uint_as_float(r[i]) - __uint_as_float(high));
        r[i] = high;
    }
}

__device__ __forceinline__ void rows_of_a(TileA &tile, const float *from, int ld) {
    const unsigned lane = threadIdx.x % 32;
    const float *const at = from + lane % 16 * ld + lane / 16 * 4;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(tile.r[0]), "=r"(tile.r[1]), "=r"(tile.r[2]), "=r"(tile.r[3])
                 : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(at)))
                 : "memory");
    parts(tile.r, tile.low);
}

__device__ __forceinline__ void columns_of_b(TileB &tile, const float *from, int ld) {
    const unsigned lane = threadIdx.x % 32;
    const float *const at = from + (lane / 16 * 8 + lane % 8) * ld + lane / 8 % 2 * 4;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(tile.r[0]), "=r"(tile.r[1]), "=r"(tile.r[2]), "=r"(tile.r[3])
                 : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(at)))
                 : "memory");
    parts(tile.r, tile.low);
}

__device__ __forceinline__ void sum_clear(SumTile &sum) {
    for (int e = 0; e < 8; ++e)
        sum.v[e] = 0;
}

__device__ __forceinline__ void product(SumTile &sum, const uint32_t *a, const uint32_t *b) {
    for (int half = 0; half < 2; ++half) // of 8 columns
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, "
                     "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(sum.v[4 * half]), "+f"(sum.v[4 * half + 1]), "+f"(sum.v[4 * half + 2]),
                       "+f"(sum.v[4 * half + 3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[2 * half]), "r"(b[2 * half + 1]));
}

__device__ __forceinline__ void tiles_multiply(SumTile &sum, const TileA &a, const TileB &b) {
    SumTile part;
    sum_clear(part);
    product(part, a.low, b.r);
    product(part, a.r, b.low);
    product(part, a.r, b.r);
    for (int e = 0; e < 8; ++e)
        sum.v[e] += part.v[e];
}

__device__ __forceinline__ float sum_value(const SumTile &sum, int register_) {
    return sum.v[register_];
}

__device__ __forceinline__ void float_pair_put(float *at, float x, float y, bool two, bool together) {
    if (together && two) {
        *reinterpret_cast<float2 *>(at) = make_float2(x, y);
    } else {
        at[0] = x;
        if (two)
            at[1] = y;
    }
}

__device__ __forceinline__ void block(int m, int n, int k, float alpha, float beta, const float *a, size_t lda, const float *b,
           size_t ldb, float *c, size_t ldc, int row0, int col0, unsigned thread, bool pairs, bool words,
           float *tiles, float *sums, bool general, const Epilogue *epilogue, int matrix) {
    const int warp = thread / 32, lane = thread % 32;
    const int wm = warp / 4 * 64, wn = warp % 4 * 32;
    const bool within = row0 + 128 <= m && col0 + 128 <= n;
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
    const int steps = (k + 15) / 16;
    for (int s = 0; s < 1; ++s) {
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
        copies_wait<0>();
        __syncthreads();
        const int ahead = step + 1;
        if (ahead < steps) {
            const int stage = ahead % 2, k0 = ahead * 16;
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
        const float *const sa = tiles + step % 2 * 5120;
        const float *const sb = sa + 2560;
#pragma unroll 1
        for (int kk = 0; kk < 16; kk += 8) {
            TileA fa0;
            rows_of_a(fa0, sa + (wm + 0) * 20 + kk, 20);
            TileA fa1;
            rows_of_a(fa1, sa + (wm + 16) * 20 + kk, 20);
            TileA fa2;
            rows_of_a(fa2, sa + (wm + 32) * 20 + kk, 20);
            TileA fa3;
            rows_of_a(fa3, sa + (wm + 48) * 20 + kk, 20);
            TileB fb0;
            columns_of_b(fb0, sb + (wn + 0) * 20 + kk, 20);
            tiles_multiply(sum0_0, fa0, fb0);
            tiles_multiply(sum1_0, fa1, fb0);
            tiles_multiply(sum2_0, fa2, fb0);
            tiles_multiply(sum3_0, fa3, fb0);
            TileB fb1;
            columns_of_b(fb1, sb + (wn + 16) * 20 + kk, 20);
            tiles_multiply(sum0_1, fa0, fb1);
            tiles_multiply(sum1_1, fa1, fb1);
            tiles_multiply(sum2_1, fa2, fb1);
            tiles_multiply(sum3_1, fa3, fb1);
        }
    }
    copies_wait<0>();
    {
        const int row = row0 + wm + 0 + lane / 4;
        if (row < m) {
            {
                const int col = col0 + wn + 0 + lane % 4 * 2;
                if (col < n) {
                    float *const at = c + row * ldc + col;
                    const bool two = col + 1 < n;
                    float s[2] = {alpha * sum_value(sum0_0, 0),
                                  alpha * sum_value(sum0_0, 1)};
                    if (beta != 0) {
                        s[0] += beta * at[0];
                        s[1] += two ? beta * at[1] : 0.f;
                    }
                    
                    float_pair_put(at, s[0], s[1], two, pairs);
                }
            }
            {
                const int col = col0 + wn + 8 + lane % 4 * 2;
                if (col < n) {
                    float *const at = c + row * ldc + col;
                    const bool two = col + 1 < n;
                    float s[2] = {alpha * sum_value(sum0_0, 4),
                                  alpha * sum_value(sum0_0, 5)};
                    if (beta != 0) {
                        s[0] += beta * at[0];
                        s[1] += two ? beta * at[1] : 0.f;
                    }
                    
                    float_pair_put(at, s[0], s[1], two, pairs);
                }
            }
            {
                const int col = col0 + wn + 16 + lane % 4 * 2;
                if (col < n) {
                    float *const at = c + row * ldc + col;
                    const bool two = col + 1 < n;
                    float s[2] = {alpha * sum_value(sum0_1, 0),
                                  alpha * sum_value(sum0_1, 1)};
                    if (beta != 0) {
                        s[0] += beta * at[0];
                        s[1] += two ? beta * at[1] : 0.f;
                    }
                    
                    float_pair_put(at, s[0], s[1], two, pairs);
                }
            }
            {
                const int col = col0 + wn + 24 + lane % 4 * 2;
                if (col < n) {
                    float *const at = c + row * ldc + col;
                    const bool two = col + 1 < n;
                    float s[2] = {alpha * sum_value(sum0_1, 4),
                                  alpha * sum_value(sum0_1, 5)};
                    if (beta != 0) {
                        s[0] += beta * at[0];
                        s[1] += two ? beta * at[1] : 0.f;
                    }
                    
                    float_pair_put(at, s[0], s[1], two, pairs);
                }
            }
        }
    }
    {
        const int row = row0 + wm + 8 + lane / 4;
        if (row < m) {
            {
                const int col = col0 + wn + 0 + lane % 4 * 2;
                if (col < n) {
                    float *const at = c + row * ldc + col;
                    const bool two = col + 1 < n;
                    float s[2] = {alpha * sum_value(sum0_0, 2),
                                  alpha * sum_value(sum0_0, 3)};
                    if (beta != 0) {
                        s[0] += beta * at[0];
                        s[1] += two ? beta * at[1] : 0.f;
                    }
                    
                    float_pair_put(at, s[0], s[1], two, pairs);
                }
            }
            {
                const int col = col0 + wn + 8 + lane % 4 * 2;
                if (col < n) {
                    float *const at = c + row * ldc + col;
                    const bool two = col + 1 < n;
                    float s[2] = {alpha * sum_value(sum0_0, 6),
                                  alpha * sum_value(sum0_0, 7)};
                    if (beta != 0) {
                        s[0] += beta * at[0];
                        s[1] += two ? beta * at[1] : 0.f;
                    }
                    
                    float_pair_put(at, s[0], s[1], two, pairs);
                }
            }
            {
                const int col = col0 + wn + 16 + lane % 4 * 2;
                if (col < n) {
                    float *const at = c + row * ldc + col;
                    const bool two = col + 1 < n;
                    float s[2] = {alpha * sum_value(sum0_1, 2),
                                  alpha * sum_value(sum0_1, 3)};
                    if (beta != 0) {
                        s[0] += beta * at[0];
                        s[1] += two ? beta * at[1] : 0.f;
                    }
                    
                    float_pair_put(at, s[0], s[1], two, pairs);
                }
            }
            {
                const int col = col0 + wn + 24 + lane % 4 * 2;
                if (col < n) {
                    float *const at = c + row * ldc + col;
                    const bool two = col + 1 < n;
                    float s[2] = {alpha * sum_value(sum0_1, 6),
                                  alpha * sum_value(sum0_1, 7)};
                    if (beta != 0) {
                        s[0] += beta * at[0];
                        s[1] += two ? beta * at[1] : 0.f;
                    }
                    
                    float_pair_put(at, s[0], s[1], two, pairs);
                }
            }
        }
    }
    {
        const int row = row0 + wm + 16 + lane / 4;
        if (row < m) {
            {
                const int col = col0 + wn + 0 + lane % 4 * 2;
                if (col < n) {
                    float *const at = c + row * ldc + col;
                    const bool two = col + 1 < n;
                    float s[2] = {alpha * sum_value(sum1_0, 0),
                                  alpha * sum_value(sum1_0, 1)};
                    if (beta != 0) {
                        s[0] += beta * at[0];
                        s[1] += two ? beta * at[1] : 0.f;
                    }
                    
                    float_pair_put(at, s[0], s[1], two, pairs);
                }
            }
            {
                const int col = col0 + wn + 8 + lane % 4 * 2;
                if (col < n) {
                    float *const at = c + row * ldc + col;
                    const bool two = col + 1 < n;
                    float s[2] = {alpha * sum_value(sum1_0, 4),
                                  alpha * sum_value(sum1_0, 5)};
                    if (beta != 0) {
                        s[0] += beta * at[0];
                        s[1] += two ? beta * at[1] : 0.f;
                    }
                    
                    float_pair_put(at, s[0], s[1], two, pairs);
                }
            }
            {
                const int col = col0 + wn + 16 + lane % 4 * 2;
                if (col < n) {
                    float *const at = c + row * ldc + col;
                    const bool two = col + 1 < n;
                    float s[2] = {alpha * sum_value(sum1_1, 0),
                                  alpha * sum_value(sum1_1, 1)};
                    if (beta != 0) {
                        s[0] += beta * at[0];
                        s[1] += two ? beta * at[1] : 0.f;
                    }
                    
                    float_pair_put(at, s[0], s[1], two, pairs);
                }
            }
            {
                const int col = col0 + wn + 24 + lane % 4 * 2;
                if (col < n) {
                    float *const at = c + row * ldc + col;
                    const bool two = col + 1 < n;
                    float s[2] = {alpha * sum_value(sum1_1, 4),
                                  alpha * sum_value(sum1_1, 5)};
                    if (beta != 0) {
                        s[0] += beta * at[0];
                        s[1] += two ? beta * at[1] : 0.f;
                    }
                    
                    float_pair_put(at, s[0], s[1], two, pairs);
                }
            }
        }
    }
    {
        const int row = row0 + wm + 24 + lane / 4;
        if (row < m) {
            {
                const int col = col0 + wn + 0 + lane % 4 * 2;
                if (col < n) {
                    float *const at = c + row * ldc + col;
                    const bool two = col + 1 < n;
                    float s[2] = {alpha * sum_value(sum1_0, 2),
                                  alpha * sum_value(sum1_0, 3)};
                    if (beta != 0) {
                        s[0] += beta * at[0];
                        s[1] += two ? beta * at[1] : 0.f;
                    }
                    
                    float_pair_put(at, s[0], s[1], two, pairs);
                }
            }
            {
                const int col = col0 + wn + 8 + lane % 4 * 2;
                if (col < n) {
                    float *const at = c + row * ldc + col;
                    const bool two = col + 1 < n;
                    float s[2] = {alpha * sum_value(sum1_0, 6),
                                  alpha * sum_value(sum1_0, 7)};
                    if (beta != 0) {
                        s[0] += beta * at[0];
                        s[1] += two ? beta * at[1] : 0.f;
                    }
                    
                    float_pair_put(at, s[0], s[1], two, pairs);
                }
            }
            {
                const int col = col0 + wn + 16 + lane % 4 * 2;
                if (col < n) {
                    float *const at = c + row * ldc + col;
                    const bool two = col + 1 < n;
                    float s[2] = {alpha * sum_value(sum1_1, 2),
                                  alpha * sum_value(sum1_1, 3)};
                    if (beta != 0) {
                        s[0] += beta * at[0];
                        s[1] += two ? beta * at[1] : 0.f;
                    }
                    
                    float_pair_put(at, s[0], s[1], two, pairs);
                }
            }
            {
                const int col = col0 + wn + 24 + lane % 4 * 2;
                if (col < n) {
                    float *const at = c + row * ldc + col;
                    const bool two = col + 1 < n;
                    float s[2] = {alpha * sum_value(sum1_1, 6),
                                  alpha * sum_value(sum1_1, 7)};
                    if (beta != 0) {
                        s[0] += beta * at[0];
                        s[1] += two ? beta * at[1] : 0.f;
                    }
                    
                    float_pair_put(at, s[0], s[1], two, pairs);
                }
            }
        }
    }
    {
        const int row = row0 + wm + 32 + lane / 4;
        if (row < m) {
            {
                const int col = col0 + wn + 0 + lane % 4 * 2;
                if (col < n) {
                    float *const at = c + row * ldc + col;
                    const bool two = col + 1 < n;
                    float s[2] = {alpha * sum_value(sum2_0, 0),
                                  alpha * sum_value(sum2_0, 1)};
                    if (beta != 0) {
                        s[0] += beta * at[0];
                        s[1] += two ? beta * at[1] : 0.f;
                    }
                    
                    float_pair_put(at, s[0], s[1], two, pairs);
                }
            }
            {
                const int col = col0 + wn + 8 + lane % 4 * 2;
                if (col < n) {
                    float *const at = c + row * ldc + col;
                    const bool two = col + 1 < n;
                    float s[2] = {alpha * sum_value(sum2_0, 4),
                                  alpha * sum_value(sum2_0, 5)};
                    if (beta != 0) {
                        s[0] += beta * at[0];
                        s[1] += two ? beta * at[1] : 0.f;
                    }
                    
                    float_pair_put(at, s[0], s[1], two, pairs);
                }
            }
            {
                const int col = col0 + wn + 16 + lane % 4 * 2;
                if (col < n) {
                    float *const at = c + row * ldc + col;
                    const bool two = col + 1 < n;
                    float s[2] = {alpha * sum_value(sum2_1, 0),
                                  alpha * sum_value(sum2_1, 1)};
                    if (beta != 0) {
                        s[0] += beta * at[0];
                        s[1] += two ? beta * at[1] : 0.f;
                    }
                    
                    float_pair_put(at, s[0], s[1], two, pairs);
                }
            }
            {
                const int col = col0 + wn + 24 + lane % 4 * 2;
                if (col < n) {
                    float *const at = c + row * ldc + col;
                    const bool two = col + 1 < n;
                    float s[2] = {alpha * sum_value(sum2_1, 4),
                                  alpha * sum_value(sum2_1, 5)};
                    if (beta != 0) {
                        s[0] += beta * at[0];
                        s[1] += two ? beta * at[1] : 0.f;
                    }
                    
                    float_pair_put(at, s[0], s[1], two, pairs);
                }
            }
        }
    }
    {
        const int row = row0 + wm + 40 + lane / 4;
        if (row < m) {
            {
                const int col = col0 + wn + 0 + lane % 4 * 2;
                if (col < n) {
                    float *const at = c + row * ldc + col;
                    const bool two = col + 1 < n;
                    float s[2] = {alpha * sum_value(sum2_0, 2),
                                  alpha * sum_value(sum2_0, 3)};
                    if (beta != 0) {
                        s[0] += beta * at[0];
                        s[1] += two ? beta * at[1] : 0.f;
                    }
                    
                    float_pair_put(at, s[0], s[1], two, pairs);
                }
            }
            {
                const int col = col0 + wn + 8 + lane % 4 * 2;
                if (col < n) {
                    float *const at = c + row * ldc + col;
                    const bool two = col + 1 < n;
                    float s[2] = {alpha * sum_value(sum2_0, 6),
                                  alpha * sum_value(sum2_0, 7)};
                    if (beta != 0) {
                        s[0] += beta * at[0];
                        s[1] += two ? beta * at[1] : 0.f;
                    }
                    
                    float_pair_put(at, s[0], s[1], two, pairs);
                }
            }
            {
                const int col = col0 + wn + 16 + lane % 4 * 2;
                if (col < n) {
                    float *const at = c + row * ldc + col;
                    const bool two = col + 1 < n;
                    float s[2] = {alpha * sum_value(sum2_1, 2),
                                  alpha * sum_value(sum2_1, 3)};
                    if (beta != 0) {
                        s[0] += beta * at[0];
                        s[1] += two ? beta * at[1] : 0.f;
                    }
                    
                    float_pair_put(at, s[0], s[1], two, pairs);
                }
            }
            {
                const int col = col0 + wn + 24 + lane % 4 * 2;
                if (col < n) {
                    float *const at = c + row * ldc + col;
                    const bool two = col + 1 < n;
                    float s[2] = {alpha * sum_value(sum2_1, 6),
                                  alpha * sum_value(sum2_1, 7)};
                    if (beta != 0) {
                        s[0] += beta * at[0];
                        s[1] += two ? beta * at[1] : 0.f;
                    }
                    
                    float_pair_put(at, s[0], s[1], two, pairs);
                }
            }
        }
    }
    {
        const int row = row0 + wm + 48 + lane / 4;
        if (row < m) {
            {
                const int col = col0 + wn + 0 + lane % 4 * 2;
                if (col < n) {
                    float *const at = c + row * ldc + col;
                    const bool two = col + 1 < n;
                    float s[2] = {alpha * sum_value(sum3_0, 0),
                                  alpha * sum_value(sum3_0, 1)};
                    if (beta != 0) {
                        s[0] += beta * at[0];
                        s[1] += two ? beta * at[1] : 0.f;
                    }
                    
                    float_pair_put(at, s[0], s[1], two, pairs);
                }
            }
            {
                const int col = col0 + wn + 8 + lane % 4 * 2;
                if (col < n) {
                    float *const at = c + row * ldc + col;
                    const bool two = col + 1 < n;
                    float s[2] = {alpha * sum_value(sum3_0, 4),
                                  alpha * sum_value(sum3_0, 5)};
                    if (beta != 0) {
                        s[0] += beta * at[0];
                        s[1] += two ? beta * at[1] : 0.f;
                    }
                    
                    float_pair_put(at, s[0], s[1], two, pairs);
                }
            }
            {
                const int col = col0 + wn + 16 + lane % 4 * 2;
                if (col < n) {
                    float *const at = c + row * ldc + col;
                    const bool two = col + 1 < n;
                    float s[2] = {alpha * sum_value(sum3_1, 0),
                                  alpha * sum_value(sum3_1, 1)};
                    if (beta != 0) {
                        s[0] += beta * at[0];
                        s[1] += two ? beta * at[1] : 0.f;
                    }
                    
                    float_pair_put(at, s[0], s[1], two, pairs);
                }
            }
            {
                const int col = col0 + wn + 24 + lane % 4 * 2;
                if (col < n) {
                    float *const at = c + row * ldc + col;
                    const bool two = col + 1 < n;
                    float s[2] = {alpha * sum_value(sum3_1, 4),
                                  alpha * sum_value(sum3_1, 5)};
                    if (beta != 0) {
                        s[0] += beta * at[0];
                        s[1] += two ? beta * at[1] : 0.f;
                    }
                    
                    float_pair_put(at, s[0], s[1], two, pairs);
                }
            }
        }
    }
    {
        const int row = row0 + wm + 56 + lane / 4;
        if (row < m) {
            {
                const int col = col0 + wn + 0 + lane % 4 * 2;
                if (col < n) {
                    float *const at = c + row * ldc + col;
                    const bool two = col + 1 < n;
                    float s[2] = {alpha * sum_value(sum3_0, 2),
                                  alpha * sum_value(sum3_0, 3)};
                    if (beta != 0) {
                        s[0] += beta * at[0];
                        s[1] += two ? beta * at[1] : 0.f;
                    }
                    
                    float_pair_put(at, s[0], s[1], two, pairs);
                }
            }
            {
                const int col = col0 + wn + 8 + lane % 4 * 2;
                if (col < n) {
                    float *const at = c + row * ldc + col;
                    const bool two = col + 1 < n;
                    float s[2] = {alpha * sum_value(sum3_0, 6),
                                  alpha * sum_value(sum3_0, 7)};
                    if (beta != 0) {
                        s[0] += beta * at[0];
                        s[1] += two ? beta * at[1] : 0.f;
                    }
                    
                    float_pair_put(at, s[0], s[1], two, pairs);
                }
            }
            {
                const int col = col0 + wn + 16 + lane % 4 * 2;
                if (col < n) {
                    float *const at = c + row * ldc + col;
                    const bool two = col + 1 < n;
                    float s[2] = {alpha * sum_value(sum3_1, 2),
                                  alpha * sum_value(sum3_1, 3)};
                    if (beta != 0) {
                        s[0] += beta * at[0];
                        s[1] += two ? beta * at[1] : 0.f;
                    }
                    
                    float_pair_put(at, s[0], s[1], two, pairs);
                }
            }
            {
                const int col = col0 + wn + 24 + lane % 4 * 2;
                if (col < n) {
                    float *const at = c + row * ldc + col;
                    const bool two = col + 1 < n;
                    float s[2] = {alpha * sum_value(sum3_1, 6),
                                  alpha * sum_value(sum3_1, 7)};
                    if (beta != 0) {
                        s[0] += beta * at[0];
                        s[1] += two ? beta * at[1] : 0.f;
                    }
                    
                    float_pair_put(at, s[0], s[1], two, pairs);
                }
            }
        }
    }
}

extern "C" __global__ __launch_bounds__(256, 1) void tensorop_kernel(
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
