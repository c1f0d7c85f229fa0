// attention bf16 by wgmma
//
// wgmma with 64 queries in each warpgroup; TMA brings keys and values into a ring; the scores of the next block of keys are computed while this block's weights, in registers, are multiplied with its values
#include <stdint.h>

/* Arguments of a launch. Distances of batches, rows and heads are in elements. */
struct Args {
    int s, t, d, dv;   /* queries and keys, of ragged batches at most; numbers of a head of Q and K, and of V and O */
    int heads, shared; /* heads of Q, and how many of them have the same K and V */
    int tiles;         /* of queries, in each head */
    int splits;        /* of the keys: o and lse are then the workspace's parts and marks (combine.h.j2); else 0 */
    int low, high;     /* query i sees the keys from i + low to i + high */
    int end;           /* 1: each of these is t - s more, with the numbers of the sequence */
    int turned;        /* 1: scale is negative */
    int page;          /* a page has 1 << page keys */
    int blocks;        /* with tensor maps: tiles of all heads, of which a launch may have fewer blocks */
    int all_heads, section; /* of the batch, and how many of them begin together: L2 holds their keys and values */
    float scale;       /* its size, for powers of 2 */
    const void *q, *k, *v;
    void *o;
    float *lse; /* or NULL */
    /* Of kernels with lists. NULL, or for each sequence: where its rows begin, its keys, and the pages that these are in, of which k_batch and v_batch
     * are the distances */
    const int32_t *starts_q, *starts_k, *lengths, *pages;
    int64_t q_batch, q_row, q_head, k_batch, k_row, k_head, v_batch, v_row, v_head, o_batch, o_row, o_head;
    int64_t lse_batch, lse_head, pages_row;
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

__device__ __forceinline__ void barrier_arrive(Barrier barrier) {
    asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
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

__device__ __forceinline__ void map_prefetch(const CUtensorMap *map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

__device__ __forceinline__ void box_load(Shared to, const CUtensorMap *map, Barrier barrier, int x, int y, int z, int w) {
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w)
                 : "memory");
}

__device__ __forceinline__ void box_store(const CUtensorMap *map, Shared from, int x, int y, int z, int w) {
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];\n"
                 "cp.async.bulk.commit_group;" ::"l"(map),
                 "r"(from), "r"(x), "r"(y), "r"(z), "r"(w)
                 : "memory");
}

template <int LEFT>
__device__ __forceinline__ void tile_stores_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(LEFT) : "memory");
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

__device__ __forceinline__ int chunk_swizzled(int chunk, int line) {
    return chunk ^ line;
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
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16"
                 " {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63},"
                 " %64, %65, p, 1, 1, 0, 0;\n}\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])    
                 : "l"(a + block * 512 + step * 2),
                   "l"(b + step * 2), "r"(keeps));
}

__device__ __forceinline__ TileOfB tile_of_values(Shared address) {
    return uint64_t(1) << 62 | uint64_t(64) << 32 | uint64_t(1024) << 16 | uint64_t((address & 0x3ffff) >> 4);
}

__device__ __forceinline__ void wgmma_weighed(float *d, const uint32_t *a, TileOfB b, int step) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16"
                 " {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63},"
                 " {%64, %65, %66, %67}, %68, 1, 1, 1, 1;\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])    
                 : "r"(a[4 * step]), "r"(a[4 * step + 1]), "r"(a[4 * step + 2]), "r"(a[4 * step + 3]),
                   "l"(b + step * 128));
}

__device__ __forceinline__ void wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int LEFT>
__device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}

__device__ __forceinline__ void scores_there(float *s) {
    #pragma unroll
    for (int e = 0; e < 64; ++e)
        asm volatile("" : "+f"(s[e]));
}

__device__ __forceinline__ void sums_there(float *d) {
    #pragma unroll
    for (int e = 0; e < 64; ++e)
        asm volatile("" : "+f"(d[e]));
}

__device__ __forceinline__ void signs_turned(Shared at) {
    const uint32_t from = at + threadIdx.x % 128 * 16;
    for (int i = 0; i < 4; ++i)
        asm volatile("{\n.reg .b32 w<4>;\nld.shared.v4.u32 {w0, w1, w2, w3}, [%0];\n"
                     "xor.b32 w0, w0, 0x80008000;\nxor.b32 w1, w1, 0x80008000;\n"
                     "xor.b32 w2, w2, 0x80008000;\nxor.b32 w3, w3, 0x80008000;\n"
                     "st.shared.v4.u32 [%0], {w0, w1, w2, w3};\n}" ::"r"(from + i * 2048)
                     : "memory");
}

__device__ __forceinline__ void scores_masked(float *s, int row, int key, int low, int high, int end) {
    const int thread = threadIdx.x % 128, furthest = 1 << 30; // no key and row are further apart
    const int apart = key + thread % 4 * 2 - row - thread / 32 * 16 - thread % 32 / 4;
    const int from = min(max(low, -furthest), furthest) - apart, to = min(max(high, -furthest), furthest) - apart;
    const int last = end - 1 - key - thread % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int least = from + 8 * half, most = min(to + 8 * half, last);
#pragma unroll
        for (int j = 0; j < 16; ++j)
#pragma unroll
            for (int e = 0; e < 2; ++e)
                if (8 * j + e < least || 8 * j + e > most)
                    s[4 * j + 2 * half + e] = __int_as_float(0xff800000);
    }
}

__device__ __forceinline__ void rows_lowest(float *rows) {
    rows[0] = rows[1] = __int_as_float(0xff800000);
}

__device__ __forceinline__ void rows_most(float *most, const float *s) {
    #pragma unroll
    for (int half = 0; half < 2; ++half) {
        float x[2] = {s[2 * half], s[2 * half + 1]};
#pragma unroll
        for (int j = 1; j < 16; ++j)
#pragma unroll
            for (int e = 0; e < 2; ++e)
                x[e] = fmaxf(x[e], s[4 * j + 2 * half + e]);
        x[0] = fmaxf(x[0], x[1]);
        x[0] = fmaxf(x[0], __shfl_xor_sync(0xffffffff, x[0], 1));
        most[half] = fmaxf(x[0], __shfl_xor_sync(0xffffffff, x[0], 2));
    }
}

__device__ __forceinline__ void rows_shifted(float *shift, float *factor, const float *most, float by) {
    #pragma unroll
    for (int half = 0; half < 2; ++half) {
        const float least = __int_as_float(0xff800000), now = most[half] == least ? least : most[half] * by;
        const bool rises = now - shift[half] > 8; // no number if both are -infinity
        asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(factor[half]) : "f"(rises ? shift[half] - now : 0.f));
        shift[half] = rises ? now : shift[half];
    }
}

__device__ __forceinline__ void scores_exp2(float *s, float by, const float *shift) {
    const float least = __int_as_float(0xff800000);
    const float of[2] = {shift[0] == least ? 0.f : -shift[0], shift[1] == least ? 0.f : -shift[1]};
#pragma unroll
    for (int e = 0; e < 64; ++e)
        asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(s[e]) : "f"(fmaf(s[e], by, of[e / 2 % 2])));
}

__device__ __forceinline__ void rows_added(float *total, const float *factor, const float *s) {
    #pragma unroll
    for (int half = 0; half < 2; ++half) {
        float x[2] = {s[2 * half], s[2 * half + 1]};
#pragma unroll
        for (int j = 1; j < 16; ++j)
#pragma unroll
            for (int e = 0; e < 2; ++e)
                x[e] += s[4 * j + 2 * half + e];
        total[half] = fmaf(total[half], factor[half], x[0] + x[1]);
    }
}

__device__ __forceinline__ void scores_packed(uint32_t *a, const float *s) {
    #pragma unroll
    for (int e = 0; e < 32; ++e)
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(a[e]) : "f"(s[2 * e + 1]), "f"(s[2 * e]));
}

__device__ __forceinline__ void sums_by_rows(float *d, const float *by) {
    if (__any_sync(0xffffffff, by[0] != 1 || by[1] != 1)) {
#pragma unroll
        for (int e = 0; e < 64; ++e)
            d[e] *= by[e / 2 % 2];
    }
}

__device__ __forceinline__ void rows_total(float *rows) {
    #pragma unroll
    for (int half = 0; half < 2; ++half)
        for (int apart = 1; apart < 4; apart *= 2)
            rows[half] += __shfl_xor_sync(0xffffffff, rows[half], apart);
}

__device__ __forceinline__ void rows_logarithm(float *logarithm, const float *total, const float *shift) {
    #pragma unroll
    for (int half = 0; half < 2; ++half)
        logarithm[half] = total[half] == 0 ? __int_as_float(0xff800000) : (log2f(total[half]) + shift[half]) * 0.693147181f;
}

__device__ __forceinline__ void rows_inverted(float *rows) {
    #pragma unroll
    for (int half = 0; half < 2; ++half)
        rows[half] = rows[half] == 0 ? 0.f : 1 / rows[half];
}

template <int N>
__device__ __forceinline__ void registers_fewer() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}

template <int N>
__device__ __forceinline__ void registers_more() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}

/* `steps` blocks of 128 keys, from the key `first` on. All queries see all keys of those from whole_from to whole_to. */
struct Seen {
    int first, steps, whole_from, whole_to;
};
/* Queries row0 to last; query i sees the keys from i + low to i + high, of t keys. Numbers stay below 2 to the power of 31: so do
 * row + low and t - row, but not row + high. */
__device__ __forceinline__ Seen seen_by(int row0, int last, int low, int high, int t) {
    const int from = row0 + low, end = high < t - last ? last + high + 1 : t;    // of any query
    const int all_from = last + low, all_end = high < t - row0 ? row0 + high + 1 : t; // of all of them
    const int begin = max(from, 0);
    if (begin >= end)
        return {0, 0, 0, 0};
    const int first = begin / 128 * 128, steps = (end - first + 127) / 128;
    const int whole_from = all_from < first ? 0 : (all_from - first + 127) / 128;
    return {first, steps, min(whole_from, steps), max(0, min((all_end - first) / 128, steps))};
}
__device__ __forceinline__ void block(const CUtensorMap *map_q, const CUtensorMap *map_k, const CUtensorMap *map_v, const CUtensorMap *map_o, bool loads,
           int group, int s, int t, float scale, bool turned, float *lse, bool wanted, int row0, int of_q, int of_k, int batch, int first,
           int steps, int later, int whole_from, int whole_to, int low, int high, int done, int turn, unsigned thread,
           Shared queries, Shared results, Shared ring, Barrier full_q, Barrier empty_q, Barrier full, Barrier empty) {
    if (loads) {
        if (thread == 0) {
            if (steps > 0) {
                                barrier_wait(empty + 8 * ((done + 0) % 2), 1 - (done + 0) / 2 % 2);
                barrier_expect(full + 8 * ((done + 0) % 2), 32768);
                box_load(ring + ((done + 0) % 2) * 32768 + 0, map_k,
                         full + 8 * ((done + 0) % 2), 0, first, of_k, batch);
                box_load(ring + ((done + 0) % 2) * 32768 + 16384, map_k,
                         full + 8 * ((done + 0) % 2), 64, first, of_k, batch);
}
            barrier_wait(empty_q + 0, 1 - turn);
                        barrier_expect(full_q + 0, 16384);
            box_load(queries + 0, map_q, full_q + 0, 0, row0 + 0, of_q, batch);
            box_load(queries + 16384, map_q, full_q + 0, 64, row0 + 0, of_q, batch);
            barrier_wait(empty_q + 8, 1 - turn);
                        barrier_expect(full_q + 8, 16384);
            box_load(queries + 8192, map_q, full_q + 8, 0, row0 + 64, of_q, batch);
            box_load(queries + 24576, map_q, full_q + 8, 64, row0 + 64, of_q, batch);
#pragma unroll 1
            for (int step = 0; step < steps; ++step) {
                                barrier_wait(empty + 8 * ((done + step) % 2) + 16, 1 - (done + step) / 2 % 2);
                barrier_expect(full + 8 * ((done + step) % 2) + 16, 32768);
                box_load(ring + ((done + step) % 2) * 32768 + 65536, map_v,
                         full + 8 * ((done + step) % 2) + 16, 0, first + step * 128, of_k, batch);
                box_load(ring + ((done + step) % 2) * 32768 + 81920, map_v,
                         full + 8 * ((done + step) % 2) + 16, 64, first + step * 128, of_k, batch);
if (step < later) {
                                    barrier_wait(empty + 8 * ((done + step + 1) % 2), 1 - (done + step + 1) / 2 % 2);
                barrier_expect(full + 8 * ((done + step + 1) % 2), 32768);
                box_load(ring + ((done + step + 1) % 2) * 32768 + 0, map_k,
                         full + 8 * ((done + step + 1) % 2), 0, first + (step + 1) * 128, of_k, batch);
                box_load(ring + ((done + step + 1) % 2) * 32768 + 16384, map_k,
                         full + 8 * ((done + step + 1) % 2), 64, first + (step + 1) * 128, of_k, batch);
}
            }
        }
    } else {
        const int row = row0 + 64 * group;
        const Shared my_queries = queries + 8192 * group, my_results = results + 8192 * group;
        float sum[64] = {0}, score[64] = {0};
        uint32_t weight[32] = {0};
        float shift[2] = {0}, total[2] = {0}, factor[2] = {0}, most[2] = {0};
        rows_lowest(shift);
        barrier_wait(full_q + 8 * group, turn);
        if (steps > 0) {
            if (turned) { // a negative scale
                signs_turned(my_queries + 0);
                signs_turned(my_queries + 16384);
                shared_written();
                named_barrier(1 + group, 128);
            }
            const int begin = (done + 0) % 2;
            barrier_wait(full + 8 * begin, (done + 0) / 2 % 2);
                            wgmma_begin();
                wgmma(score, tile_of_a(my_queries + 0), 0, tile_of_b(ring + begin * 32768 + 0), 0, 0);
                wgmma(score, tile_of_a(my_queries + 0), 0, tile_of_b(ring + begin * 32768 + 0), 1, 1);
                wgmma(score, tile_of_a(my_queries + 0), 0, tile_of_b(ring + begin * 32768 + 0), 2, 1);
                wgmma(score, tile_of_a(my_queries + 0), 0, tile_of_b(ring + begin * 32768 + 0), 3, 1);
                wgmma(score, tile_of_a(my_queries + 16384), 0, tile_of_b(ring + begin * 32768 + 16384), 0, 1);
                wgmma(score, tile_of_a(my_queries + 16384), 0, tile_of_b(ring + begin * 32768 + 16384), 1, 1);
                wgmma(score, tile_of_a(my_queries + 16384), 0, tile_of_b(ring + begin * 32768 + 16384), 2, 1);
                wgmma(score, tile_of_a(my_queries + 16384), 0, tile_of_b(ring + begin * 32768 + 16384), 3, 1);
                wgmma_commit();
wgmma_wait<0>();
            scores_there(score);
                            if (thread % 128 == 0)
                    barrier_arrive(empty + 8 * begin);
if (whole_from > 0 || whole_to < 1)
                scores_masked(score, row, first, low, high, t);
                            rows_most(most, score);
                rows_shifted(shift, factor, most, scale);
                scores_exp2(score, scale, shift);
                rows_added(total, factor, score);
scores_packed(weight, score);
            int step = 1;
            // Blocks that no query sees whole, then those that all see whole, then the others.
            for (; step < whole_from; ++step) {
                                const int stage = (done + step) % 2, before = (done + step - 1) % 2;
                barrier_wait(full + 8 * stage, (done + step) / 2 % 2);
                                wgmma_begin();
                wgmma(score, tile_of_a(my_queries + 0), 0, tile_of_b(ring + stage * 32768 + 0), 0, 0);
                wgmma(score, tile_of_a(my_queries + 0), 0, tile_of_b(ring + stage * 32768 + 0), 1, 1);
                wgmma(score, tile_of_a(my_queries + 0), 0, tile_of_b(ring + stage * 32768 + 0), 2, 1);
                wgmma(score, tile_of_a(my_queries + 0), 0, tile_of_b(ring + stage * 32768 + 0), 3, 1);
                wgmma(score, tile_of_a(my_queries + 16384), 0, tile_of_b(ring + stage * 32768 + 16384), 0, 1);
                wgmma(score, tile_of_a(my_queries + 16384), 0, tile_of_b(ring + stage * 32768 + 16384), 1, 1);
                wgmma(score, tile_of_a(my_queries + 16384), 0, tile_of_b(ring + stage * 32768 + 16384), 2, 1);
                wgmma(score, tile_of_a(my_queries + 16384), 0, tile_of_b(ring + stage * 32768 + 16384), 3, 1);
                wgmma_commit();
barrier_wait(full + 8 * before + 16, (done + step - 1) / 2 % 2);
                                {
                    const TileOfB of_values = tile_of_values(ring + 65536 + before * 32768);
                    wgmma_begin();
                    wgmma_weighed(sum, weight, of_values, 0);
                    wgmma_weighed(sum, weight, of_values, 1);
                    wgmma_weighed(sum, weight, of_values, 2);
                    wgmma_weighed(sum, weight, of_values, 3);
                    wgmma_weighed(sum, weight, of_values, 4);
                    wgmma_weighed(sum, weight, of_values, 5);
                    wgmma_weighed(sum, weight, of_values, 6);
                    wgmma_weighed(sum, weight, of_values, 7);
                    wgmma_commit();
                }
wgmma_wait<1>();
                scores_there(score);
                                if (thread % 128 == 0)
                    barrier_arrive(empty + 8 * stage);
                scores_masked(score, row, first + step * 128, low, high, t);
                                rows_most(most, score);
                rows_shifted(shift, factor, most, scale);
                scores_exp2(score, scale, shift);
                rows_added(total, factor, score);
wgmma_wait<0>();
                sums_there(sum);
                                if (thread % 128 == 0)
                    barrier_arrive(empty + 8 * before + 16);
scores_packed(weight, score);
                sums_by_rows(sum, factor);
}
            for (; step < whole_to; ++step) {
                                const int stage = (done + step) % 2, before = (done + step - 1) % 2;
                barrier_wait(full + 8 * stage, (done + step) / 2 % 2);
                                wgmma_begin();
                wgmma(score, tile_of_a(my_queries + 0), 0, tile_of_b(ring + stage * 32768 + 0), 0, 0);
                wgmma(score, tile_of_a(my_queries + 0), 0, tile_of_b(ring + stage * 32768 + 0), 1, 1);
                wgmma(score, tile_of_a(my_queries + 0), 0, tile_of_b(ring + stage * 32768 + 0), 2, 1);
                wgmma(score, tile_of_a(my_queries + 0), 0, tile_of_b(ring + stage * 32768 + 0), 3, 1);
                wgmma(score, tile_of_a(my_queries + 16384), 0, tile_of_b(ring + stage * 32768 + 16384), 0, 1);
                wgmma(score, tile_of_a(my_queries + 16384), 0, tile_of_b(ring + stage * 32768 + 16384), 1, 1);
                wgmma(score, tile_of_a(my_queries + 16384), 0, tile_of_b(ring + stage * 32768 + 16384), 2, 1);
                wgmma(score, tile_of_a(my_queries + 16384), 0, tile_of_b(ring + stage * 32768 + 16384), 3, 1);
                wgmma_commit();
barrier_wait(full + 8 * before + 16, (done + step - 1) / 2 % 2);
                                {
                    const TileOfB of_values = tile_of_values(ring + 65536 + before * 32768);
                    wgmma_begin();
                    wgmma_weighed(sum, weight, of_values, 0);
                    wgmma_weighed(sum, weight, of_values, 1);
                    wgmma_weighed(sum, weight, of_values, 2);
                    wgmma_weighed(sum, weight, of_values, 3);
                    wgmma_weighed(sum, weight, of_values, 4);
                    wgmma_weighed(sum, weight, of_values, 5);
                    wgmma_weighed(sum, weight, of_values, 6);
                    wgmma_weighed(sum, weight, of_values, 7);
                    wgmma_commit();
                }
wgmma_wait<1>();
                scores_there(score);
                                if (thread % 128 == 0)
                    barrier_arrive(empty + 8 * stage);
                                rows_most(most, score);
                rows_shifted(shift, factor, most, scale);
                scores_exp2(score, scale, shift);
                rows_added(total, factor, score);
wgmma_wait<0>();
                sums_there(sum);
                                if (thread % 128 == 0)
                    barrier_arrive(empty + 8 * before + 16);
scores_packed(weight, score);
                sums_by_rows(sum, factor);
}
            for (; step < steps; ++step) {
                                const int stage = (done + step) % 2, before = (done + step - 1) % 2;
                barrier_wait(full + 8 * stage, (done + step) / 2 % 2);
                                wgmma_begin();
                wgmma(score, tile_of_a(my_queries + 0), 0, tile_of_b(ring + stage * 32768 + 0), 0, 0);
                wgmma(score, tile_of_a(my_queries + 0), 0, tile_of_b(ring + stage * 32768 + 0), 1, 1);
                wgmma(score, tile_of_a(my_queries + 0), 0, tile_of_b(ring + stage * 32768 + 0), 2, 1);
                wgmma(score, tile_of_a(my_queries + 0), 0, tile_of_b(ring + stage * 32768 + 0), 3, 1);
                wgmma(score, tile_of_a(my_queries + 16384), 0, tile_of_b(ring + stage * 32768 + 16384), 0, 1);
                wgmma(score, tile_of_a(my_queries + 16384), 0, tile_of_b(ring + stage * 32768 + 16384), 1, 1);
                wgmma(score, tile_of_a(my_queries + 16384), 0, tile_of_b(ring + stage * 32768 + 16384), 2, 1);
                wgmma(score, tile_of_a(my_queries + 16384), 0, tile_of_b(ring + stage * 32768 + 16384), 3, 1);
                wgmma_commit();
barrier_wait(full + 8 * before + 16, (done + step - 1) / 2 % 2);
                                {
                    const TileOfB of_values = tile_of_values(ring + 65536 + before * 32768);
                    wgmma_begin();
                    wgmma_weighed(sum, weight, of_values, 0);
                    wgmma_weighed(sum, weight, of_values, 1);
                    wgmma_weighed(sum, weight, of_values, 2);
                    wgmma_weighed(sum, weight, of_values, 3);
                    wgmma_weighed(sum, weight, of_values, 4);
                    wgmma_weighed(sum, weight, of_values, 5);
                    wgmma_weighed(sum, weight, of_values, 6);
                    wgmma_weighed(sum, weight, of_values, 7);
                    wgmma_commit();
                }
wgmma_wait<1>();
                scores_there(score);
                                if (thread % 128 == 0)
                    barrier_arrive(empty + 8 * stage);
                scores_masked(score, row, first + step * 128, low, high, t);
                                rows_most(most, score);
                rows_shifted(shift, factor, most, scale);
                scores_exp2(score, scale, shift);
                rows_added(total, factor, score);
wgmma_wait<0>();
                sums_there(sum);
                                if (thread % 128 == 0)
                    barrier_arrive(empty + 8 * before + 16);
scores_packed(weight, score);
                sums_by_rows(sum, factor);
}
            if (thread % 128 == 0)
                barrier_arrive(empty_q + 8 * group);
            const int last = (done + steps - 1) % 2;
            barrier_wait(full + 8 * last + 16, (done + steps - 1) / 2 % 2);
                            {
                    const TileOfB of_values = tile_of_values(ring + 65536 + last * 32768);
                    wgmma_begin();
                    wgmma_weighed(sum, weight, of_values, 0);
                    wgmma_weighed(sum, weight, of_values, 1);
                    wgmma_weighed(sum, weight, of_values, 2);
                    wgmma_weighed(sum, weight, of_values, 3);
                    wgmma_weighed(sum, weight, of_values, 4);
                    wgmma_weighed(sum, weight, of_values, 5);
                    wgmma_weighed(sum, weight, of_values, 6);
                    wgmma_weighed(sum, weight, of_values, 7);
                    wgmma_commit();
                }
wgmma_wait<0>();
            sums_there(sum);
                            if (thread % 128 == 0)
                    barrier_arrive(empty + 8 * last + 16);
        }
        rows_total(total);
        if (wanted) {
            float logarithm[2] = {0};
            rows_logarithm(logarithm, total, shift);
            const int its = row + thread % 128 / 32 * 16 + thread % 32 / 4;
            if (thread % 4 == 0 && its < s)
                lse[its] = logarithm[0];
            if (thread % 4 == 0 && its + 8 < s)
                lse[its + 8] = logarithm[1];
        }
        rows_inverted(total);
        sums_by_rows(sum, total);
        // What left before has left.
        if (thread % 128 == 0)
            tile_stores_read<0>();
        // All threads of the group have read its rows of Q.
        named_barrier(1 + group, 128);
        if (thread % 128 == 0 && steps == 0)
            barrier_arrive(empty_q + 8 * group); // not before: a thread could wait for these rows when the next ones are there
        const int its = thread % 128 / 32 * 16 + thread % 16, half = thread % 32 / 16;
        matrix_store(my_results + 0 + its * 128 + chunk_swizzled(0 + half, its % 8) * 16,
                     pair_packed(sum[0], sum[1]), pair_packed(sum[2], sum[3]),
                     pair_packed(sum[4], sum[5]), pair_packed(sum[6], sum[7]));
        matrix_store(my_results + 0 + its * 128 + chunk_swizzled(2 + half, its % 8) * 16,
                     pair_packed(sum[8], sum[9]), pair_packed(sum[10], sum[11]),
                     pair_packed(sum[12], sum[13]), pair_packed(sum[14], sum[15]));
        matrix_store(my_results + 0 + its * 128 + chunk_swizzled(4 + half, its % 8) * 16,
                     pair_packed(sum[16], sum[17]), pair_packed(sum[18], sum[19]),
                     pair_packed(sum[20], sum[21]), pair_packed(sum[22], sum[23]));
        matrix_store(my_results + 0 + its * 128 + chunk_swizzled(6 + half, its % 8) * 16,
                     pair_packed(sum[24], sum[25]), pair_packed(sum[26], sum[27]),
                     pair_packed(sum[28], sum[29]), pair_packed(sum[30], sum[31]));
        matrix_store(my_results + 16384 + its * 128 + chunk_swizzled(0 + half, its % 8) * 16,
                     pair_packed(sum[32], sum[33]), pair_packed(sum[34], sum[35]),
                     pair_packed(sum[36], sum[37]), pair_packed(sum[38], sum[39]));
        matrix_store(my_results + 16384 + its * 128 + chunk_swizzled(2 + half, its % 8) * 16,
                     pair_packed(sum[40], sum[41]), pair_packed(sum[42], sum[43]),
                     pair_packed(sum[44], sum[45]), pair_packed(sum[46], sum[47]));
        matrix_store(my_results + 16384 + its * 128 + chunk_swizzled(4 + half, its % 8) * 16,
                     pair_packed(sum[48], sum[49]), pair_packed(sum[50], sum[51]),
                     pair_packed(sum[52], sum[53]), pair_packed(sum[54], sum[55]));
        matrix_store(my_results + 16384 + its * 128 + chunk_swizzled(6 + half, its % 8) * 16,
                     pair_packed(sum[56], sum[57]), pair_packed(sum[58], sum[59]),
                     pair_packed(sum[60], sum[61]), pair_packed(sum[62], sum[63]));
        shared_written();
        named_barrier(1 + group, 128);
        if (thread % 128 == 0) {
            box_store(map_o, my_results + 0, 0, row, of_q, batch);
            box_store(map_o, my_results + 16384, 64, row, of_q, batch);
        }
    }
}

struct Tile {
    int of_head, row0; // of the batch's heads
};
__device__ __forceinline__ Tile tile_at(const Args &p, int number) {
    // With a causal mask later tiles have more keys. A block that stays takes the last tile and the first, then others in
    // pairs that have as much to do. Else tiles of `section` heads are neighbours, and those with the most keys begin first,
    // so that no long tile is left for the end.
    if (int(gridDim.x) < p.blocks) {
        const int inside = number % p.tiles;
        return {number / p.tiles, (inside % 2 ? inside / 2 : p.tiles - 1 - inside / 2) * 128};
    }
    const int each = p.section * p.tiles, first = number / each * p.section, inside = number % each;
    const int wide = min(p.section, p.all_heads - first);
    return {first + inside % wide, (p.tiles - 1 - inside / wide) * 128};
}

// A block's tiles, of a group that computes or of the warpgroup that loads for all.
__device__ __forceinline__ void compute_tiles(const CUtensorMap *map_q, const CUtensorMap *map_k, const CUtensorMap *map_v,
                                              const CUtensorMap *map_o, const Args &p, bool loads, int group, uint32_t queries) {
    const uint32_t ring = queries + 65536, full = ring + 131072, empty = full + 32;
    const uint32_t full_q = empty + 32, empty_q = full_q + 16;
#pragma unroll 1
    for (int turn = 0, done = 0;; ++turn) {
        const bool stays = int(gridDim.x) < p.blocks;
        const unsigned number = stays ? 2 * (turn / 2 * gridDim.x + blockIdx.x) + turn % 2 : turn * gridDim.x + blockIdx.x;
        if (number >= unsigned(p.blocks))
            break;
        const Tile tile = tile_at(p, number);
        const int head = tile.of_head % p.heads, batch = tile.of_head / p.heads, row0 = tile.row0;
        const Seen seen = seen_by(row0, min(row0 + 128, p.s) - 1, p.low, p.high, p.t);
        float *const lse = p.lse + (p.lse ? batch * p.lse_batch + head * p.lse_head : 0);
        block(map_q, map_k, map_v, map_o, loads, group, p.s, p.t, p.scale, p.turned, lse, p.lse != nullptr, row0, head,
              head / p.shared, batch, seen.first, seen.steps, max(seen.steps - 1, 0), seen.whole_from, seen.whole_to, p.low,
              p.high, done, turn % 2, threadIdx.x, queries, queries + 32768, ring, full_q, empty_q, full,
              empty);
        done = (done + seen.steps) % 4;
    }
}

extern "C" __global__ __launch_bounds__(384, 1) void tensorop_kernel(
    const __grid_constant__ CUtensorMap map_q, const __grid_constant__ CUtensorMap map_k,
    const __grid_constant__ CUtensorMap map_v, const __grid_constant__ CUtensorMap map_o, const __grid_constant__ Args p) {
    extern __shared__ unsigned char raw[];
    static_assert(197728 <= 197728, "too little shared memory");
    const uint32_t queries = (shared_address(raw) + 1023) & ~1023u;
    const uint32_t full = queries + 196608, empty = full + 32;
    const uint32_t full_q = empty + 32, empty_q = full_q + 16;
    if (threadIdx.x == 0) {
        for (int i = 0; i < 4; ++i)
            barrier_init(full + 8 * i, 1), barrier_init(empty + 8 * i, 2);
        for (int i = 0; i < 2; ++i)
            barrier_init(full_q + 8 * i, 1), barrier_init(empty_q + 8 * i, 1);
        barriers_visible();
        map_prefetch(&map_q), map_prefetch(&map_k), map_prefetch(&map_v), map_prefetch(&map_o);
    }
    __syncthreads();
    if (threadIdx.x < 128) {
        registers_fewer<24>();
        compute_tiles(&map_q, &map_k, &map_v, &map_o, p, true, 0, queries);
    } else {
        registers_more<240>();
        compute_tiles(&map_q, &map_k, &map_v, &map_o, p, false, threadIdx.x / 128 - 1, queries);
    }
    tile_stores_read<0>(); // its shared memory must be there until O has left
}
} // namespace
