// gemm bf16 by wgmma
//
// the copy engine fills a ring of tiles in shared memory, warpgroups multiply them by wgmma, and what is done leaves through shared memory; blocks that stay take many tiles
#include <stdint.h>

/* A launch over tensor maps. m and n are of the product as computed: swapped where the kernel swaps. */
struct Args {
    int m, n, k, batch;
    int tiles_m, tiles_n, group, clusters; /* in clusters of tiles; group: rows of them that run along N together */
    float alpha, beta;
    uint16_t *c;
    int64_t ldc, stride_c;
    int next; /* when the next launch may begin: 0 at once, 1 when the one before is over, 2 when the last load is begun */
    int ahead_a, ahead_b; /* steps of K of which inputs are fetched into L2 before the one before is over */
    uint64_t keep_a, keep_b, keep_c; /* how L2 keeps what is read and written */
};
struct alignas(128) CUtensorMap {
    uint64_t opaque[16];
};

namespace {
constexpr int BK = 64; // of K a stage holds: 128 bytes, the longest row that is swizzled

__device__ __forceinline__ uint32_t shared_address(const void *p) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ int thread_number() {
    int id;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(id));
    return id;
}

__device__ __forceinline__ void barrier_init(uint32_t barrier, int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count));
}

__device__ __forceinline__ void barriers_visible() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void barrier_expect(uint32_t barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void barrier_arrive_at(uint32_t barrier, int cta) {
    asm volatile("{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [remote];\n}" ::"r"(barrier),
                 "r"(cta)
                 : "memory");
}

__device__ __forceinline__ void barrier_wait(uint32_t barrier, int parity) {
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

__device__ __forceinline__ void map_prefetch(const CUtensorMap *map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

__device__ __forceinline__ void tile_load(uint32_t to, const CUtensorMap *map, uint32_t barrier, int x, int y, int z, uint64_t keep) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
                 "[%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "l"(keep)
                 : "memory");
}

__device__ __forceinline__ void tile_load_shared(uint32_t to, const CUtensorMap *map, uint32_t barrier, int x, int y, int z, uint16_t mask) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "h"(mask)
                 : "memory");
}

__device__ __forceinline__ void tile_store(const CUtensorMap *map, uint32_t from, int x, int y, int z, uint64_t keep) {
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

__device__ __forceinline__ void matrix_store(uint32_t to, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to),
                 "r"(a), "r"(b), "r"(c), "r"(d)
                 : "memory");
}

__device__ __forceinline__ uint32_t pair_packed(float low, float high) {
    uint32_t v;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(high), "f"(low));
    return v;
}

__device__ __forceinline__ float element_value(uint16_t bits) {
    return __uint_as_float(uint32_t(bits) << 16);
}

__device__ __forceinline__ uint64_t descriptor(uint32_t address, bool along_k, int chunk) {
    const uint64_t leading = along_k ? 1 : chunk * 128 >> 4;
    return uint64_t(chunk == 64 ? 1 : 2) << 62 | uint64_t(chunk) << 32 | leading << 16 |
           uint64_t((address & 0x3ffff) >> 4);
}

__device__ __forceinline__ void wgmma_begin() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmma(float (&d)[128], uint64_t a, uint64_t b, int keeps) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16"
                 " {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63,%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127},"
                 " %128, %129, p, 1, 1, 0, 0;\n}\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]), "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]), "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79]), "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]), "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]), "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]), "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]), "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]), "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])    
                 : "l"(a), "l"(b), "r"(keeps));
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

constexpr int BM = 128, BN = 256, STAGES = 4;
constexpr int WGM = 64, WGN = 256, BLOCKS = WGM / 64;
constexpr int A_BYTES = BM * 128, B_BYTES = BN * 128, STAGE_BYTES = A_BYTES + B_BYTES;
constexpr int CLM = 2, CLN = 1, SPLIT = 1, CLUSTER = 2;
constexpr int SLICE_M = BM / CLN, SLICE_N = BN / CLM; // what one block loads and shares
constexpr int BOX_A = 128, BOX_B = 128;
constexpr int RING = STAGES * STAGE_BYTES, SUMS = 0;
constexpr int BODY = RING > SUMS ? RING : SUMS, C_BYTES = 32768;

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

// C leaves in pieces of 64 rows x PIECE columns, two buffers a warpgroup.
constexpr int PIECE = 64, PIECE_BYTES = 64 * PIECE * 2;

// Through shared memory, swizzled as the copy engine wants it; the wait is for the piece before the last, so that a tile's
// last stores run beside the next tile.
__device__ __forceinline__ void leave(const Args &p, const CUtensorMap *map, float (&sum)[BLOCKS][WGN / 2],
                                      uint32_t buffers, int &buffer, int barrier, int batch, int row0, int col0) {
    constexpr int ROW = PIECE * 2, MASK = ROW / 16 - 1;
    const int thread = thread_number() % 128;
    const int row = thread / 32 * 16 + thread % 16, half = thread % 32 / 16;
#pragma unroll
    for (int i = 0; i < BLOCKS; ++i)
#pragma unroll
        for (int piece = 0; piece < WGN / PIECE; ++piece) {
            const uint32_t to = buffers + buffer * PIECE_BYTES;
            buffer ^= 1;
            if (threadIdx.x % 128 == 0)
                tile_stores_read<1>();
            named_barrier(barrier, 128);
#pragma unroll
            for (int g = 0; g < PIECE / 16; ++g) {
                float *s = sum[i] + (piece * PIECE + 16 * g) / 2;
                if (p.beta != 0) {
                    const uint16_t *c = p.c + batch * p.stride_c;
                    // Read anew, so that no register holds it through the products.
                    const int thread = thread_number() % 128, in_warp = thread % 32;
                    const int r0 = row0 + 64 * i + thread / 32 * 16 + in_warp / 4;
                    const int c0 = col0 + piece * PIECE + 16 * g + in_warp % 4 * 2;
#pragma unroll
                    for (int e = 0; e < 8; ++e) {
                        const int r = r0 + (e & 2) * 4, q = c0 + (e & 4) * 2 + (e & 1);
                        s[e] *= p.alpha;
                        if (r < p.m && q < p.n)
                            s[e] += p.beta * element_value(c[r * p.ldc + q]);
                    }
                } else {
#pragma unroll
                    for (int e = 0; e < 8; ++e)
                        s[e] *= p.alpha;
                }
                const uint32_t swizzled = (2 * g + half) ^ (row * ROW >> 7 & MASK);
                matrix_store(to + row * ROW + swizzled * 16, pair_packed(s[0], s[1]), pair_packed(s[2], s[3]),
                             pair_packed(s[4], s[5]), pair_packed(s[6], s[7]));
            }
            shared_written();
            named_barrier(barrier, 128);
            if (threadIdx.x % 128 == 0)
                tile_store(map, to, col0 + piece * PIECE, row0 + 64 * i, batch, p.keep_c);
        }
}

extern "C" __global__ __launch_bounds__(384, 1) void tensorop_kernel(
    const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
    const __grid_constant__ CUtensorMap map_c, const __grid_constant__ Args p) {
    extern __shared__ unsigned char raw[];
    const uint32_t ring = (shared_address(raw) + 1023) & ~1023u;
    const uint32_t c_buffers = ring + BODY, full = c_buffers + C_BYTES, empty = full + 8 * STAGES;
    const int warpgroup = threadIdx.x / 128;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {
            barrier_init(full + 8 * s, 1);
            // Whoever fills a stage here has to know that its readers are done: in every block that shares loads with
            // this one.
            barrier_init(empty + 8 * s, 4);
        }
        barriers_visible();
        map_prefetch(&map_a), map_prefetch(&map_b), map_prefetch(&map_c);
    }
    cluster_barrier();
    // The next kernel may take its place as soon as this one has: it waits as this one does.
    if (p.next == 0)
        next_may_begin();
    const int rank = cluster_rank();
    const int rank_m = rank % CLM, rank_n = rank / CLM;
    const int first = blockIdx.x / CLUSTER, step = gridDim.x / CLUSTER;
    const int all_steps = (p.k + BK - 1) / BK;
    const int k_begin = 0;
    const int k_end = all_steps;

    __syncwarp();
    previous_done();
    if (p.next == 1)
        next_may_begin();

    if (warpgroup == 0) {
        registers_fewer<40>();
        if (threadIdx.x == 0) {
            uint16_t mask_a = 0, mask_b = 0;
            for (int i = 0; i < CLN; ++i)
                mask_a |= 1 << (rank_m + CLM * i);
            for (int i = 0; i < CLM; ++i)
                mask_b |= 1 << (i + CLM * rank_n);
            int stage = 0, phase = 1;
            for (int tile = first; tile < p.clusters; tile += step) {
                const Place at = place(p, tile);
                const int row = (at.m * CLM + rank_m) * BM + rank_n * SLICE_M * (CLN > 1);
                const int col = (at.n * CLN + rank_n) * BN + rank_m * SLICE_N * (CLM > 1);
                for (int k = k_begin; k < k_end; ++k) {
                    const uint32_t ready = full + 8 * stage;
                    const uint32_t to_a = ring + stage * STAGE_BYTES + rank_n * SLICE_M * 128 * (CLN > 1);
                    const uint32_t to_b = ring + stage * STAGE_BYTES + A_BYTES + rank_m * SLICE_N * 128 * (CLM > 1);
                    barrier_wait(empty + 8 * stage, phase);
                    barrier_expect(ready, STAGE_BYTES);
                    #pragma unroll
                for (int i = 0; i < SLICE_M; i += BOX_A) {
                    const int x = k * BK;
                    const int y = row + i;
                    tile_load(to_a + i * 128, &map_a, ready, x, y, at.batch, p.keep_a);
                }
#pragma unroll
                for (int i = 0; i < SLICE_N; i += BOX_B) {
                    const int x = k * BK;
                    const int y = col + i;
                    tile_load_shared(to_b + i * 128, &map_b, ready, x, y, at.batch, mask_b);
                }
if (++stage == STAGES)
                        stage = 0, phase ^= 1;
                }
            }
            if (p.next == 2)
                next_may_begin();
        }
    } else {
        registers_more<232>();
        const int consumer = warpgroup - 1;
        const int wm = consumer % 2 * WGM;
        const int wn = consumer / 2 * WGN;
        // Along M or N a chunk of 64 elements is BK rows of 128 bytes: as far as 64 rows along K.
        const uint32_t a0 = ring + wm * 128, b0 = ring + A_BYTES + wn * 128;
        const uint32_t my_buffers = c_buffers + consumer * 2 * PIECE_BYTES;
        int buffer = 0;
        int stage = 0, phase = 0;
        float sum[BLOCKS][WGN / 2];
        auto skip = [&](int steps) {
            stage += steps;
            phase ^= stage / STAGES & 1;
            stage %= STAGES;
        };
        auto release = [&](int s) {
            if (threadIdx.x % 128 < CLUSTER)
                barrier_arrive_at(empty + 8 * s, threadIdx.x % 128);
        };
        const int mine = 0, takers = 1;
        skip(mine * (k_end - k_begin));
        for (int tile = first + mine * step; tile < p.clusters; tile += takers * step) {
            const Place at = place(p, tile);
            int last = -1;
            for (int k = k_begin; k < k_end; ++k) {
                barrier_wait(full + 8 * stage, phase);
                const uint64_t a = descriptor(a0 + stage * STAGE_BYTES, true, 64);
                const uint64_t b = descriptor(b0 + stage * STAGE_BYTES, true, 64);
                wgmma_begin();
#pragma unroll
                for (int kk = 0; kk < BK / 16; ++kk)
#pragma unroll
                    for (int i = 0; i < BLOCKS; ++i)
                        wgmma(sum[i], a + i * 512 + kk * 2, b + kk * 2,
                              k > k_begin || kk > 0);
                wgmma_commit();
                // The stage before this one is free once its products are done: one group late, so that the tensor cores
                // always have work.
                wgmma_wait<1>();
                if (last >= 0)
                    release(last);
                last = stage;
                if (++stage == STAGES)
                    stage = 0, phase ^= 1;
            }
            wgmma_wait<0>();
            if (last >= 0)
                release(last);
            const int row = (at.m * CLM + rank_m) * BM + wm;
            const int col = (at.n * CLN + rank_n) * BN + wn;
            leave(p, &map_c, sum, my_buffers, buffer, 1 + consumer, at.batch, row, col);
        }
        if (threadIdx.x % 128 == 0)
            tile_stores_done();
    }
    __syncwarp();
    // No block leaves while another may write to its shared memory or read it.
    cluster_barrier();
}

} // namespace
