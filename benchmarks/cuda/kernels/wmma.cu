// The portable path: nvcuda::wmma over shared memory, loads staged by cp.async (through registers
// before sm_80). Every layout, alignment, alpha and beta.
#include "../gemm.h"
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>
#include <type_traits>

namespace {

using namespace nvcuda;

// A block makes BM x BN of C by warps of WM x WN; STAGES tiles of BK are on their way.
template <class T_, int BM_, int BN_, int BK_, int WM_, int WN_, int STAGES_, bool A_KM_,
          bool B_NK_>
struct Config {
    using T = T_;
    static constexpr int BM = BM_, BN = BN_, BK = BK_, WM = WM_, WN = WN_, STAGES = STAGES_;
    static constexpr bool A_KM = A_KM_, B_NK = B_NK_;
    static constexpr int WARPS = BM / WM * (BN / WN), THREADS = WARPS * 32;
    static constexpr int PAD = 8; // rows begin in different banks
    static constexpr int A_ROWS = A_KM ? BK : BM, A_COLS = A_KM ? BM : BK;
    static constexpr int B_ROWS = B_NK ? BN : BK, B_COLS = B_NK ? BK : BN;
    static constexpr int A_SIZE = A_ROWS * (A_COLS + PAD), B_SIZE = B_ROWS * (B_COLS + PAD);
    static constexpr int LOADS = STAGES * (A_SIZE + B_SIZE) * int(sizeof(T));
    static constexpr int RESULT = WARPS * 16 * 20 * int(sizeof(float));
    static constexpr int SHARED = LOADS > RESULT ? LOADS : RESULT;
};

// ROWS x COLS of a stored matrix into shared memory, 0 beyond its end.
template <int ROWS, int COLS, int THREADS, bool ALIGNED, class T>
__device__ __forceinline__ void load_tile(T *to, const T *from, int64_t ld, int row0, int col0,
                                          int rows, int cols) {
    constexpr int CHUNKS = COLS / 8;
    static_assert(ROWS * CHUNKS % THREADS == 0);
#pragma unroll
    for (int i = 0; i < ROWS * CHUNKS / THREADS; ++i) {
        const int index = i * THREADS + threadIdx.x, r = index / CHUNKS, c = index % CHUNKS * 8;
        T *at = to + r * (COLS + 8) + c;
        const T *source = from + (row0 + r) * ld + col0 + c;
        const int left = row0 + r < rows ? cols - col0 - c : 0;
        if constexpr (ALIGNED) {
            const int missing = left >= 8 ? 0 : left <= 0 ? 8 : 8 - left;
#if __CUDA_ARCH__ >= 800
            __pipeline_memcpy_async(at, missing == 8 ? from : source, 16, missing * 2);
#else
            uint4 v = make_uint4(0, 0, 0, 0);
            if (missing == 0)
                v = *reinterpret_cast<const uint4 *>(source);
            *reinterpret_cast<uint4 *>(at) = v;
            for (int e = 0; missing && e < left; ++e)
                at[e] = source[e];
#endif
        } else {
            for (int e = 0; e < 8; ++e)
                at[e] = e < left ? source[e] : T(0.f);
        }
    }
}

template <class C, bool ALIGNED>
__global__ __launch_bounds__(C::THREADS, 1) void wmma_kernel(Problem p, const typename C::T *a,
                                                             const typename C::T *b,
                                                             typename C::T *c, int group) {
    using T = typename C::T;
    extern __shared__ __align__(128) unsigned char shared[];
    T *const tiles = reinterpret_cast<T *>(shared);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    // Blocks of `group` rows of tiles run along N together, so that they share B in L2.
    const int tiles_m = (p.m + C::BM - 1) / C::BM, tiles_n = (p.n + C::BN - 1) / C::BN;
    const int first = blockIdx.x / (group * tiles_n) * group,
              inside = blockIdx.x % (group * tiles_n);
    const int height = min(group, tiles_m - first);
    const int row0 = (first + inside % height) * C::BM, col0 = inside / height * C::BN;
    const int wm = warp / (C::BN / C::WN) * C::WM, wn = warp % (C::BN / C::WN) * C::WN;
    a += blockIdx.z * p.stride_a, b += blockIdx.z * p.stride_b, c += blockIdx.z * p.stride_c;

    auto load = [&](int stage, int k0) {
        T *sa = tiles + stage * (C::A_SIZE + C::B_SIZE), *sb = sa + C::A_SIZE;
        load_tile<C::A_ROWS, C::A_COLS, C::THREADS, ALIGNED>(
            sa, a, p.lda, C::A_KM ? k0 : row0, C::A_KM ? row0 : k0, C::A_KM ? p.k : p.m,
            C::A_KM ? p.m : p.k);
        load_tile<C::B_ROWS, C::B_COLS, C::THREADS, ALIGNED>(
            sb, b, p.ldb, C::B_NK ? col0 : k0, C::B_NK ? k0 : col0, C::B_NK ? p.n : p.k,
            C::B_NK ? p.k : p.n);
    };
    using LayoutA = std::conditional_t<C::A_KM, wmma::col_major, wmma::row_major>;
    using LayoutB = std::conditional_t<C::B_NK, wmma::col_major, wmma::row_major>;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[C::WM / 16][C::WN / 16];
    for (auto &row : sum)
        for (auto &s : row)
            wmma::fill_fragment(s, 0.f);
    const int steps = (p.k + C::BK - 1) / C::BK;
    for (int s = 0; s < C::STAGES - 1; ++s) {
        if (s < steps)
            load(s, s * C::BK);
        __pipeline_commit();
    }
    for (int step = 0; step < steps; ++step) {
        __pipeline_wait_prior(C::STAGES - 2);
        __syncthreads();
        const int ahead = step + C::STAGES - 1;
        if (ahead < steps)
            load(ahead % C::STAGES, ahead * C::BK);
        __pipeline_commit();
        const T *sa = tiles + step % C::STAGES * (C::A_SIZE + C::B_SIZE), *sb = sa + C::A_SIZE;
#pragma unroll
        for (int kk = 0; kk < C::BK; kk += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, T, LayoutA> fa[C::WM / 16];
#pragma unroll
            for (int i = 0; i < C::WM / 16; ++i)
                wmma::load_matrix_sync(fa[i],
                                       C::A_KM ? sa + kk * (C::BM + C::PAD) + wm + 16 * i
                                               : sa + (wm + 16 * i) * (C::BK + C::PAD) + kk,
                                       C::A_COLS + C::PAD);
#pragma unroll
            for (int j = 0; j < C::WN / 16; ++j) {
                wmma::fragment<wmma::matrix_b, 16, 16, 16, T, LayoutB> fb;
                wmma::load_matrix_sync(fb,
                                       C::B_NK ? sb + (wn + 16 * j) * (C::BK + C::PAD) + kk
                                               : sb + kk * (C::BN + C::PAD) + wn + 16 * j,
                                       C::B_COLS + C::PAD);
#pragma unroll
                for (int i = 0; i < C::WM / 16; ++i)
                    wmma::mma_sync(sum[i][j], fa[i], fb, sum[i][j]);
            }
        }
    }
    __pipeline_wait_prior(0);
    __syncthreads();
    float *const mine = reinterpret_cast<float *>(shared) + warp * 16 * 20;
    const bool pairs =
        p.ldc % 2 == 0 && p.stride_c % 2 == 0 && reinterpret_cast<uintptr_t>(c) % 4 == 0;
#pragma unroll
    for (int i = 0; i < C::WM / 16; ++i)
#pragma unroll
        for (int j = 0; j < C::WN / 16; ++j) {
            wmma::store_matrix_sync(mine, sum[i][j], 20, wmma::mem_row_major);
            __syncwarp();
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int r = e * 4 + lane / 8, q = lane % 8 * 2;
                const int row = row0 + wm + 16 * i + r, col = col0 + wn + 16 * j + q;
                if (row >= p.m || col >= p.n)
                    continue;
                T *at = c + row * p.ldc + col;
                const bool two = col + 1 < p.n;
                float x = p.alpha * mine[r * 20 + q], y = p.alpha * mine[r * 20 + q + 1];
                if (p.beta != 0) {
                    x += p.beta * static_cast<float>(at[0]);
                    y += two ? p.beta * static_cast<float>(at[1]) : 0.f;
                }
                const T both[2] = {T(x), T(y)};
                if (pairs && two) {
                    *reinterpret_cast<uint32_t *>(at) = *reinterpret_cast<const uint32_t *>(both);
                } else {
                    at[0] = both[0];
                    if (two)
                        at[1] = both[1];
                }
            }
            __syncwarp();
        }
}

template <class C, bool ALIGNED>
cudaError_t launch(const Problem &p, const Operands &o, cudaStream_t stream) {
    using T = typename C::T;
    const auto kernel = wmma_kernel<C, ALIGNED>;
    const cudaError_t status =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, C::SHARED);
    if (status != cudaSuccess)
        return status;
    const dim3 grid(ceil_div(p.m, C::BM) * ceil_div(p.n, C::BN), 1, p.batch);
    kernel<<<grid, C::THREADS, C::SHARED, stream>>>(
        p, static_cast<const T *>(o.a), static_cast<const T *>(o.b), static_cast<T *>(o.c), 8);
    return cudaGetLastError();
}

template <class T, bool A_KM, bool B_NK, int... V>
cudaError_t by_alignment(const Problem &p, const Operands &o, cudaStream_t stream) {
    if (p.aligned_a() && p.aligned_b() && aligned16(o.a) && aligned16(o.b))
        return launch<Config<T, V..., A_KM, B_NK>, true>(p, o, stream);
    // Element by element: a smaller tile leaves registers for the addresses.
    return launch<Config<T, 128, 128, 32, 64, 32, 3, A_KM, B_NK>, false>(p, o, stream);
}

template <class T, int... V>
cudaError_t by_layout(const Problem &p, const Operands &o, cudaStream_t stream) {
    if (p.a_km)
        return p.b_nk ? by_alignment<T, true, true, V...>(p, o, stream)
                      : by_alignment<T, true, false, V...>(p, o, stream);
    return p.b_nk ? by_alignment<T, false, true, V...>(p, o, stream)
                  : by_alignment<T, false, false, V...>(p, o, stream);
}

template <int BM, int BN, int BK, int WM, int WN, int STAGES> Candidate candidate() {
    char name[80];
    snprintf(name, sizeof name, "wmma:%dx%dx%d-w%dx%d-s%d", BM, BN, BK, WM, WN, STAGES);
    return {name, [](const Problem &) { return true; }, [](const Problem &) { return size_t(0); },
            [](const Problem &p, const Operands &o, cudaStream_t stream) {
                return p.bf16 ? by_layout<__nv_bfloat16, BM, BN, BK, WM, WN, STAGES>(p, o, stream)
                              : by_layout<__half, BM, BN, BK, WM, WN, STAGES>(p, o, stream);
            }};
}

const Register CANDIDATES[] = {
    Register(candidate<128, 256, 32, 64, 64, 4>()),
    Register(candidate<128, 256, 64, 64, 64, 3>()),
    Register(candidate<256, 128, 64, 64, 64, 3>()),
};

} // namespace
