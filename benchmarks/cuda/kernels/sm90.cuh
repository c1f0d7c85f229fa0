// GEMM for Hopper: the copy engine fills a ring of tiles in shared memory, warpgroups multiply them
// by wgmma, and what is done leaves through shared memory. Persistent; every number is a tunable.
#pragma once
#include "../realign.cuh"
#include "ptx.cuh"
#include "wgmma.cuh"
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace sm90 {

struct Args {
    int m, n, k, batch; // of the product as computed: swapped where `swap`
    int tiles_m, tiles_n, group, clusters;
    float alpha, beta;
    void *c;
    int64_t ldc, stride_c;
    int early, prefetch;
};

enum Store { BY_ENGINE, FROM_REGISTERS, REALIGNED };

// The tunables: the tile BM x BN of C of a block; STAGES tiles of 64 of K in the ring; CM x CN
// consumer warpgroups; CLM x CLN blocks of a cluster, which share what they load, or SPLIT blocks
// of a cluster along K, whose sums are added at the end; PINGPONG: consumers take whole tiles in
// turn; SWAP: the product is C' = B' A'; STORE: how C leaves (REALIGNED: through shared memory to
// rows of any pitch); PERSISTENT: a block takes many tiles.
template <bool BF16_, bool A_KM_, bool B_NK_, int BM_, int BN_, int STAGES_, int CM_, int CN_,
          int CLM_, int CLN_, int SPLIT_, bool PINGPONG_, bool SWAP_, int STORE_, bool PERSISTENT_>
struct Config {
    static constexpr bool BF16 = BF16_, A_KM = A_KM_, B_NK = B_NK_, PINGPONG = PINGPONG_,
                          SWAP = SWAP_, DIRECT = STORE_ == FROM_REGISTERS,
                          ENGINE = STORE_ == BY_ENGINE, PERSISTENT = PERSISTENT_ && SPLIT_ == 1;
    static constexpr int BM = BM_, BN = BN_, BK = 64, STAGES = STAGES_, CM = CM_, CN = CN_,
                         CLM = CLM_, CLN = CLN_, SPLIT = SPLIT_;
    static constexpr int CONSUMERS = CM * CN, THREADS = 128 * (CONSUMERS + 1);
    static constexpr int CLUSTER = SPLIT > 1 ? SPLIT : CLM *CLN;
    static constexpr int WGM = PINGPONG ? BM : BM / CM, WGN = PINGPONG ? BN : BN / CN;
    static constexpr int BLOCKS = WGM / 64; // wgmma's M is 64
    static constexpr int A_BYTES = BM * 128, B_BYTES = BN * 128, STAGE_BYTES = A_BYTES + B_BYTES;
    // C leaves in pieces of 64 rows x PIECE columns, two buffers a warpgroup.
    static constexpr int PIECE = WGN % 64 == 0 ? 64 : WGN % 32 == 0 ? 32 : 16;
    static constexpr int PIECE_BYTES = 64 * PIECE * 2;
    static constexpr int C_BYTES = DIRECT ? 0 : CONSUMERS * 2 * PIECE_BYTES;
    static constexpr int RING = STAGES * STAGE_BYTES, SUMS = SPLIT > 1 ? BM *BN * 4 : 0;
    static constexpr int SHARED = 1024 + (RING > SUMS ? RING : SUMS) + C_BYTES + STAGES * 16;
    // Two blocks fit where there is one consumer and little memory: the next kernel's first blocks
    // then wait beside this one's last.
    static constexpr int RESIDENT =
        CONSUMERS == 1 && BLOCKS * WGN <= 128 && SHARED <= 115000 ? 2 : 1;
    static constexpr int SLICE_M = BM / CLN, SLICE_N = BN / CLM; // what one block loads and shares
    static constexpr int BOX_A = A_KM ? 64 : SLICE_M > 256 ? SLICE_M / 2 : SLICE_M;
    static constexpr int BOX_B = !B_NK ? 64 : SLICE_N > 256 ? SLICE_N / 2 : SLICE_N;
    static constexpr int FEW = CONSUMERS == 3 ? 32 : BLOCKS * WGN > 384 ? 24 : 40;
    static constexpr int MANY = CONSUMERS == 3 ? 160 : CONSUMERS == 2 ? (FEW == 24 ? 240 : 232) : 0;
    static constexpr bool POSSIBLE = SHARED <= 232448 && (DIRECT || (SPLIT == 1 && !SWAP)) &&
                                     (PINGPONG || (BM % (64 * CM) == 0 && BN % (16 * CN) == 0)) &&
                                     (!A_KM || SLICE_M % 64 == 0) &&
                                     (B_NK || (SLICE_N % 64 == 0 && WGN % 64 == 0)) &&
                                     SLICE_M % 8 == 0 && SLICE_N % 8 == 0;
};

template <class C> struct Fragment {
    float sum[C::BLOCKS][C::WGN / 2];
};

__device__ __forceinline__ uint64_t descriptor(uint32_t address, bool along_k) {
    // 128-byte swizzle; 8 rows are 1024 bytes apart. Along M or N, 64 elements are BK rows apart.
    const uint64_t leading = along_k ? 1 : 64 * 128 >> 4;
    return uint64_t(1) << 62 | uint64_t(1024 >> 4) << 32 | leading << 16 |
           uint64_t((address & 0x3ffff) >> 4);
}

template <bool BF16> __device__ __forceinline__ uint32_t pack(float low, float high) {
    uint32_t v;
    if constexpr (BF16)
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(high), "f"(low));
    else
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(high), "f"(low));
    return v;
}
template <bool BF16> __device__ __forceinline__ float unpack(uint16_t bits) {
    if constexpr (BF16)
        return __uint_as_float(uint32_t(bits) << 16);
    else
        return __half2float(__ushort_as_half(bits));
}

// Where the tile of a number is, in clusters of tiles: groups of `group` rows run along N together.
struct Place {
    int m, n, batch;
};
__device__ __forceinline__ Place place(const Args &p, int tile) {
    const int each = p.tiles_m * p.tiles_n, batch = tile / each;
    tile -= batch * each;
    const int a_group = p.group * p.tiles_n, first = tile / a_group * p.group;
    const int inside = tile % a_group, height = min(p.group, p.tiles_m - first);
    return {first + inside % height, inside / height, batch};
}

// One pair of neighbours of the product's row to C, as C is stored.
template <class C>
__device__ __forceinline__ void put(const Args &p, int batch, int row, int col, float x, float y) {
    if (row >= p.m || col >= p.n)
        return;
    uint16_t *c = static_cast<uint16_t *>(p.c) + batch * p.stride_c;
    const bool two = col + 1 < p.n;
    uint16_t *at = C::SWAP ? c + col * p.ldc + row : c + row * p.ldc + col;
    uint16_t *next = C::SWAP ? at + p.ldc : at + 1;
    x *= p.alpha, y *= p.alpha;
    if (p.beta != 0) {
        x += p.beta * unpack<C::BF16>(*at);
        y += two ? p.beta * unpack<C::BF16>(*next) : 0.f;
    }
    const uint32_t v = pack<C::BF16>(x, y);
    if (!C::SWAP && two && reinterpret_cast<uintptr_t>(at) % 4 == 0) {
        *reinterpret_cast<uint32_t *>(at) = v;
        return;
    }
    *at = static_cast<uint16_t>(v);
    if (two)
        *next = static_cast<uint16_t>(v >> 16);
}

template <class C>
__device__ __forceinline__ void store_direct(const Args &p, Fragment<C> &f, int batch, int row0,
                                             int col0) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
#pragma unroll
    for (int i = 0; i < C::BLOCKS; ++i)
#pragma unroll
        for (int j = 0; j < C::WGN / 8; ++j) {
            const int row = row0 + 64 * i + 16 * warp + lane / 4, col = col0 + 8 * j + lane % 4 * 2;
            put<C>(p, batch, row, col, f.sum[i][4 * j], f.sum[i][4 * j + 1]);
            put<C>(p, batch, row + 8, col, f.sum[i][4 * j + 2], f.sum[i][4 * j + 3]);
        }
}

// A piece from shared memory to rows of any pitch: whole words of 16 bytes by half of 16 lanes, the
// elements around them by the other half.
template <class C>
__device__ __forceinline__ void write_piece(const Args &p, uint32_t from, int batch, int row0,
                                            int col) {
    constexpr int ROW = C::PIECE * 2, MASK = ROW / 16 - 1;
    const int lane = threadIdx.x % 16, columns = min(C::PIECE, p.n - col);
    auto at = [&](int r, int chunk) {
        return from + r * ROW + (chunk ^ (r * ROW >> 7 & MASK)) * 16;
    };
#pragma unroll 1
    for (int r = threadIdx.x % 128 / 16; r < 64 && row0 + r < p.m && columns > 0; r += 8) {
        uint16_t *to = static_cast<uint16_t *>(p.c) + batch * p.stride_c + (row0 + r) * p.ldc + col;
        const int lead = min(static_cast<int>(-reinterpret_cast<intptr_t>(to) & 15) / 2, columns);
        const int words = (columns - lead) / 8, single = columns - 8 * words;
        if (lane < words) {
            const int element = lead + 8 * lane, chunk = element / 8, shift = element % 8;
            uint4 low = ptx::load_shared(at(r, chunk)), high = low;
            if (shift)
                high = ptx::load_shared(at(r, chunk + 1));
            *reinterpret_cast<uint4 *>(to + element) = realign::shifted(low, high, shift);
        }
        for (int i = lane - 8; i >= 0 && i < single; i += 8) {
            const int element = i < lead ? i : i + 8 * words;
            to[element] = ptx::load_shared_element(at(r, element / 8) + element % 8 * 2);
        }
    }
}

// Through shared memory, swizzled as the copy engine wants it; the wait is for the piece before the
// last, so that a tile's last stores run beside the next tile.
template <class C>
__device__ __forceinline__ void store_pieces(const Args &p, const CUtensorMap *map, Fragment<C> &f,
                                             uint32_t buffers, int &buffer, int barrier, int batch,
                                             int row0, int col0) {
    constexpr int ROW = C::PIECE * 2, MASK = ROW / 16 - 1;
    const int thread = ptx::thread() % 128;
    const int row = thread / 32 * 16 + thread % 16, half = thread % 32 / 16;
#pragma unroll
    for (int i = 0; i < C::BLOCKS; ++i)
#pragma unroll
        for (int piece = 0; piece < C::WGN / C::PIECE; ++piece) {
            const uint32_t to = buffers + buffer * C::PIECE_BYTES;
            buffer ^= 1;
            if constexpr (C::ENGINE) {
                if (threadIdx.x % 128 == 0)
                    ptx::stores_read<1>();
                ptx::named_barrier(barrier, 128);
            }
#pragma unroll
            for (int g = 0; g < C::PIECE / 16; ++g) {
                float *s = f.sum[i] + (piece * C::PIECE + 16 * g) / 2;
                if (p.beta != 0) {
                    const uint16_t *c = static_cast<const uint16_t *>(p.c) + batch * p.stride_c;
                    // Read anew, so that no register holds it through the products.
                    const int thread = ptx::thread() % 128, in_warp = thread % 32;
                    const int r0 = row0 + 64 * i + thread / 32 * 16 + in_warp / 4;
                    const int c0 = col0 + piece * C::PIECE + 16 * g + in_warp % 4 * 2;
#pragma unroll
                    for (int e = 0; e < 8; ++e) {
                        const int r = r0 + (e & 2) * 4, q = c0 + (e & 4) * 2 + (e & 1);
                        s[e] *= p.alpha;
                        if (r < p.m && q < p.n)
                            s[e] += p.beta * unpack<C::BF16>(c[r * p.ldc + q]);
                    }
                } else {
#pragma unroll
                    for (int e = 0; e < 8; ++e)
                        s[e] *= p.alpha;
                }
                const uint32_t swizzled = (2 * g + half) ^ (row * ROW >> 7 & MASK);
                ptx::store_matrix(to + row * ROW + swizzled * 16, pack<C::BF16>(s[0], s[1]),
                                  pack<C::BF16>(s[2], s[3]), pack<C::BF16>(s[4], s[5]),
                                  pack<C::BF16>(s[6], s[7]));
            }
            if constexpr (!C::ENGINE) {
                // One barrier a piece: whoever is past it has read the buffer before the last.
                ptx::named_barrier(barrier, 128);
                write_piece<C>(p, to, batch, row0 + 64 * i, col0 + piece * C::PIECE);
                continue;
            }
            ptx::fence_async();
            ptx::named_barrier(barrier, 128);
            if (threadIdx.x % 128 == 0)
                ptx::store(map, to, col0 + piece * C::PIECE, row0 + 64 * i, batch);
        }
}

// Every block of the cluster holds sums over its part of K: each adds up a share of them, in order.
template <class C>
__device__ __forceinline__ void add_up(const Args &p, uint32_t shared, int warpgroup, int batch,
                                       int row0, int col0) {
    constexpr int PAIRS = C::BLOCKS * C::WGN / 4;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    const uint32_t mine = shared + (warpgroup * PAIRS * 128 + threadIdx.x % 128) * 8;
#pragma unroll 4
    for (int pair = ptx::cluster_rank(); pair < PAIRS; pair += C::SPLIT) {
        float2 sum = make_float2(0, 0);
#pragma unroll
        for (int rank = 0; rank < C::SPLIT; ++rank) {
            const float2 part = ptx::load_remote(mine + pair * 1024, rank);
            sum.x += part.x, sum.y += part.y;
        }
        const int i = pair / (C::WGN / 4), j = pair % (C::WGN / 4);
        put<C>(p, batch, row0 + 64 * i + 16 * warp + lane / 4 + j % 2 * 8,
               col0 + j / 2 * 8 + lane % 4 * 2, sum.x, sum.y);
    }
}

template <class C>
__global__ __launch_bounds__(C::THREADS,
                             C::RESIDENT) void gemm(const __grid_constant__ CUtensorMap map_a,
                                                    const __grid_constant__ CUtensorMap map_b,
                                                    const __grid_constant__ CUtensorMap map_c,
                                                    const __grid_constant__ Args p) {
    extern __shared__ unsigned char raw[];
    const uint32_t ring = (ptx::shared(raw) + 1023) & ~1023u;
    constexpr int BODY = C::RING > C::SUMS ? C::RING : C::SUMS;
    const uint32_t c_buffers = ring + BODY, full = c_buffers + C::C_BYTES,
                   empty = full + 8 * C::STAGES;
    const int warpgroup = threadIdx.x / 128;
    if (threadIdx.x == 0) {
        for (int s = 0; s < C::STAGES; ++s) {
            ptx::init(full + 8 * s, 1);
            // Whoever fills a stage here has to know that its readers are done: in every block
            // that shares loads with this one.
            ptx::init(empty + 8 * s,
                      (C::PINGPONG ? 1 : C::CONSUMERS) * (C::SPLIT > 1 ? 1 : C::CLUSTER));
        }
        ptx::fence_init();
        ptx::prefetch(&map_a), ptx::prefetch(&map_b), ptx::prefetch(&map_c);
    }
    if constexpr (C::CLUSTER > 1)
        ptx::cluster_barrier();
    else
        __syncthreads();
    // The next kernel may take its place as soon as this one has: it waits as this one does.
    if (p.early)
        ptx::let_next_begin();
    const int rank = C::CLUSTER > 1 ? ptx::cluster_rank() : 0;
    const int rank_m = C::SPLIT > 1 ? 0 : rank % C::CLM, rank_n = C::SPLIT > 1 ? 0 : rank / C::CLM;
    const int first = blockIdx.x / C::CLUSTER, step = gridDim.x / C::CLUSTER;
    const int all_steps = (p.k + C::BK - 1) / C::BK;
    const int k_begin = C::SPLIT > 1 ? rank * all_steps / C::SPLIT : 0;
    const int k_end = C::SPLIT > 1 ? (rank + 1) * all_steps / C::SPLIT : all_steps;

    // What the first loads read is fetched into L2, where every earlier write is seen, before the
    // wait: inputs need not come from memory in a row with the kernel before.
    if (threadIdx.x == 0 && p.prefetch && (C::CLUSTER == 1 || C::SPLIT > 1)) {
        const Place at = place(p, first);
        for (int k = k_begin; k < min(k_begin + C::STAGES, k_end); ++k) {
            const int row = at.m * C::BM, col = at.n * C::BN;
            for (int i = 0; i < C::SLICE_M; i += C::BOX_A)
                ptx::prefetch(&map_a, C::A_KM ? row + i : k * C::BK, C::A_KM ? k * C::BK : row + i,
                              at.batch);
            for (int i = 0; i < C::SLICE_N; i += C::BOX_B)
                ptx::prefetch(&map_b, C::B_NK ? k * C::BK : col + i, C::B_NK ? col + i : k * C::BK,
                              at.batch);
        }
    }
    __syncwarp();
    ptx::wait_for_previous();
    if (!p.early)
        ptx::let_next_begin();

    if (warpgroup == 0) {
        if constexpr (C::MANY > 0)
            ptx::fewer_registers<C::FEW>();
        if (threadIdx.x == 0) {
            uint16_t mask_a = 0, mask_b = 0;
            for (int i = 0; i < C::CLN; ++i)
                mask_a |= 1 << (rank_m + C::CLM * i);
            for (int i = 0; i < C::CLM; ++i)
                mask_b |= 1 << (i + C::CLM * rank_n);
            int stage = 0, phase = 1;
            for (int tile = first; tile < p.clusters; tile += step) {
                const Place at = place(p, tile);
                const int row =
                    (at.m * C::CLM + rank_m) * C::BM + rank_n * C::SLICE_M * (C::CLN > 1);
                const int col =
                    (at.n * C::CLN + rank_n) * C::BN + rank_m * C::SLICE_N * (C::CLM > 1);
                for (int k = k_begin; k < k_end; ++k) {
                    const uint32_t ready = full + 8 * stage;
                    const uint32_t to_a =
                        ring + stage * C::STAGE_BYTES + rank_n * C::SLICE_M * 128 * (C::CLN > 1);
                    const uint32_t to_b = ring + stage * C::STAGE_BYTES + C::A_BYTES +
                                          rank_m * C::SLICE_N * 128 * (C::CLM > 1);
                    ptx::wait(empty + 8 * stage, phase);
                    ptx::expect(ready, C::STAGE_BYTES);
#pragma unroll
                    for (int i = 0; i < C::SLICE_M; i += C::BOX_A) {
                        const int x = C::A_KM ? row + i : k * C::BK;
                        const int y = C::A_KM ? k * C::BK : row + i;
                        if constexpr (C::CLN > 1)
                            ptx::load_multicast(to_a + i * 128, &map_a, ready, x, y, at.batch,
                                                mask_a);
                        else
                            ptx::load(to_a + i * 128, &map_a, ready, x, y, at.batch);
                    }
#pragma unroll
                    for (int i = 0; i < C::SLICE_N; i += C::BOX_B) {
                        const int x = C::B_NK ? k * C::BK : col + i;
                        const int y = C::B_NK ? col + i : k * C::BK;
                        if constexpr (C::CLM > 1)
                            ptx::load_multicast(to_b + i * 128, &map_b, ready, x, y, at.batch,
                                                mask_b);
                        else
                            ptx::load(to_b + i * 128, &map_b, ready, x, y, at.batch);
                    }
                    if (++stage == C::STAGES)
                        stage = 0, phase ^= 1;
                }
            }
        }
    } else {
        if constexpr (C::MANY > 0)
            ptx::more_registers<C::MANY>();
        const int consumer = warpgroup - 1;
        const int wm = C::PINGPONG ? 0 : consumer % C::CM * C::WGM;
        const int wn = C::PINGPONG ? 0 : consumer / C::CM * C::WGN;
        // Along M or N a chunk of 64 elements is BK rows of 128 bytes: as far as 64 rows along K.
        const uint32_t a0 = ring + wm * 128, b0 = ring + C::A_BYTES + wn * 128;
        const uint32_t my_buffers = c_buffers + consumer * 2 * C::PIECE_BYTES;
        int stage = 0, phase = 0, buffer = 0;
        Fragment<C> f;
        if (C::PINGPONG && consumer == 1)
            ptx::named_arrive(8, 256);
        auto skip = [&](int steps) {
            stage += steps;
            phase ^= stage / C::STAGES & 1;
            stage %= C::STAGES;
        };
        auto release = [&](int s) {
            if constexpr (C::CLUSTER > 1 && C::SPLIT == 1) {
                if (threadIdx.x % 128 < C::CLUSTER)
                    ptx::arrive_at(empty + 8 * s, threadIdx.x % 128);
            } else {
                if (threadIdx.x % 128 == 0)
                    ptx::arrive(empty + 8 * s);
            }
        };
        const int mine = C::PINGPONG ? consumer : 0, takers = C::PINGPONG ? C::CONSUMERS : 1;
        skip(mine * (k_end - k_begin));
        for (int tile = first + mine * step; tile < p.clusters; tile += takers * step) {
            const Place at = place(p, tile);
            // Parity tells a phase from the next one only: no waiting for a stage before the other
            // consumer has seen all of its own.
            if (C::PINGPONG)
                ptx::named_barrier(8 + consumer, 256);
            int last = -1;
            if (C::SPLIT > 1 && k_begin == k_end) {
#pragma unroll
                for (int i = 0; i < C::BLOCKS; ++i)
#pragma unroll
                    for (int j = 0; j < C::WGN / 2; ++j)
                        f.sum[i][j] = 0;
            }
            for (int k = k_begin; k < k_end; ++k) {
                ptx::wait(full + 8 * stage, phase);
                const uint64_t a = descriptor(a0 + stage * C::STAGE_BYTES, !C::A_KM);
                const uint64_t b = descriptor(b0 + stage * C::STAGE_BYTES, C::B_NK);
                ptx::wgmma_fence();
#pragma unroll
                for (int kk = 0; kk < C::BK / 16; ++kk)
#pragma unroll
                    for (int i = 0; i < C::BLOCKS; ++i)
                        Wgmma<C::WGN, C::BF16, C::A_KM, !C::B_NK>::mma(
                            f.sum[i], a + i * 512 + kk * (C::A_KM ? 128 : 2),
                            b + kk * (C::B_NK ? 2 : 128), k > k_begin || kk > 0);
                ptx::wgmma_commit();
                // The stage before this one is free once its products are done: one group late, so
                // that the tensor cores always have work.
                ptx::wgmma_wait<(C::STAGES > 1)>();
                if (C::STAGES == 1)
                    last = stage;
                if (last >= 0)
                    release(last);
                last = C::STAGES == 1 ? -1 : stage;
                if (++stage == C::STAGES)
                    stage = 0, phase ^= 1;
            }
            if (C::PINGPONG && tile + step < p.clusters)
                ptx::named_arrive(8 + (consumer ^ 1), 256);
            ptx::wgmma_wait<0>();
            if (last >= 0)
                release(last);
            if (C::PINGPONG)
                skip(k_end - k_begin);
            const int row = (at.m * C::CLM + rank_m) * C::BM + wm;
            const int col = (at.n * C::CLN + rank_n) * C::BN + wn;
            if constexpr (C::SPLIT > 1) {
                constexpr int PAIRS = C::BLOCKS * C::WGN / 4;
                // Every stage has been read by all of this block before sums replace them.
                ptx::named_barrier(1, C::CONSUMERS * 128);
                const uint32_t mine = ring + (consumer * PAIRS * 128 + threadIdx.x % 128) * 8;
#pragma unroll
                for (int pair = 0; pair < PAIRS; ++pair) {
                    const float *s = f.sum[pair / (C::WGN / 4)] + pair % (C::WGN / 4) * 2;
                    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(mine + pair * 1024),
                                 "f"(s[0]), "f"(s[1])
                                 : "memory");
                }
            } else if constexpr (C::DIRECT) {
                store_direct<C>(p, f, at.batch, row, col);
            } else {
                store_pieces<C>(p, &map_c, f, my_buffers, buffer, 1 + consumer, at.batch, row, col);
            }
        }
        if (C::ENGINE && threadIdx.x % 128 == 0)
            ptx::stores_done();
    }
    __syncwarp();
    if constexpr (C::SPLIT > 1) {
        ptx::cluster_barrier();
        if (warpgroup > 0) {
            const Place at = place(p, first);
            const int consumer = warpgroup - 1;
            add_up<C>(p, ring, consumer, at.batch, at.m * C::BM + consumer % C::CM * C::WGM,
                      at.n * C::BN + consumer / C::CM * C::WGN);
        }
    }
    // No block leaves while another may write to its shared memory or read it.
    if constexpr (C::CLUSTER > 1)
        ptx::cluster_barrier();
}

} // namespace sm90
