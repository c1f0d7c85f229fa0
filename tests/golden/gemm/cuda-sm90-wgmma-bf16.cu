// gemm bf16 by wgmma
//
// TMA fills a ring of tiles in shared memory; warpgroups multiply them with wgmma; results leave through shared memory; persistent blocks compute many tiles
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
/* Arguments of a launch with tensor maps. m and n are those of the computed product, after a swap. */
struct Args {
    int m, n, k, batch;
    int tiles_m, tiles_n, group, clusters; /* in clusters; group: rows of clusters that run along N together */
    float alpha, beta;
    uint16_t *c;
    int64_t ldc, stride_c;
    int whole, rest, deep; /* The last `rest` clusters of tiles, after `whole` others, come in parts of `deep` steps of k. */
    float *sums; /* of these, which another kernel adds up (sums.h.j2) */
    int next; /* the next launch may begin: 0 at once, 1 after the previous one ended, 2 after the last load */
    int ahead_a, ahead_b; /* steps of K whose inputs are prefetched into L2 before the previous launch ends */
    uint64_t keep_a, keep_b, keep_c; /* L2 cache policies of the operands */
    int general; /* beta is not 0, or there is an epilogue */
    struct Epilogue epilogue;
};
struct alignas(128) CUtensorMap {
    uint64_t opaque[16];
};

namespace {
constexpr int BK = 64; // of K a stage holds: 128 bytes, the longest row that is swizzled

typedef uint32_t Shared;
typedef uint32_t Barrier;
typedef uint64_t TileOfA;
typedef uint64_t TileOfB;

__device__ __forceinline__ uint32_t shared_address(const void *p) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ int thread_number() {
    int id;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(id));
    return id;
}

__device__ __forceinline__ void barrier_init(Barrier barrier, int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count));
}

__device__ __forceinline__ void barriers_visible() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void barrier_expect(Barrier barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void barrier_arrive_at(Barrier barrier, int cta) {
    asm volatile("{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [remote];\n}" ::"r"(barrier),
                 "r"(cta)
                 : "memory");
}

__device__ __forceinline__ void barrier_wait(Barrier barrier, int parity) {
    asm volatile("{\n.reg .pred done;\nagain:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@done bra.uni over;\nbra.uni again;\nover:\n}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

__device__ __forceinline__ void shared_written() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void named_barrier(int id, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

__device__ __forceinline__ uint32_t cluster_rank() {
    uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

__device__ __forceinline__ void cluster_barrier() {
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
}

__device__ __forceinline__ void cluster_ready() {
    asm volatile("barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
}

__device__ __forceinline__ int blocks_mask(int first, int step, int count) {
    int mask = 0;
    for (int i = 0; i < count; ++i)
        mask |= 1 << (first + step * i);
    return mask;
}

__device__ __forceinline__ void map_prefetch(const CUtensorMap *map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

__device__ __forceinline__ void tile_load(Shared to, const CUtensorMap *map, Barrier barrier, int x, int y, int z, uint64_t keep) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
                 "[%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "l"(keep)
                 : "memory");
}

__device__ __forceinline__ void tile_load_shared(Shared to, const CUtensorMap *map, Barrier barrier, int x, int y, int z, int mask) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "h"(static_cast<uint16_t>(mask))
                 : "memory");
}

__device__ __forceinline__ void tile_store(const CUtensorMap *map, Shared from, int x, int y, int z, uint64_t keep) {
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group.L2::cache_hint [%0, {%2, %3, %4}], [%1], %5;\n"
                 "cp.async.bulk.commit_group;" ::"l"(map),
                 "r"(from), "r"(x), "r"(y), "r"(z), "l"(keep)
                 : "memory");
}

template <int LEFT>
__device__ __forceinline__ void tile_stores_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(LEFT) : "memory");
}

__device__ __forceinline__ void tile_stores_done() {
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

__device__ __forceinline__ void matrix_store(Shared to, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to),
                 "r"(a), "r"(b), "r"(c), "r"(d)
                 : "memory");
}

__device__ __forceinline__ uint32_t pair_packed(float low, float high) {
    uint32_t v;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(high), "f"(low));
    return v;
}

__device__ __forceinline__ int flipped(int bit, int times) {
    return bit ^ (times & 1);
}

__device__ __forceinline__ int chunk_swizzled(int chunk, int line) {
    return chunk ^ line;
}

__device__ __forceinline__ float element_value(uint16_t bits) {
    return __uint_as_float(uint32_t(bits) << 16);
}

__device__ __forceinline__ TileOfA tile_of_a(Shared address) {
    const uint64_t leading = 1;
    return uint64_t(1) << 62 | uint64_t(64) << 32 | leading << 16 | uint64_t((address & 0x3ffff) >> 4);
}

__device__ __forceinline__ TileOfB tile_of_b(Shared address) {
    const uint64_t leading = 1;
    return uint64_t(1) << 62 | uint64_t(64) << 32 | leading << 16 |
           uint64_t((address & 0x3ffff) >> 4);
}

__device__ __forceinline__ void wgmma_begin() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmma(float *d, TileOfA a, int block, TileOfB b, int step, int keeps) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16"
                 " {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63,%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127},"
                 " %128, %129, p, 1, 1, 0, 0;\n}\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]), "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]), "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79]), "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]), "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]), "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]), "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]), "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]), "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])    
                 : "l"(a + block * 512 + step * 2),
                   "l"(b + step * 2), "r"(keeps));
}

__device__ __forceinline__ void wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int LEFT>
__device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}

template <int N>
__device__ __forceinline__ void registers_fewer() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}

template <int N>
__device__ __forceinline__ void registers_more() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}

__device__ __forceinline__ void previous_done() {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

__device__ __forceinline__ void next_may_begin() {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

// The position of a tile, in clusters of tiles: groups of `group` rows run along N together.
struct Place {
    int m, n, batch;
};
__device__ __forceinline__ Place place(const Args *p, int tile) {
    const int each = p->tiles_m * p->tiles_n, batch = tile / each;
    tile -= batch * each;
    const int a_group = p->group * p->tiles_n, first = tile / a_group * p->group;
    const int inside = tile % a_group, height = min(p->group, p->tiles_m - first);
    return {first + inside % height, inside / height, batch};
}
__device__ __forceinline__ int tile_row(const Args *p, int tile, int rank) {
    return (place(p, tile).m * 2 + rank) * 128;
}
__device__ __forceinline__ int tile_col(const Args *p, int tile, int rank) {
    return (place(p, tile).n * 1 + rank) * 256;
}
__device__ __forceinline__ int tile_batch(const Args *p, int tile) {
    return place(p, tile).batch;
}
__device__ __forceinline__ void block(const Args *launch, const CUtensorMap *map_a, const CUtensorMap *map_b, const CUtensorMap *map_c, int m, int n,
           int batch, float alpha, float beta, uint16_t *c, size_t ldc, size_t stride_c, int clusters, int first, int step,
           int k_begin, int k_end, int next, bool ahead, int ahead_a, int ahead_b, uint64_t keep_a, uint64_t keep_b, uint64_t keep_c,
           unsigned thread, int rank, int parts, Shared ring, Shared pieces, Barrier full, Barrier empty, bool general,
           const Epilogue *epilogue) {
    const int warpgroup = thread / 128;
    if (thread == 0) {
        for (int s = 0; s < 4; ++s) {
            barrier_init(full + 8 * s, 1);
            // A stage may be filled again when its readers are done, in all blocks that share loads with this one.
            barrier_init(empty + 8 * s, 4);
        }
        barriers_visible();
        map_prefetch(map_a), map_prefetch(map_b), map_prefetch(map_c);
    }
    cluster_ready();
    // The next kernel may start as soon as this one runs: it waits for its predecessor as this one does.
    if (next == 0)
        next_may_begin();
    const int rank_m = rank % 2;
    const int rank_n = 0;

    __syncwarp();
    previous_done();
    if (next == 1)
        next_may_begin();

    if (warpgroup == 0) {
        registers_fewer<40>();
        if (thread == 0) {
            const int mask_a = blocks_mask(rank_m, 2, 1);
            const int mask_b = blocks_mask(2 * rank_n, 1, 2);
            int stage = 0, phase = 1;
            for (int tile = first; tile < clusters; tile += step) {
                const int row = tile_row(launch, tile, rank_m);
                const int col = tile_col(launch, tile, rank_n) + rank_m * 128;
                const int batch_of = tile_batch(launch, tile);
                for (int k = k_begin; k < k_end; ++k) {
                    const Barrier ready = full + 8 * stage;
                    const Shared to_a = ring + stage * 49152;
                    const Shared to_b = ring + stage * 49152 + 16384 + rank_m * 16384;
                    barrier_wait(empty + 8 * stage, phase);
                    barrier_expect(ready, 49152);
                    #pragma unroll
                    for (int i = 0; i < 128; i += 128) {
                        const int x = k * 64;
                        const int y = row + i;
                        tile_load(to_a + i * 128, map_a, ready, x, y, batch_of, keep_a);
                    }
#pragma unroll
                    for (int i = 0; i < 128; i += 128) {
                        const int x = k * 64;
                        const int y = col + i;
                        tile_load_shared(to_b + i * 128, map_b, ready, x, y, batch_of, mask_b);
                    }
++stage;
                    if (stage == 4)
                        stage = 0, phase = flipped(phase, 1);
                }
            }
            if (next == 2)
                next_may_begin();
        }
    } else {
        registers_more<232>();
        const int consumer = warpgroup - 1;
        const int wm = consumer % 2 * 64;
        const int wn = 0;
        // Along M or N, a chunk of 64 elements has 64 rows of 128 bytes, the same size as 64 rows along K.
        const Shared a0 = ring + wm * 128, b0 = ring + 16384 + wn * 128;
        const Shared my_pieces = pieces + consumer * 16384;
        int buffer = 0;
        int stage = 0, phase = 0;
        float sum[128] = {0};
        const int mine = 0;
        for (int tile = first + mine * step; tile < clusters; tile += step) {
            int last = -1;
            for (int k = k_begin; k < k_end; ++k) {
                barrier_wait(full + 8 * stage, phase);
                const TileOfA a = tile_of_a(a0 + stage * 49152);
                const TileOfB b = tile_of_b(b0 + stage * 49152);
                wgmma_begin();
#pragma unroll
                for (int kk = 0; kk < 4; ++kk)
#pragma unroll
                    for (int i = 0; i < 1; ++i)
                        wgmma(sum + 128 * i, a, i, b, kk, k > k_begin || kk > 0);
                wgmma_commit();
                // The previous stage is released when its products are done, one group late, so that the tensor cores
                // always have work.
                wgmma_wait<1>();
                if (last >= 0) {
                                    if (thread % 128 < 2)
                    barrier_arrive_at(empty + 8 * last, thread % 128);
}
                last = stage;
                ++stage;
                if (stage == 4)
                    stage = 0, phase = flipped(phase, 1);
            }
            wgmma_wait<0>();
            if (last >= 0) {
                                if (thread % 128 < 2)
                    barrier_arrive_at(empty + 8 * last, thread % 128);
}
            const int row = tile_row(launch, tile, rank_m) + wm, col0 = tile_col(launch, tile, rank_n) + wn;
            const int batch_of = tile_batch(launch, tile);
                        const int its = thread_number() % 128;
            const int its_row = its / 32 * 16 + its % 16, half = its % 32 / 16;
#pragma unroll
            for (int i = 0; i < 1; ++i)
#pragma unroll
                for (int piece = 0; piece < 4; ++piece) {
                    const Shared to = my_pieces + buffer * 8192;
                    buffer = flipped(buffer, 1);
                    if (thread % 128 == 0)
                        tile_stores_read<1>();
                    named_barrier(1 + consumer, 128);
#pragma unroll
                    for (int g = 0; g < 4; ++g) {
                        float *const s = sum + 128 * i + 32 * piece + 8 * g;
                        if (beta != 0) {
                            // Computed again here, so that no register holds it during the products.
                            const int again = thread_number() % 128, in_warp = again % 32;
                            const int r0 = row + 64 * i + again / 32 * 16 + in_warp / 4;
                            const int c0 = col0 + 64 * piece + 16 * g + in_warp % 4 * 2;
#pragma unroll
                            for (int right = 0; right < 2; ++right)
#pragma unroll
                                for (int below = 0; below < 2; ++below)
#pragma unroll
                                    for (int next_to = 0; next_to < 2; ++next_to) {
                                        const int e = 4 * right + 2 * below + next_to;
                                        const int r = r0 + 8 * below, q = c0 + 8 * right + next_to;
                                        s[e] *= alpha;
                                        if (r < m && q < n)
                                            s[e] += beta * element_value(c[batch_of * stride_c + r * ldc + q]);
                                    }
                        } else {
#pragma unroll
                            for (int e = 0; e < 8; ++e)
                                s[e] *= alpha;
                        }
                        const int swizzled = chunk_swizzled(2 * g + half, its_row * 128 / 128 % 8);
                        matrix_store(to + its_row * 128 + swizzled * 16, pair_packed(s[0], s[1]), pair_packed(s[2], s[3]),
                                     pair_packed(s[4], s[5]), pair_packed(s[6], s[7]));
                    }
                    shared_written();
                    named_barrier(1 + consumer, 128);
                    if (thread % 128 == 0)
                        tile_store(map_c, to, col0 + 64 * piece, row + 64 * i, batch_of, keep_c);
                }
        }
        if (thread % 128 == 0)
            tile_stores_done();
    }
}

extern "C" __global__ __launch_bounds__(384, 1) void tensorop_kernel(
    const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
    const __grid_constant__ CUtensorMap map_c, const __grid_constant__ Args p) {
    extern __shared__ unsigned char raw[];
    const uint32_t ring = (shared_address(raw) + 1023) & ~1023u, pieces = ring + 196608, full = pieces + 32768;
    const int rank = cluster_rank();
    const int steps = (p.k + 63) / 64;
    const int blocks = 2, parts = 1, k_begin = 0, k_end = steps;
    block(&p, &map_a, &map_b, &map_c, p.m, p.n, p.batch, p.alpha, p.beta, p.c, p.ldc, p.stride_c, p.clusters,
          blockIdx.x / blocks, gridDim.x / blocks, k_begin, k_end, p.next, p.ahead_a || p.ahead_b,
          min(k_begin + p.ahead_a, k_end), min(k_begin + p.ahead_b, k_end), p.keep_a, p.keep_b, p.keep_c, threadIdx.x, rank,
          parts, ring, pieces, full, full + 32, p.general, &p.epilogue);
    // A block must not exit while another one may still access its shared memory.
    __syncwarp();
    cluster_barrier();
}
} // namespace
