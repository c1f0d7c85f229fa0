// gemm bf16 by mma
//
// mma.sync and ldmatrix, operands by asynchronous copies of words or pairs, or through registers from any address; warps share k where tiles are few
#include <stdint.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
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
    int general; /* beta is not 0, or there is an epilogue */
    struct Epilogue epilogue;
};

namespace {
using Element = __nv_bfloat16;
struct SumTile {
    float v[8];
};
struct TileA {
    uint32_t r[4]; // pairs of elements, in the order of sums
};
struct TileB {
    uint32_t r[4]; // of the first 8 columns, then of the others: rows from thread % 4 * 2 and from there + 8
};
struct Rows {
    float v[2]; // of rows thread % 32 / 4 and that + 8
};
struct Pages { // rows of an operand that lie in pages of 1 << bits rows
    const int *table; // the number of each page
    int64_t apart; // elements between pages
    int bits;
};
struct Page {
    int number;
};
struct Near { // 8 elements at any address: the words of 16 bytes around them, and where they begin in these
    uint4 low, high;
    int shift, left;
};

__device__ __forceinline__ void near_read(Near &near, const Element *from, int left) {
    const uintptr_t at = reinterpret_cast<uintptr_t>(from);
    const uint4 *const words = reinterpret_cast<const uint4 *>(at & ~uintptr_t(15));
    near.low = near.high = make_uint4(0, 0, 0, 0);
    near.shift = at % 16 / 2, near.left = left;
    if (left > 0)
        near.low = __ldg(words);
    if (near.shift != 0 && left > 8 - near.shift)
        near.high = __ldg(words + 1);
}

__device__ __forceinline__ void near_put(Element *to, const Near &near) {
    uint32_t w[8] = {near.low.x, near.low.y, near.low.z, near.low.w, near.high.x, near.high.y, near.high.z, near.high.w};
    for (int i = 0; i < 6; ++i)
        w[i] = near.shift & 4 ? w[i + 2] : w[i];
    for (int i = 0; i < 5; ++i)
        w[i] = near.shift & 2 ? w[i + 1] : w[i];
    const uint32_t pick = near.shift & 1 ? 0x5432 : 0x3210;
    for (int i = 0; i < 4; ++i)
        w[i] = __byte_perm(w[i], w[i + 1], pick);
    if (near.left < 8)
        for (int i = 0; i < 4; ++i)
            w[i] = near.left >= 2 * i + 2 ? w[i] : near.left == 2 * i + 1 ? w[i] & 0xffff : 0;
    *reinterpret_cast<uint4 *>(to) = make_uint4(w[0], w[1], w[2], w[3]);
}

__device__ __forceinline__ void tile_a(TileA &tile, const Element *from, int ld) {
    const unsigned lane = threadIdx.x % 32;
    const Element *const at = from + lane % 16 * ld + lane / 16 * 8;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(tile.r[0]), "=r"(tile.r[1]), "=r"(tile.r[2]), "=r"(tile.r[3])
                 : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(at)))
                 : "memory");
}

__device__ __forceinline__ void tile_b_turned(TileB &tile, const Element *from, int ld) {
    const unsigned lane = threadIdx.x % 32;
    const Element *const at = from + (lane / 16 * 8 + lane % 8) * ld + lane / 8 % 2 * 8;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(tile.r[0]), "=r"(tile.r[1]), "=r"(tile.r[2]), "=r"(tile.r[3])
                 : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(at)))
                 : "memory");
}

__device__ __forceinline__ void tile_multiply(SumTile &sum, const TileA &a, const TileB &b) {
    for (int half = 0; half < 2; ++half) // of 8 columns
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
                     "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(sum.v[4 * half]), "+f"(sum.v[4 * half + 1]), "+f"(sum.v[4 * half + 2]),
                       "+f"(sum.v[4 * half + 3])
                     : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "r"(b.r[2 * half]), "r"(b.r[2 * half + 1]));
}

__device__ __forceinline__ void sum_clear(SumTile &sum) {
    for (int e = 0; e < 8; ++e)
        sum.v[e] = 0;
}

__device__ __forceinline__ float sum_value(const SumTile &sum, int register_) {
    return sum.v[register_];
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

__device__ __forceinline__ void row_pairs_put(Element *at, const float *s, int left, bool together) {
    if (together) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            if (left > 8 * i)
                pair_put(at + 8 * i, s[2 * i], s[2 * i + 1], left > 8 * i + 1, true);
        return;
    }
    const int place = threadIdx.x % 4, source = threadIdx.x % 32 / 4 * 4 + (place + 3) % 4;
    const bool odd = reinterpret_cast<uintptr_t>(at) % 4 != 0;
    uint32_t before = 0; // of the 8 columns before
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const Element both[2] = {Element(s[2 * i]), Element(s[2 * i + 1])};
        const uint32_t pair = *reinterpret_cast<const uint32_t *>(both);
        // Off an aligned word, it has the second element of the thread before, and this thread's first.
        const uint32_t found = __shfl_sync(0xffffffff, place == 3 ? before : pair, source);
        Element *const to = at + 8 * i;
        const int here = left - 8 * i;
        if (odd ? here >= 1 && place + i > 0 : here >= 2)
            *reinterpret_cast<uint32_t *>(to - odd) = __byte_perm(found, pair, odd ? 0x5432 : 0x7654);
        if (odd ? here >= 1 && place + i == 0 : here == 1)
            to[0] = both[0];
        if (odd && (here == 2 || (here > 2 && place == 3 && i == 3)))
            to[1] = both[1];
        before = pair;
    }
}

__device__ __forceinline__ float value(Element element) {
    return static_cast<float>(element);
}

__device__ __forceinline__ void block(int m, int n, int k, float alpha, float beta, const Element *a, size_t lda, const Element *b,
           size_t ldb, Element *c, size_t ldc, int row0, int col0, unsigned thread, bool pairs, bool words,
           Element *tiles, float *sums, bool general, const Epilogue *epilogue, int matrix) {
    const int warp = thread / 32, lane = thread % 32;
    const int wm = warp / 4 * 32, wn = warp % 4 * 32;
    SumTile sum0_0;
    sum_clear(sum0_0);
    SumTile sum0_1;
    sum_clear(sum0_1);
    SumTile sum1_0;
    sum_clear(sum1_0);
    SumTile sum1_1;
    sum_clear(sum1_1);
    TileA fa0_0;
    TileA fa0_1;
    TileB fb0_0;
    TileB fb0_1;
    const int steps = (k + 31) / 32;
    Near near_a0;
    Near near_b0;
    Near near_b1;
                            {
                const int r = thread / 4, q = thread % 4 * 8;
                const int inside = k - 0 - q;
                const Element *const source = a + (row0 + r) * lda + 0 + q;
                near_read(near_a0, source, row0 + r < m ? inside : 0);
            }
            {
                const int r = thread / 4, q = thread % 4 * 8;
                const int inside = k - 0 - q;
                const Element *const source = b + (col0 + r) * ldb + 0 + q;
                near_read(near_b0, source, col0 + r < n ? inside : 0);
                near_read(near_b1, source + 64 * ldb, col0 + r + 64 < n ? inside : 0);
            }
            {
                Element *const to_a = tiles + 0 * 7680;
                Element *const to_b = to_a + 2560;
                            {
                Element *const to = to_a + thread / 4 * 40 + thread % 4 * 8;
                near_put(to, near_a0);
            }
            {
                Element *const to = to_b + thread / 4 * 40 + thread % 4 * 8;
                near_put(to, near_b0);
                near_put(to + 2560, near_b1);
            }
}
for (int step = 0; step < steps; ++step) {
        __syncthreads();
        const int k0 = (step + 1) * 32;
        if (k0 < k) {
                                    {
                const int r = thread / 4, q = thread % 4 * 8;
                const int inside = k - k0 - q;
                const Element *const source = a + (row0 + r) * lda + k0 + q;
                near_read(near_a0, source, row0 + r < m ? inside : 0);
            }
            {
                const int r = thread / 4, q = thread % 4 * 8;
                const int inside = k - k0 - q;
                const Element *const source = b + (col0 + r) * ldb + k0 + q;
                near_read(near_b0, source, col0 + r < n ? inside : 0);
                near_read(near_b1, source + 64 * ldb, col0 + r + 64 < n ? inside : 0);
            }
}
        const Element *const sa = tiles + step % 2 * 7680;
        const Element *const sb = sa + 2560;
#pragma unroll
        for (int kk = 0; kk < 32; kk += 16) {
                        tile_a(fa0_0, sa + (wm + 0) * 40 + kk, 40);
            tile_a(fa0_1, sa + (wm + 16) * 40 + kk, 40);
            tile_b_turned(fb0_0, sb + (wn + 0) * 40 + kk, 40);
            tile_b_turned(fb0_1, sb + (wn + 16) * 40 + kk, 40);
            tile_multiply(sum0_0, fa0_0, fb0_0);
            tile_multiply(sum0_1, fa0_0, fb0_1);
            tile_multiply(sum1_0, fa0_1, fb0_0);
            tile_multiply(sum1_1, fa0_1, fb0_1);
}
        if (k0 < k) {
                        {
                Element *const to_a = tiles + (step + 1) % 2 * 7680;
                Element *const to_b = to_a + 2560;
                            {
                Element *const to = to_a + thread / 4 * 40 + thread % 4 * 8;
                near_put(to, near_a0);
            }
            {
                Element *const to = to_b + thread / 4 * 40 + thread % 4 * 8;
                near_put(to, near_b0);
                near_put(to + 2560, near_b1);
            }
}
}
    }
    {
    {
        const int row = row0 + wm + 0 + lane / 4, col = col0 + wn + lane % 4 * 2;
        const int left = n - col; // of a row, from this thread's first column on
        Element *const at = c + row * ldc + col;
        float s[8] = {0}; // two of each 8 columns
        s[0] = sum_value(sum0_0, 0), s[1] = sum_value(sum0_0, 1);
        s[0] *= alpha, s[1] *= alpha;
        if (row < m && left > 0) {
            if (beta != 0) {
                s[0] += beta * value(at[0]);
                if (left > 1)
                    s[1] += beta * value(at[1]);
            }
        }
        s[2] = sum_value(sum0_0, 4), s[3] = sum_value(sum0_0, 5);
        s[2] *= alpha, s[3] *= alpha;
        if (row < m && left > 8) {
            if (beta != 0) {
                s[2] += beta * value(at[8]);
                if (left > 9)
                    s[3] += beta * value(at[9]);
            }
        }
        s[4] = sum_value(sum0_1, 0), s[5] = sum_value(sum0_1, 1);
        s[4] *= alpha, s[5] *= alpha;
        if (row < m && left > 16) {
            if (beta != 0) {
                s[4] += beta * value(at[16]);
                if (left > 17)
                    s[5] += beta * value(at[17]);
            }
        }
        s[6] = sum_value(sum0_1, 4), s[7] = sum_value(sum0_1, 5);
        s[6] *= alpha, s[7] *= alpha;
        if (row < m && left > 24) {
            if (beta != 0) {
                s[6] += beta * value(at[24]);
                if (left > 25)
                    s[7] += beta * value(at[25]);
            }
        }
        row_pairs_put(at, s, row < m ? left : 0, pairs);
    }
    {
        const int row = row0 + wm + 8 + lane / 4, col = col0 + wn + lane % 4 * 2;
        const int left = n - col; // of a row, from this thread's first column on
        Element *const at = c + row * ldc + col;
        float s[8] = {0}; // two of each 8 columns
        s[0] = sum_value(sum0_0, 2), s[1] = sum_value(sum0_0, 3);
        s[0] *= alpha, s[1] *= alpha;
        if (row < m && left > 0) {
            if (beta != 0) {
                s[0] += beta * value(at[0]);
                if (left > 1)
                    s[1] += beta * value(at[1]);
            }
        }
        s[2] = sum_value(sum0_0, 6), s[3] = sum_value(sum0_0, 7);
        s[2] *= alpha, s[3] *= alpha;
        if (row < m && left > 8) {
            if (beta != 0) {
                s[2] += beta * value(at[8]);
                if (left > 9)
                    s[3] += beta * value(at[9]);
            }
        }
        s[4] = sum_value(sum0_1, 2), s[5] = sum_value(sum0_1, 3);
        s[4] *= alpha, s[5] *= alpha;
        if (row < m && left > 16) {
            if (beta != 0) {
                s[4] += beta * value(at[16]);
                if (left > 17)
                    s[5] += beta * value(at[17]);
            }
        }
        s[6] = sum_value(sum0_1, 6), s[7] = sum_value(sum0_1, 7);
        s[6] *= alpha, s[7] *= alpha;
        if (row < m && left > 24) {
            if (beta != 0) {
                s[6] += beta * value(at[24]);
                if (left > 25)
                    s[7] += beta * value(at[25]);
            }
        }
        row_pairs_put(at, s, row < m ? left : 0, pairs);
    }
    {
        const int row = row0 + wm + 16 + lane / 4, col = col0 + wn + lane % 4 * 2;
        const int left = n - col; // of a row, from this thread's first column on
        Element *const at = c + row * ldc + col;
        float s[8] = {0}; // two of each 8 columns
        s[0] = sum_value(sum1_0, 0), s[1] = sum_value(sum1_0, 1);
        s[0] *= alpha, s[1] *= alpha;
        if (row < m && left > 0) {
            if (beta != 0) {
                s[0] += beta * value(at[0]);
                if (left > 1)
                    s[1] += beta * value(at[1]);
            }
        }
        s[2] = sum_value(sum1_0, 4), s[3] = sum_value(sum1_0, 5);
        s[2] *= alpha, s[3] *= alpha;
        if (row < m && left > 8) {
            if (beta != 0) {
                s[2] += beta * value(at[8]);
                if (left > 9)
                    s[3] += beta * value(at[9]);
            }
        }
        s[4] = sum_value(sum1_1, 0), s[5] = sum_value(sum1_1, 1);
        s[4] *= alpha, s[5] *= alpha;
        if (row < m && left > 16) {
            if (beta != 0) {
                s[4] += beta * value(at[16]);
                if (left > 17)
                    s[5] += beta * value(at[17]);
            }
        }
        s[6] = sum_value(sum1_1, 4), s[7] = sum_value(sum1_1, 5);
        s[6] *= alpha, s[7] *= alpha;
        if (row < m && left > 24) {
            if (beta != 0) {
                s[6] += beta * value(at[24]);
                if (left > 25)
                    s[7] += beta * value(at[25]);
            }
        }
        row_pairs_put(at, s, row < m ? left : 0, pairs);
    }
    {
        const int row = row0 + wm + 24 + lane / 4, col = col0 + wn + lane % 4 * 2;
        const int left = n - col; // of a row, from this thread's first column on
        Element *const at = c + row * ldc + col;
        float s[8] = {0}; // two of each 8 columns
        s[0] = sum_value(sum1_0, 2), s[1] = sum_value(sum1_0, 3);
        s[0] *= alpha, s[1] *= alpha;
        if (row < m && left > 0) {
            if (beta != 0) {
                s[0] += beta * value(at[0]);
                if (left > 1)
                    s[1] += beta * value(at[1]);
            }
        }
        s[2] = sum_value(sum1_0, 6), s[3] = sum_value(sum1_0, 7);
        s[2] *= alpha, s[3] *= alpha;
        if (row < m && left > 8) {
            if (beta != 0) {
                s[2] += beta * value(at[8]);
                if (left > 9)
                    s[3] += beta * value(at[9]);
            }
        }
        s[4] = sum_value(sum1_1, 2), s[5] = sum_value(sum1_1, 3);
        s[4] *= alpha, s[5] *= alpha;
        if (row < m && left > 16) {
            if (beta != 0) {
                s[4] += beta * value(at[16]);
                if (left > 17)
                    s[5] += beta * value(at[17]);
            }
        }
        s[6] = sum_value(sum1_1, 6), s[7] = sum_value(sum1_1, 7);
        s[6] *= alpha, s[7] *= alpha;
        if (row < m && left > 24) {
            if (beta != 0) {
                s[6] += beta * value(at[24]);
                if (left > 25)
                    s[7] += beta * value(at[25]);
            }
        }
        row_pairs_put(at, s, row < m ? left : 0, pairs);
    }
    }
}

extern "C" __global__ __launch_bounds__(256, 1) void tensorop_kernel(
    const __grid_constant__ Args p) {
    extern __shared__ __align__(128) unsigned char raw[];
    const unsigned thread = threadIdx.x;
    const int matrix = blockIdx.z;
    // Blocks of `group` rows of tiles run along N together, so that they share B in L2.
    const int first = blockIdx.x / (p.group * p.tiles_n) * p.group, inside = blockIdx.x % (p.group * p.tiles_n);
    const int height = min(p.group, p.tiles_m - first);
    const int row0 = (first + inside % height) * 64, col0 = inside / height * 128;
#if __CUDA_ARCH__ >= 900
    // The next launch begins once all blocks run, and waits here too.
    asm volatile("griddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;" ::: "memory");
#endif
    Element *const c = static_cast<Element *>(p.c) + matrix * p.stride_c;
    const auto at = reinterpret_cast<uintptr_t>(c);
    block(p.m, p.n, p.k, p.alpha, p.beta, static_cast<const Element *>(p.a) + matrix * p.stride_a, p.lda,
          static_cast<const Element *>(p.b) + matrix * p.stride_b, p.ldb, c, p.ldc, row0, col0, thread,
          p.ldc % 2 == 0 && p.stride_c % 2 == 0 && at % 4 == 0, p.ldc % 8 == 0 && at % 16 == 0,
          reinterpret_cast<Element *>(raw), reinterpret_cast<float *>(raw), p.general, &p.epilogue, matrix);
}
} // namespace
