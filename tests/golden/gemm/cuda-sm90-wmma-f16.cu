// gemm f16 by wmma
//
// nvcuda::wmma over shared memory, loads staged by copies that do not wait; every layout, alignment, alpha and beta
#include <stdint.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

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

__device__ __forceinline__ bool pair_aligned(const Element *p) {
    return reinterpret_cast<uintptr_t>(p) % 4 == 0;
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

constexpr int BM = 128, BN = 128, KS = 32, WM = 64, WN = 32, STAGES = 2;
constexpr int THREADS = 256;
constexpr int PAD = 8; // rows begin in different banks
constexpr int A_ROWS = 128, A_COLS = 32, A_SIZE = A_ROWS * (A_COLS + PAD);
constexpr int B_ROWS = 128, B_COLS = 32, B_SIZE = B_ROWS * (B_COLS + PAD);

// ROWS x COLS of a stored matrix into shared memory, 0 beyond its end. WHOLE: there is none inside. A thread's copies are
// of one column, so that an address is one addition.
template <int ROWS, int COLS, bool WHOLE>
__device__ __forceinline__ void load_tile(Element *to, const Element *from, int64_t ld, int row0, int col0, int rows,
                                          int cols) {
    constexpr int CHUNKS = COLS / 8, HIGH = THREADS / CHUNKS;
    const int r = threadIdx.x / CHUNKS, c = threadIdx.x % CHUNKS * 8, inside = cols - col0 - c;
    Element *const at = to + r * (COLS + PAD) + c;
    const Element *source = from + (row0 + r) * ld + col0 + c;
#pragma unroll
    for (int i = 0; i < ROWS / HIGH; ++i) {
        const int left = WHOLE ? 8 : row0 + r + i * HIGH < rows ? inside : 0;
        elements_copy(at + i * HIGH * (COLS + PAD), source, left);
        source += HIGH * ld;
    }
}

extern "C" __global__ __launch_bounds__(THREADS, 1) void tensorop_kernel(const __grid_constant__ Args p) {
    extern __shared__ __align__(128) unsigned char raw[];
    Element *const tiles = reinterpret_cast<Element *>(raw);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    // Blocks of `group` rows of tiles run along N together, so that they share B in L2.
    const int first = blockIdx.x / (p.group * p.tiles_n) * p.group, inside = blockIdx.x % (p.group * p.tiles_n);
    const int height = min(p.group, p.tiles_m - first);
    const int row0 = (first + inside % height) * BM, col0 = inside / height * BN;
    const int wm = warp / (BN / WN) * WM, wn = warp % (BN / WN) * WN;
    const Element *const a = static_cast<const Element *>(p.a) + blockIdx.z * p.stride_a;
    const Element *const b = static_cast<const Element *>(p.b) + blockIdx.z * p.stride_b;
    Element *const c = static_cast<Element *>(p.c) + blockIdx.z * p.stride_c;

    const bool within = row0 + BM <= p.m && col0 + BN <= p.n;
    auto load = [&](int stage, int k0) {
        Element *sa = tiles + stage * (A_SIZE + B_SIZE), *sb = sa + A_SIZE;
        load_tile<A_ROWS, A_COLS, false>(sa, a, p.lda, row0, k0, p.m, p.k);
        load_tile<B_ROWS, B_COLS, false>(sb, b, p.ldb, col0, k0, p.n, p.k);
    };
    SumTile sum[WM / 16][WN / 16];
    for (auto &row : sum)
        for (auto &s : row)
            sum_clear(s);
    const int steps = (p.k + KS - 1) / KS;
    for (int s = 0; s < STAGES - 1; ++s) {
        if (s < steps)
            load(s, s * KS);
        copies_commit();
    }
    for (int step = 0; step < steps; ++step) {
        copies_wait<STAGES - 2>();
        __syncthreads();
        const int ahead = step + STAGES - 1;
        if (ahead < steps)
            load(ahead % STAGES, ahead * KS);
        copies_commit();
        const Element *sa = tiles + step % STAGES * (A_SIZE + B_SIZE), *sb = sa + A_SIZE;
#pragma unroll
        for (int kk = 0; kk < KS; kk += 16) {
            TileA fa[WM / 16];
#pragma unroll
            for (int i = 0; i < WM / 16; ++i)
                tile_a(fa[i], sa + (wm + 16 * i) * (KS + PAD) + kk, A_COLS + PAD);
#pragma unroll
            for (int j = 0; j < WN / 16; ++j) {
                TileB fb;
                tile_b(fb, sb + (wn + 16 * j) * (KS + PAD) + kk, B_COLS + PAD);
#pragma unroll
                for (int i = 0; i < WM / 16; ++i)
                    tile_multiply(sum[i][j], fa[i], fb);
            }
        }
    }
    copies_wait<0>();
    __syncthreads();
    float *const mine = reinterpret_cast<float *>(raw) + warp * 16 * 20;
    const bool pairs = p.ldc % 2 == 0 && p.stride_c % 2 == 0 && pair_aligned(c);
#pragma unroll
    for (int i = 0; i < WM / 16; ++i)
#pragma unroll
        for (int j = 0; j < WN / 16; ++j) {
            sum_spread(mine, sum[i][j], 20);
            __syncwarp();
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int r = e * 4 + lane / 8, q = lane % 8 * 2;
                const int row = row0 + wm + 16 * i + r, col = col0 + wn + 16 * j + q;
                if (row >= p.m || col >= p.n)
                    continue;
                Element *at = c + row * p.ldc + col;
                const bool two = col + 1 < p.n;
                float x = p.alpha * mine[r * 20 + q], y = p.alpha * mine[r * 20 + q + 1];
                if (p.beta != 0) {
                    x += p.beta * value(at[0]);
                    y += two ? p.beta * value(at[1]) : 0.f;
                }
                pair_put(at, x, y, two, pairs);
            }
            __syncwarp();
        }
}

} // namespace
