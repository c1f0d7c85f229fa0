// attention bf16 by decode
//
// few queries against many keys: heads of Q that share a head of K and V are rows of one tile, blocks divide the keys among them, and another kernel combines what they computed; by mma.sync
#include <stdint.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>

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

__device__ __forceinline__ void word_copy(Element *to, const Element *from, int left) {
    const int missing = left >= 8 ? 0 : left <= 0 ? 8 : 8 - left;
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
                 :
                 : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(to))), "l"(__cvta_generic_to_global(from)),
                   "r"(16 - missing * 2)
                 : "memory");
}

__device__ __forceinline__ void copies_commit() {
    __pipeline_commit();
}

template <int LEFT>
__device__ __forceinline__ void copies_wait() {
    __pipeline_wait_prior(LEFT);
}

__device__ __forceinline__ void tile_a(TileA &tile, const Element *from, int ld) {
    const unsigned lane = threadIdx.x % 32;
    const Element *const at = from + lane % 16 * ld + lane / 16 * 8;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(tile.r[0]), "=r"(tile.r[1]), "=r"(tile.r[2]), "=r"(tile.r[3])
                 : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(at)))
                 : "memory");
}

__device__ __forceinline__ void tile_b(TileB &tile, const Element *from, int ld) {
    const unsigned lane = threadIdx.x % 32;
    const Element *const at = from + lane % 16 * ld + lane / 16 * 8;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
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

__device__ __forceinline__ void sum_negated(SumTile &sum) {
    for (int e = 0; e < 8; ++e)
        sum.v[e] = -sum.v[e];
}

__device__ __forceinline__ void sum_masked(SumTile &sum, int row, int repeats, int key, int low, int high, int end) {
    const int lane = threadIdx.x % 32;
    for (int e = 0; e < 8; ++e) {
        const int i = lane / 4 + e / 2 % 2 * 8, j = e / 4 * 8 + lane % 4 * 2 + e % 2, apart = key + j - (row + i) / repeats;
        if (apart < low || apart > high || key + j >= end)
            sum.v[e] = __int_as_float(0xff800000);
    }
}

__device__ __forceinline__ void sum_exp2(SumTile &sum, float by, const Rows &shift) {
    for (int e = 0; e < 8; ++e) {
        const float of = shift.v[e / 2 % 2];
        const float power = fmaf(sum.v[e], by, of == __int_as_float(0xff800000) ? 0.f : -of);
        asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(sum.v[e]) : "f"(power));
    }
}

__device__ __forceinline__ void sum_by_rows(SumTile &sum, const Rows &by) {
    for (int e = 0; e < 8; ++e)
        sum.v[e] *= by.v[e / 2 % 2];
}

__device__ __forceinline__ void sum_as_a(TileA &tile, const SumTile &sum) {
    for (int r = 0; r < 4; ++r) {
        const __nv_bfloat162 pair = __floats2bfloat162_rn(sum.v[2 * r], sum.v[2 * r + 1]);
        tile.r[r] = *reinterpret_cast<const uint32_t *>(&pair);
    }
}

__device__ __forceinline__ float sum_value(const SumTile &sum, int register_) {
    return sum.v[register_];
}

__device__ __forceinline__ void rows_set(Rows &rows, float x) {
    rows.v[0] = rows.v[1] = x;
}

__device__ __forceinline__ void rows_lowest(Rows &rows) {
    rows.v[0] = rows.v[1] = __int_as_float(0xff800000);
}

__device__ __forceinline__ void rows_raised(Rows &rows, const SumTile &sum) {
    for (int e = 0; e < 8; ++e)
        rows.v[e / 2 % 2] = fmaxf(rows.v[e / 2 % 2], sum.v[e]);
}

__device__ __forceinline__ void rows_added(Rows &rows, const SumTile &sum) {
    for (int e = 0; e < 8; ++e)
        rows.v[e / 2 % 2] += sum.v[e];
}

__device__ __forceinline__ void rows_most(Rows &rows) {
    for (int e = 0; e < 2; ++e)
        for (int apart = 1; apart < 4; apart *= 2)
            rows.v[e] = fmaxf(rows.v[e], __shfl_xor_sync(0xffffffff, rows.v[e], apart));
}

__device__ __forceinline__ void rows_total(Rows &rows) {
    for (int e = 0; e < 2; ++e)
        for (int apart = 1; apart < 4; apart *= 2)
            rows.v[e] += __shfl_xor_sync(0xffffffff, rows.v[e], apart);
}

__device__ __forceinline__ void rows_shifted(Rows &shift, Rows &factor, const Rows &most, float by) {
    for (int e = 0; e < 2; ++e) {
        const float least = __int_as_float(0xff800000), now = fmaxf(shift.v[e], most.v[e] == least ? least : most.v[e] * by);
        asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(factor.v[e]) : "f"(now == least ? 0.f : shift.v[e] - now));
        shift.v[e] = now;
    }
}

__device__ __forceinline__ void rows_times(Rows &rows, const Rows &by) {
    for (int e = 0; e < 2; ++e)
        rows.v[e] *= by.v[e];
}

__device__ __forceinline__ float rows_value(const Rows &rows, int register_) {
    return rows.v[register_];
}

__device__ __forceinline__ void block(int rows, int t, int d, int dv, float scale, bool turned, const Element *k, size_t ldk, const Element *v,
           size_t ldv, float *parts, size_t ldparts, float *marks, size_t ldmarks, int row0, int repeats, int first,
           int steps, int whole_from, int whole_to, int low, int high, unsigned thread, Element *tiles) {
    const int warp = thread / 32, lane = thread % 32, wm = warp * 16;
    Element *const ring = tiles + 2176;
                if (thread % 16 * 8 >= d)
                for (int stage = 0; stage < 3; ++stage)
                    for (int i = 0; i < 16; ++i)
                        word_copy(ring + stage * 8704 + 0 + (thread / 16 + i * 2) * 136 + thread % 16 * 8, k, 0);
                if (thread % 16 * 8 >= dv)
                for (int stage = 0; stage < 3; ++stage)
                    for (int i = 0; i < 16; ++i)
                        word_copy(ring + stage * 8704 + 4352 + (thread / 16 + i * 2) * 136 + thread % 16 * 8, v, 0);
    for (int step = 0; step < 2; ++step) { // the rows of Q belong to the first group
        if (step < steps)             {
                Element *const to_k = ring + (step) % 3 * 8704;
                Element *const to_v = to_k + 4352;
                const int key0 = first + (step) * 32;
                            {
                const int r = thread / 16, c = thread % 16 * 8;
                Element *const at = to_k + r * 136 + c;
                {
                    if (c + 8 <= d && key0 + r + 30 < t) {
                                                const Element *source = k + (key0 + r) * ldk + c;
#pragma unroll
                        for (int i = 0; i < 16; ++i) {
                            word_copy(at + i * 272, source, 8);
                            source += 2 * ldk;
                        }
} else if (c < d) {
                                                const Element *source = k + (key0 + r) * ldk + c;
#pragma unroll
                        for (int i = 0; i < 16; ++i) {
                            const int left = key0 + r + i * 2 < t ? d - c : 0;
                            word_copy(at + i * 272, left > 0 ? source : k, left);
                            source += 2 * ldk;
                        }
}
                }
            }
            {
                const int r = thread / 16, c = thread % 16 * 8;
                Element *const at = to_v + r * 136 + c;
                {
                    if (c + 8 <= dv && key0 + r + 30 < t) {
                                                const Element *source = v + (key0 + r) * ldv + c;
#pragma unroll
                        for (int i = 0; i < 16; ++i) {
                            word_copy(at + i * 272, source, 8);
                            source += 2 * ldv;
                        }
} else if (c < dv) {
                                                const Element *source = v + (key0 + r) * ldv + c;
#pragma unroll
                        for (int i = 0; i < 16; ++i) {
                            const int left = key0 + r + i * 2 < t ? dv - c : 0;
                            word_copy(at + i * 272, left > 0 ? source : v, left);
                            source += 2 * ldv;
                        }
}
                }
            }
            }
copies_commit();
    }
    Rows shift, total;
    rows_lowest(shift);
    rows_set(total, 0);
    SumTile sum0;
    sum_clear(sum0);
    SumTile sum1;
    sum_clear(sum1);
    SumTile sum2;
    sum_clear(sum2);
    SumTile sum3;
    sum_clear(sum3);
    SumTile sum4;
    sum_clear(sum4);
    SumTile sum5;
    sum_clear(sum5);
    SumTile sum6;
    sum_clear(sum6);
    SumTile sum7;
    sum_clear(sum7);
    copies_wait<1>();
    __syncthreads();
                TileA q0;
            tile_a(q0, tiles + wm * 136 + 0, 136);
                TileA q1;
            tile_a(q1, tiles + wm * 136 + 16, 136);
                TileA q2;
            tile_a(q2, tiles + wm * 136 + 32, 136);
                TileA q3;
            tile_a(q3, tiles + wm * 136 + 48, 136);
                TileA q4;
            tile_a(q4, tiles + wm * 136 + 64, 136);
                TileA q5;
            tile_a(q5, tiles + wm * 136 + 80, 136);
                TileA q6;
            tile_a(q6, tiles + wm * 136 + 96, 136);
                TileA q7;
            tile_a(q7, tiles + wm * 136 + 112, 136);
    for (int step = 0; step < steps; ++step) {
        copies_wait<1>();
        __syncthreads();
        const int ahead = step + 2;
        if (ahead < steps)             {
                Element *const to_k = ring + (ahead) % 3 * 8704;
                Element *const to_v = to_k + 4352;
                const int key0 = first + (ahead) * 32;
                            {
                const int r = thread / 16, c = thread % 16 * 8;
                Element *const at = to_k + r * 136 + c;
                {
                    if (c + 8 <= d && key0 + r + 30 < t) {
                                                const Element *source = k + (key0 + r) * ldk + c;
#pragma unroll
                        for (int i = 0; i < 16; ++i) {
                            word_copy(at + i * 272, source, 8);
                            source += 2 * ldk;
                        }
} else if (c < d) {
                                                const Element *source = k + (key0 + r) * ldk + c;
#pragma unroll
                        for (int i = 0; i < 16; ++i) {
                            const int left = key0 + r + i * 2 < t ? d - c : 0;
                            word_copy(at + i * 272, left > 0 ? source : k, left);
                            source += 2 * ldk;
                        }
}
                }
            }
            {
                const int r = thread / 16, c = thread % 16 * 8;
                Element *const at = to_v + r * 136 + c;
                {
                    if (c + 8 <= dv && key0 + r + 30 < t) {
                                                const Element *source = v + (key0 + r) * ldv + c;
#pragma unroll
                        for (int i = 0; i < 16; ++i) {
                            word_copy(at + i * 272, source, 8);
                            source += 2 * ldv;
                        }
} else if (c < dv) {
                                                const Element *source = v + (key0 + r) * ldv + c;
#pragma unroll
                        for (int i = 0; i < 16; ++i) {
                            const int left = key0 + r + i * 2 < t ? dv - c : 0;
                            word_copy(at + i * 272, left > 0 ? source : v, left);
                            source += 2 * ldv;
                        }
}
                }
            }
            }
copies_commit();
        const Element *const of_k = ring + step % 3 * 8704;
        const Element *const of_v = of_k + 4352;
        // Scores of a block of keys.
        SumTile score0;
        sum_clear(score0);
        SumTile score1;
        sum_clear(score1);
        {
            TileB k0;
            tile_b_turned(k0, of_k + 0, 136);
            tile_multiply(score0, q0, k0);
            TileB k1;
            tile_b_turned(k1, of_k + 2176, 136);
            tile_multiply(score1, q0, k1);
        }
        {
            TileB k0;
            tile_b_turned(k0, of_k + 16, 136);
            tile_multiply(score0, q1, k0);
            TileB k1;
            tile_b_turned(k1, of_k + 2192, 136);
            tile_multiply(score1, q1, k1);
        }
        {
            TileB k0;
            tile_b_turned(k0, of_k + 32, 136);
            tile_multiply(score0, q2, k0);
            TileB k1;
            tile_b_turned(k1, of_k + 2208, 136);
            tile_multiply(score1, q2, k1);
        }
        {
            TileB k0;
            tile_b_turned(k0, of_k + 48, 136);
            tile_multiply(score0, q3, k0);
            TileB k1;
            tile_b_turned(k1, of_k + 2224, 136);
            tile_multiply(score1, q3, k1);
        }
        {
            TileB k0;
            tile_b_turned(k0, of_k + 64, 136);
            tile_multiply(score0, q4, k0);
            TileB k1;
            tile_b_turned(k1, of_k + 2240, 136);
            tile_multiply(score1, q4, k1);
        }
        {
            TileB k0;
            tile_b_turned(k0, of_k + 80, 136);
            tile_multiply(score0, q5, k0);
            TileB k1;
            tile_b_turned(k1, of_k + 2256, 136);
            tile_multiply(score1, q5, k1);
        }
        {
            TileB k0;
            tile_b_turned(k0, of_k + 96, 136);
            tile_multiply(score0, q6, k0);
            TileB k1;
            tile_b_turned(k1, of_k + 2272, 136);
            tile_multiply(score1, q6, k1);
        }
        {
            TileB k0;
            tile_b_turned(k0, of_k + 112, 136);
            tile_multiply(score0, q7, k0);
            TileB k1;
            tile_b_turned(k1, of_k + 2288, 136);
            tile_multiply(score1, q7, k1);
        }
        if (turned) {
            sum_negated(score0);
            sum_negated(score1);
        }
        if (step < whole_from || step >= whole_to) {
            sum_masked(score0, row0 + wm, repeats, first + step * 32 + 0, low, high, t);
            sum_masked(score1, row0 + wm, repeats, first + step * 32 + 16, low, high, t);
        }
        // The largest score of each row so far; what was summed falls by as much as it rose.
        Rows most;
        rows_lowest(most);
        rows_raised(most, score0);
        rows_raised(most, score1);
        rows_most(most);
        Rows factor;
        rows_shifted(shift, factor, most, scale);
        rows_times(total, factor);
        sum_by_rows(sum0, factor);
        sum_by_rows(sum1, factor);
        sum_by_rows(sum2, factor);
        sum_by_rows(sum3, factor);
        sum_by_rows(sum4, factor);
        sum_by_rows(sum5, factor);
        sum_by_rows(sum6, factor);
        sum_by_rows(sum7, factor);
        // Weights, and their sums of values.
        {
            TileA weight;
            sum_exp2(score0, scale, shift);
            rows_added(total, score0);
            sum_as_a(weight, score0);
            TileB v0;
            tile_b(v0, of_v + 0, 136);
            tile_multiply(sum0, weight, v0);
            TileB v1;
            tile_b(v1, of_v + 16, 136);
            tile_multiply(sum1, weight, v1);
            TileB v2;
            tile_b(v2, of_v + 32, 136);
            tile_multiply(sum2, weight, v2);
            TileB v3;
            tile_b(v3, of_v + 48, 136);
            tile_multiply(sum3, weight, v3);
            TileB v4;
            tile_b(v4, of_v + 64, 136);
            tile_multiply(sum4, weight, v4);
            TileB v5;
            tile_b(v5, of_v + 80, 136);
            tile_multiply(sum5, weight, v5);
            TileB v6;
            tile_b(v6, of_v + 96, 136);
            tile_multiply(sum6, weight, v6);
            TileB v7;
            tile_b(v7, of_v + 112, 136);
            tile_multiply(sum7, weight, v7);
        }
        {
            TileA weight;
            sum_exp2(score1, scale, shift);
            rows_added(total, score1);
            sum_as_a(weight, score1);
            TileB v0;
            tile_b(v0, of_v + 2176, 136);
            tile_multiply(sum0, weight, v0);
            TileB v1;
            tile_b(v1, of_v + 2192, 136);
            tile_multiply(sum1, weight, v1);
            TileB v2;
            tile_b(v2, of_v + 2208, 136);
            tile_multiply(sum2, weight, v2);
            TileB v3;
            tile_b(v3, of_v + 2224, 136);
            tile_multiply(sum3, weight, v3);
            TileB v4;
            tile_b(v4, of_v + 2240, 136);
            tile_multiply(sum4, weight, v4);
            TileB v5;
            tile_b(v5, of_v + 2256, 136);
            tile_multiply(sum5, weight, v5);
            TileB v6;
            tile_b(v6, of_v + 2272, 136);
            tile_multiply(sum6, weight, v6);
            TileB v7;
            tile_b(v7, of_v + 2288, 136);
            tile_multiply(sum7, weight, v7);
        }
    }
    copies_wait<0>();
    rows_total(total);
    {
        const int row = row0 + wm + 0 + lane / 4, col = lane % 4 * 2;
        if (row < rows) {
            if (lane % 4 == 0) {
                marks[row * ldmarks] = rows_value(shift, 0);
                marks[row * ldmarks + 1] = rows_value(total, 0);
            }
            if (col + 0 < dv)
                parts[row * ldparts + col + 0] = sum_value(sum0, 0);
            if (col + 1 < dv)
                parts[row * ldparts + col + 1] = sum_value(sum0, 1);
            if (col + 8 < dv)
                parts[row * ldparts + col + 8] = sum_value(sum0, 4);
            if (col + 9 < dv)
                parts[row * ldparts + col + 9] = sum_value(sum0, 5);
            if (col + 16 < dv)
                parts[row * ldparts + col + 16] = sum_value(sum1, 0);
            if (col + 17 < dv)
                parts[row * ldparts + col + 17] = sum_value(sum1, 1);
            if (col + 24 < dv)
                parts[row * ldparts + col + 24] = sum_value(sum1, 4);
            if (col + 25 < dv)
                parts[row * ldparts + col + 25] = sum_value(sum1, 5);
            if (col + 32 < dv)
                parts[row * ldparts + col + 32] = sum_value(sum2, 0);
            if (col + 33 < dv)
                parts[row * ldparts + col + 33] = sum_value(sum2, 1);
            if (col + 40 < dv)
                parts[row * ldparts + col + 40] = sum_value(sum2, 4);
            if (col + 41 < dv)
                parts[row * ldparts + col + 41] = sum_value(sum2, 5);
            if (col + 48 < dv)
                parts[row * ldparts + col + 48] = sum_value(sum3, 0);
            if (col + 49 < dv)
                parts[row * ldparts + col + 49] = sum_value(sum3, 1);
            if (col + 56 < dv)
                parts[row * ldparts + col + 56] = sum_value(sum3, 4);
            if (col + 57 < dv)
                parts[row * ldparts + col + 57] = sum_value(sum3, 5);
            if (col + 64 < dv)
                parts[row * ldparts + col + 64] = sum_value(sum4, 0);
            if (col + 65 < dv)
                parts[row * ldparts + col + 65] = sum_value(sum4, 1);
            if (col + 72 < dv)
                parts[row * ldparts + col + 72] = sum_value(sum4, 4);
            if (col + 73 < dv)
                parts[row * ldparts + col + 73] = sum_value(sum4, 5);
            if (col + 80 < dv)
                parts[row * ldparts + col + 80] = sum_value(sum5, 0);
            if (col + 81 < dv)
                parts[row * ldparts + col + 81] = sum_value(sum5, 1);
            if (col + 88 < dv)
                parts[row * ldparts + col + 88] = sum_value(sum5, 4);
            if (col + 89 < dv)
                parts[row * ldparts + col + 89] = sum_value(sum5, 5);
            if (col + 96 < dv)
                parts[row * ldparts + col + 96] = sum_value(sum6, 0);
            if (col + 97 < dv)
                parts[row * ldparts + col + 97] = sum_value(sum6, 1);
            if (col + 104 < dv)
                parts[row * ldparts + col + 104] = sum_value(sum6, 4);
            if (col + 105 < dv)
                parts[row * ldparts + col + 105] = sum_value(sum6, 5);
            if (col + 112 < dv)
                parts[row * ldparts + col + 112] = sum_value(sum7, 0);
            if (col + 113 < dv)
                parts[row * ldparts + col + 113] = sum_value(sum7, 1);
            if (col + 120 < dv)
                parts[row * ldparts + col + 120] = sum_value(sum7, 4);
            if (col + 121 < dv)
                parts[row * ldparts + col + 121] = sum_value(sum7, 5);
        }
    }
    {
        const int row = row0 + wm + 8 + lane / 4, col = lane % 4 * 2;
        if (row < rows) {
            if (lane % 4 == 0) {
                marks[row * ldmarks] = rows_value(shift, 1);
                marks[row * ldmarks + 1] = rows_value(total, 1);
            }
            if (col + 0 < dv)
                parts[row * ldparts + col + 0] = sum_value(sum0, 2);
            if (col + 1 < dv)
                parts[row * ldparts + col + 1] = sum_value(sum0, 3);
            if (col + 8 < dv)
                parts[row * ldparts + col + 8] = sum_value(sum0, 6);
            if (col + 9 < dv)
                parts[row * ldparts + col + 9] = sum_value(sum0, 7);
            if (col + 16 < dv)
                parts[row * ldparts + col + 16] = sum_value(sum1, 2);
            if (col + 17 < dv)
                parts[row * ldparts + col + 17] = sum_value(sum1, 3);
            if (col + 24 < dv)
                parts[row * ldparts + col + 24] = sum_value(sum1, 6);
            if (col + 25 < dv)
                parts[row * ldparts + col + 25] = sum_value(sum1, 7);
            if (col + 32 < dv)
                parts[row * ldparts + col + 32] = sum_value(sum2, 2);
            if (col + 33 < dv)
                parts[row * ldparts + col + 33] = sum_value(sum2, 3);
            if (col + 40 < dv)
                parts[row * ldparts + col + 40] = sum_value(sum2, 6);
            if (col + 41 < dv)
                parts[row * ldparts + col + 41] = sum_value(sum2, 7);
            if (col + 48 < dv)
                parts[row * ldparts + col + 48] = sum_value(sum3, 2);
            if (col + 49 < dv)
                parts[row * ldparts + col + 49] = sum_value(sum3, 3);
            if (col + 56 < dv)
                parts[row * ldparts + col + 56] = sum_value(sum3, 6);
            if (col + 57 < dv)
                parts[row * ldparts + col + 57] = sum_value(sum3, 7);
            if (col + 64 < dv)
                parts[row * ldparts + col + 64] = sum_value(sum4, 2);
            if (col + 65 < dv)
                parts[row * ldparts + col + 65] = sum_value(sum4, 3);
            if (col + 72 < dv)
                parts[row * ldparts + col + 72] = sum_value(sum4, 6);
            if (col + 73 < dv)
                parts[row * ldparts + col + 73] = sum_value(sum4, 7);
            if (col + 80 < dv)
                parts[row * ldparts + col + 80] = sum_value(sum5, 2);
            if (col + 81 < dv)
                parts[row * ldparts + col + 81] = sum_value(sum5, 3);
            if (col + 88 < dv)
                parts[row * ldparts + col + 88] = sum_value(sum5, 6);
            if (col + 89 < dv)
                parts[row * ldparts + col + 89] = sum_value(sum5, 7);
            if (col + 96 < dv)
                parts[row * ldparts + col + 96] = sum_value(sum6, 2);
            if (col + 97 < dv)
                parts[row * ldparts + col + 97] = sum_value(sum6, 3);
            if (col + 104 < dv)
                parts[row * ldparts + col + 104] = sum_value(sum6, 6);
            if (col + 105 < dv)
                parts[row * ldparts + col + 105] = sum_value(sum6, 7);
            if (col + 112 < dv)
                parts[row * ldparts + col + 112] = sum_value(sum7, 2);
            if (col + 113 < dv)
                parts[row * ldparts + col + 113] = sum_value(sum7, 3);
            if (col + 120 < dv)
                parts[row * ldparts + col + 120] = sum_value(sum7, 6);
            if (col + 121 < dv)
                parts[row * ldparts + col + 121] = sum_value(sum7, 7);
        }
    }
}

/* `steps` blocks of 32 keys, from the key `first` on. All queries see all keys of those from whole_from to whole_to. */
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
    const int first = begin / 32 * 32, steps = (end - first + 31) / 32;
    const int whole_from = all_from < first ? 0 : (all_from - first + 31) / 32;
    return {first, steps, min(whole_from, steps), max(0, min((all_end - first) / 32, steps))};
}

/* The share of a block in the keys that its tile sees: part `part` of `parts`. */
__device__ __forceinline__ Seen share_of(Seen all, int part, int parts) {
    const int from = int(int64_t(all.steps) * part / parts), to = int(int64_t(all.steps) * (part + 1) / parts);
    const int whole_from = min(all.whole_from - from, to - from), whole_to = min(all.whole_to - from, to - from);
    return {all.first + from * 32, to - from, whole_from < 0 ? 0 : whole_from, whole_to < 0 ? 0 : whole_to};
}
/* Begins copies of the tile's rows of Q, 0 for rows and numbers that are not there. */
__device__ __forceinline__ void pack_queries(Element *to, const Element *q, int64_t q_row, int64_t q_head, int row0,
                                             int rows, int repeats, int d, unsigned thread) {
    for (int i = int(thread); i < 256; i += 32) {
        const int row = i / 16, c = i % 16 * 8, at = row0 + row;
        const int left = at < rows ? d - c : 0;
        word_copy(to + row * 136 + c, left > 0 ? q + at / repeats * q_row + at % repeats * q_head + c : q, left);
    }
}
/* A sequence has its place in the parts and marks, whether it has as many queries as the longest or not. */
static __device__ __forceinline__ void compute_tile(const Args &p, unsigned number, unsigned thread, unsigned char *shared) {
    const int part = number % p.splits, row0 = number / p.splits % p.tiles * 16;
    const int of_head = number / p.splits / p.tiles; // of K and V, in the whole batch
    const int key_heads = p.heads / p.shared, key_head = of_head % key_heads;
    const int64_t batch = of_head / key_heads, first_row = int64_t(of_head) * p.s * p.shared * p.splits + part;
    const int64_t q0 = 0, k0 = 0, batch_k = batch;
    const int s = p.s, t = p.t, low = p.low, high = p.high;
    const int rows = s * p.shared;
    const int last = min(row0 + 16, rows) - 1;
    const Seen seen = share_of(seen_by(row0 / p.shared, last / p.shared, low, high, t), part, p.splits);
    const auto *const q = static_cast<const Element *>(p.q) + batch * p.q_batch + q0 * p.q_row + key_head * p.shared * p.q_head;
    const auto *const k = static_cast<const Element *>(p.k) + batch_k * p.k_batch + k0 * p.k_row + key_head * p.k_head;
    const auto *const v = static_cast<const Element *>(p.v) + batch_k * p.v_batch + k0 * p.v_row + key_head * p.v_head;
    auto *const tiles = reinterpret_cast<Element *>(shared);
    if (seen.steps > 0)
        pack_queries(tiles, q, p.q_row, p.q_head, row0, rows, p.shared, p.d, thread);
    block(rows, t, p.d, p.dv, p.scale, p.turned, k, p.k_row, v, p.v_row, static_cast<float *>(p.o) + first_row * p.dv,
          size_t(p.splits) * p.dv, p.lse + first_row * 2, size_t(p.splits) * 2, row0, p.shared, seen.first, seen.steps,
          seen.whole_from, seen.whole_to, low, high, thread, tiles);
}

extern "C" __global__ __launch_bounds__(32) void tensorop_kernel(const __grid_constant__ Args p) {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;"); // the kernel that combines the parts waits for all of this one
#endif
    extern __shared__ __align__(128) unsigned char raw[];
    compute_tile(p, blockIdx.x, threadIdx.x, raw);
}
} // namespace
