// What each group of threads does with the primitives, from `in` to `out`; primitives.py says what
// must come of it, and puts this together with the primitives.
#include <stdint.h>

struct alignas(128) CUtensorMap {
    uint64_t opaque[16];
};
#define T (int(threadIdx.x))
extern __shared__ __align__(1024) uint8_t shared[];
template <class X> __device__ __forceinline__ X get(const uint8_t *p, int i) {
    return reinterpret_cast<const X *>(p)[i];
}
template <class X> __device__ __forceinline__ void put(uint8_t *p, int i, X x) {
    reinterpret_cast<X *>(p)[i] = x;
}
__device__ __forceinline__ void fill() {
    for (int i = T; i < 4096; i += blockDim.x)
        shared[i] = 0xee;
    __syncthreads();
}
__device__ __forceinline__ void copy(const uint8_t *in, int bytes) {
    for (int i = T; i < bytes; i += blockDim.x)
        shared[i] = in[i];
    __syncthreads();
}
__device__ __forceinline__ void dump(uint8_t *out, const uint8_t *from, int bytes) {
    __syncthreads();
    for (int i = T; i < bytes; i += blockDim.x)
        out[i] = from[i];
}
// Registers of a thread from or to its place among all threads'.
template <int COUNT> __device__ __forceinline__ void take(float *v, const uint8_t *in, int begin) {
    for (int i = 0; i < COUNT; ++i)
        v[i] = get<float>(in, begin + COUNT * T + i);
}
template <int COUNT, class X> __device__ __forceinline__ void leave(uint8_t *out, const X *v) {
    for (int i = 0; i < COUNT; ++i)
        put<X>(out, COUNT * T + i, v[i]);
}
__device__ __forceinline__ void late() { // a millisecond
    for (long long begun = clock64(); clock64() - begun < 2000000;)
        ;
}
__device__ __forceinline__ uint64_t now() {
    uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

TEST(wgmma_shared_address) {
    put<uint32_t>(out, T, shared_address(shared + 4 * T) - shared_address(shared));
}

TEST(wgmma_thread_number) { put<int>(out, T, thread_number()); }

TEST(wgmma_pair_aligned) { put<int>(out, T, pair_aligned((const uint16_t *)in + T)); }

TEST(wgmma_elements_before_word) {
    put<int>(out, T, elements_before_word((const uint16_t *)in + T));
}

TEST(wgmma_word_store) { word_store((uint16_t *)out + 8 * T, get<uint4>(in, T)); }

TEST(wgmma_pair_store) { pair_store((uint16_t *)out + 2 * T, get<uint32_t>(in, T)); }

TEST(wgmma_floats_aligned) { put<int>(out, T, floats_aligned((const float *)in + T, 4)); }

TEST(wgmma_float_pair_store) {
    float_pair_store((float *)out + 2 * T, get<float>(in, 2 * T), get<float>(in, 2 * T + 1));
}

TEST(wgmma_floats_store) {
    const float4 v = get<float4>(in, T);
    floats_store((float *)out + 4 * T, v.x, v.y, v.z, v.w);
}

TEST(wgmma_pair_packed) {
    put<uint32_t>(out, T, pair_packed(get<float>(in, 2 * T), get<float>(in, 2 * T + 1)));
}

TEST(wgmma_element_value) { put<float>(out, T, element_value(get<uint16_t>(in, T))); }

TEST(wgmma_box_load) {
    fill();
    const uint32_t at = shared_address(shared), b = at + 32768;
    if (T == 0) {
        barrier_init(b, 1);
        barriers_visible();
    }
    shared_written();
    __syncthreads();
    if (T == 0) {
        barrier_expect(b, 2048);
        box_load(at, &map, b, 40, 5, 0, 1);
    }
    barrier_wait(b, 0);
    dump(out, shared, 2048);
}

TEST(wgmma_box_store) {
    copy(in, 16384);
    shared_written();
    __syncthreads();
    if (T == 0) {
        box_store(&map, shared_address(shared), 40, 5, 0, 1);
        tile_stores_done();
    }
}

TEST(wgmma_weighed) {
    copy(in, 8192);
    shared_written();
    __syncthreads();
    float a[32], d[32];
    uint32_t pairs[16] = {0};
    take<32>(a, in, 2048);
    take<32>(d, in, 2048 + 4096);
    scores_there(a);
    scores_packed(pairs, a);
    wgmma_begin();
#pragma unroll
    for (int step = 0; step < 4; ++step)
        wgmma_weighed(d, pairs, tile_of_values(shared_address(shared)), step);
    wgmma_commit();
    wgmma_wait<0>();
    sums_there(d);
    leave<32>(out, d);
}

TEST(wgmma_signs_turned) {
    copy(in, 8192);
    signs_turned(shared_address(shared));
    dump(out, shared, 8192);
}

TEST(wgmma_scores_masked) {
    float s[32];
    take<32>(s, in, 0);
    scores_masked(s, 80, 42, -30, 4, 200);
    scores_masked(s, 80, 42, -2147475456, 2147475456, 90);
    leave<32>(out, s);
}

TEST(wgmma_scores_exp2) {
    float s[32], shift[2];
    take<32>(s, in, 0);
    take<2>(shift, in, 1024);
    scores_exp2(s, 2, shift);
    leave<32>(out, s);
}

TEST(wgmma_sums_by_rows) {
    float s[32], by[2];
    take<32>(s, in, 0);
    take<2>(by, in, 2048);
    sums_by_rows(s, by);
    leave<32>(out, s);
}

TEST(wgmma_rows_lowest) {
    float rows[2] = {0};
    rows_lowest(rows);
    leave<2>(out, rows);
}

TEST(wgmma_rows_most) {
    float s[32], most[2] = {0};
    take<32>(s, in, 0);
    rows_most(most, s);
    leave<2>(out, most);
}

TEST(wgmma_rows_shifted) {
    float shift[2], most[2], factor[2] = {0};
    take<2>(shift, in, 1024);
    take<2>(most, in, 1536);
    rows_shifted(shift, factor, most, 2);
    leave<2>(out, shift);
    leave<2>(out + 256, factor);
}

TEST(wgmma_rows_added) {
    float s[32], total[2], factor[2];
    take<32>(s, in, 0);
    take<2>(total, in, 2048);
    take<2>(factor, in, 2560);
    rows_added(total, factor, s);
    leave<2>(out, total);
}

TEST(wgmma_rows_total) {
    float rows[2];
    take<2>(rows, in, 2048);
    rows_total(rows);
    leave<2>(out, rows);
}

TEST(wgmma_rows_logarithm) {
    float total[2], shift[2], logarithm[2] = {0};
    take<2>(total, in, 2560);
    take<2>(shift, in, 2048);
    rows_logarithm(logarithm, total, shift);
    leave<2>(out, logarithm);
}

TEST(wgmma_rows_inverted) {
    float rows[2];
    take<2>(rows, in, 2048);
    rows_inverted(rows);
    leave<2>(out, rows);
}

TEST(wgmma_word_read) { put<uint4>(out, T, word_read((const uint16_t *)in + 8 * T, T % 11 - 1)); }

TEST(wgmma_half_word_read) {
    put<uint2>(out, T, half_word_read((const uint16_t *)(in + 8) + 4 * T, T % 7 - 1));
}

TEST(wgmma_pair_read) {
    put<uint32_t>(out, T, pair_read((const uint16_t *)(in + 4) + 2 * T, T % 5 - 1));
}

TEST(wgmma_pairs_joined) {
    put<uint32_t>(out, T,
                  pairs_joined(get<uint32_t>(in, 2 * T), get<uint32_t>(in, 2 * T + 1), T % 2));
}

TEST(wgmma_warp_multiply) {
    uint32_t r[6];
    float d[4];
    for (int i = 0; i < 6; ++i)
        r[i] = get<uint32_t>(in, 6 * T + i);
    for (int i = 0; i < 4; ++i)
        d[i] = get<float>(in + 32 * 6 * 4, 4 * T + i);
    warp_multiply(d, r[0], r[1], r[2], r[3], r[4], r[5]);
    for (int i = 0; i < 4; ++i)
        put<float>(out, 4 * T + i, d[i]);
}

TEST(wgmma_flipped) { put<int>(out, T, flipped(T % 2, T / 2)); }

TEST(wgmma_chunk_swizzled) { put<int>(out, T, chunk_swizzled(T % 8, T / 8 % 8)); }

TEST(wgmma_words_shifted) {
    put<uint4>(out, T, words_shifted(get<uint4>(in, 2 * T), get<uint4>(in, 2 * T + 1), T % 8));
}

TEST(wgmma_pair_shifted) {
    put<uint32_t>(out, T,
                  pair_shifted(get<uint32_t>(in, 2 * T), get<uint32_t>(in, 2 * T + 1), T % 3));
}

TEST(wgmma_shared_word) {
    copy(in, 16384);
    shared_written();
    __syncthreads();
    put<uint4>(out, T, shared_word(shared_address(shared) + 16 * (T * 5 % 64)));
}

TEST(wgmma_shared_element) {
    copy(in, 16384);
    shared_written();
    __syncthreads();
    put<uint16_t>(out, T, shared_element(shared_address(shared) + 2 * (T * 7 % 64)));
}

TEST(wgmma_shared_element_pair) {
    copy(in, 16384);
    shared_written();
    __syncthreads();
    put<uint32_t>(out, T, shared_element_pair(shared_address(shared) + 4 * (T * 7 % 64)));
}

TEST(wgmma_shared_pair_store) {
    fill();
    shared_pair_store(shared_address(shared) + 8 * (T * 3 % 64), get<float>(in, 2 * T),
                      get<float>(in, 2 * T + 1));
    dump(out, shared, 512);
}

TEST(wgmma_shared_float_store) {
    fill();
    shared_float_store(shared_address(shared) + 4 * (T * 3 % 64), get<float>(in, T));
    dump(out, shared, 256);
}

TEST(wgmma_matrix_store) {
    fill();
    matrix_store(shared_address(shared) + 16 * (T * 7 % 32), get<uint32_t>(in, 4 * T),
                 get<uint32_t>(in, 4 * T + 1), get<uint32_t>(in, 4 * T + 2),
                 get<uint32_t>(in, 4 * T + 3));
    dump(out, shared, 512);
}

TEST(wgmma_barrier) {
    uint32_t *words = (uint32_t *)shared;
    if (T < 64)
        words[T] = 0;
    if (T < 4)
        words[8192 + T] = 0;
    __syncthreads();
    const uint32_t at = shared_address(shared), b = at + 32768;
    if (T == 0) {
        barrier_init(b, 32);
        barriers_visible();
    }
    __syncthreads();
    for (int phase = 0; phase < 2; ++phase)
        if (T < 32) {
            late();
            ((volatile uint32_t *)words)[32 * phase + T] = get<uint32_t>(in, 32 * phase + T);
            barrier_arrive(b);
        } else {
            barrier_wait(b, phase);
            put<uint32_t>(out, 32 * phase + T - 32,
                          ((volatile uint32_t *)words)[32 * phase + T - 32]);
        }
}

TEST(wgmma_tile_load) {
    fill();
    const uint32_t at = shared_address(shared), b = at + 32768;
    if (T == 0) {
        barrier_init(b, 1);
        barriers_visible();
    }
    shared_written();
    __syncthreads();
    if (T == 0) {
        barrier_expect(b, 2048);
        tile_load(at, &map, b, 40, 5, 1, 0x1000000000000000u);
    }
    barrier_wait(b, 0);
    dump(out, shared, 2048);
}

TEST(wgmma_prefetch) {
    fill();
    const uint32_t at = shared_address(shared), b = at + 32768;
    if (T == 0) {
        barrier_init(b, 1);
        barriers_visible();
    }
    shared_written();
    __syncthreads();
    if (T == 0) {
        map_prefetch(&map);
        tile_prefetch(&map, 40, 5, 1);
        barrier_expect(b, 2048);
        tile_load(at, &map, b, 40, 5, 1, 0x1000000000000000u);
    }
    barrier_wait(b, 0);
    dump(out, shared, 2048);
}

TEST(wgmma_tile_load_shared) {
    fill();
    const uint32_t at = shared_address(shared), b = at + 32768;
    if (T == 0) {
        barrier_init(b, 1);
        barriers_visible();
    }
    shared_written();
    __syncthreads();
    const int rank = cluster_rank();
    if (T == 0)
        barrier_expect(b, 2048);
    cluster_barrier();
    if (rank == 0 && T == 0)
        tile_load_shared(at, &map, b, 40, 5, 1, 3);
    barrier_wait(b, 0);
    dump(out + rank * 2048, shared, 2048);
    cluster_barrier();
}

TEST(wgmma_blocks_mask) { put<int>(out, T, blocks_mask(T % 2, 2, T / 2 % 3)); }

TEST(wgmma_cluster_rank) {
    if (T == 0)
        put<uint32_t>(out, blockIdx.x, cluster_rank());
}

TEST(wgmma_cluster_size) {
    if (T == 0)
        put<uint32_t>(out, blockIdx.x, cluster_size());
}

TEST(wgmma_is_of_share) { put<int>(out, T, is_of_share(T % 16, 16, 5, T / 16)); }

TEST(wgmma_load_remote) {
    const int rank = blockIdx.x;
    float4 *fours = (float4 *)shared;
    fours[T] = make_float4(0, 0, 0, 0);
    __syncthreads();
    if (rank)
        late();
    fours[T] = get<float4>(in, 64 * rank + T);
    cluster_barrier();
    put<float4>(out, 64 * rank + T,
                load_remote(shared_address(shared) + 16 * (T * 5 % 64), 1 - rank));
    cluster_barrier();
}

TEST(wgmma_barrier_arrive_at) {
    const uint32_t at = shared_address(shared), b = at + 32768;
    if (T == 0) {
        barrier_init(b, 64);
        barriers_visible();
    }
    cluster_ready();
    if (cluster_rank() == 1) {
        late();
        put<uint32_t>(out, T, T + 1);
        __threadfence();
        barrier_arrive_at(b, 0);
    } else {
        barrier_wait(b, 0);
        put<uint32_t>(out, 64 + T, ((volatile uint32_t *)out)[T]);
    }
    cluster_barrier();
}

TEST(wgmma_named) {
    volatile uint32_t *words = (uint32_t *)shared;
    words[T] = 0;
    __syncthreads();
    if (T < 32) {
        late();
        words[T] = get<uint32_t>(in, T);
        named_arrive(1, 64);
    } else {
        named_barrier(1, 64);
        put<uint32_t>(out, T - 32, words[T - 32]);
    }
}

TEST(wgmma_tile_store) {
    copy(in, 16384);
    shared_written();
    __syncthreads();
    if (T == 0) {
        tile_store(&map, shared_address(shared), 40, 5, 1, 0x1000000000000000u);
        tile_stores_done();
    }
}

TEST(wgmma_tile_stores_read) {
    copy(in, 16384);
    shared_written();
    __syncthreads();
    if (T == 0) {
        tile_store(&map, shared_address(shared), 40, 5, 1, 0x1000000000000000u);
        tile_stores_read<0>();
        for (int i = 0; i < 2048; ++i)
            shared[i] = 0;
        shared_written();
        tile_stores_done();
    }
}

TEST(wgmma_tile_stores_done) {
    copy(in, 16384);
    shared_written();
    __syncthreads();
    if (T == 0) {
        for (int i = 0; i < 64; ++i) // the last one waits behind these
            tile_store(&map, shared_address(shared) + 2048, 40, 5, 0, 0x1000000000000000u);
        tile_store(&map, shared_address(shared), 40, 5, 1, 0x1000000000000000u);
        tile_stores_done();
        put<uint16_t>(out, 4000, ((volatile uint16_t *)out)[(17 + 5) * 72 + 40]);
    }
}

TEST(wgmma_shared_written) {
    copy(in, 16384);
    shared_written();
    __syncthreads();
    float d[32];
    const uint32_t at = shared_address(shared);
    const uint64_t a = tile_of_a(at), b = tile_of_b(at + 8192);
    volatile uint32_t *words = (uint32_t *)shared + T / 32 * 512;
    for (int i = 0; i < 16; ++i) // the warp's own rows of A, a bank each
        words[T % 32 * 16 + i] =
            get<uint32_t>(in, 65536 / 4 - 2048 + T / 32 * 512 + T % 32 * 16 + i);
    shared_written();
    __syncwarp();
    wgmma_begin();
    for (int kk = 0; kk < 4; ++kk)
        wgmma(d, a, 0, b, kk, kk > 0);
    wgmma_commit();
    wgmma_wait<0>();
    for (int i = 0; i < 32; ++i)
        put<float>(out, 32 * T + i, d[i]);
}

TEST(wgmma_wgmma) {
    copy(in, 16384);
    shared_written();
    __syncthreads();
    float d[32];
    const uint32_t at = shared_address(shared);
    const uint64_t a = tile_of_a(at), b = tile_of_b(at + 8192);
    for (int keeps = 1; keeps >= 0; --keeps) {
        for (int i = 0; i < 32; ++i)
            d[i] = get<float>(in, 4096 + 32 * T + i);
        wgmma_begin();
        for (int kk = 0; kk < 4; ++kk)
            wgmma(d, a, 0, b, kk, keeps || kk > 0);
        wgmma_commit();
        wgmma_wait<0>();
        for (int i = 0; i < 32; ++i)
            put<float>(out, (1 - keeps) * 4096 + 32 * T + i, d[i]);
    }
}

TEST(wgmma_overwritten) {
    copy(in, 16384);
    shared_written();
    __syncthreads();
    float d[32];
    const uint32_t at = shared_address(shared);
    const uint64_t a = tile_of_a(at), b = tile_of_b(at + 8192);
    wgmma_begin();
    for (int again = 0; again < 16; ++again) // some thousand cycles of work
        for (int kk = 0; kk < 4; ++kk)
            wgmma(d, a, 0, b, kk, again + kk > 0);
    wgmma_commit();
    wgmma_wait<0>();
    for (int i = T; i < 1024; i += 128)
        ((volatile uint4 *)shared)[i].x = 0x40004000; // 2, or 1 and a half
    // waits again, so that only the stores are early where a primitive is missing
    asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
    for (int i = 0; i < 32; ++i)
        put<float>(out, 32 * T + i, d[i]);
}

TEST(wgmma_groups) {
    copy(in, 16384);
    for (int i = T; i < 16384; i += 128)
        shared[16384 + i] = shared[i];
    shared_written();
    __syncthreads();
    float d[32], e[32];
    const uint32_t at = shared_address(shared);
    const uint64_t a = tile_of_a(at), b = tile_of_b(at + 8192);
    wgmma_begin();
    for (int again = 0; again < 16; ++again)
        for (int kk = 0; kk < 4; ++kk)
            wgmma(d, a, 0, b, kk, again + kk > 0);
    wgmma_commit();
    wgmma(e, tile_of_a(at + 16384), 0, tile_of_b(at + 24576), 0, 0);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    wgmma_wait<1>();
    for (int i = T; i < 1024; i += 128)
        ((volatile uint4 *)shared)[i].x = 0x40004000;
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    for (int i = 0; i < 32; ++i)
        put<float>(out, 32 * T + i, d[i]);
    if (e[0] == 12345.f) // of small whole numbers no product is
        put<float>(out, 0, e[0]);
}

TEST(wgmma_registers) {
    if (T < 128)
        registers_fewer<40>();
    else {
        float v[176]; // more than 65536 / 384 registers hold: without the others' they are spilled
        registers_more<232>();
        for (int i = 0; i < 176; ++i)
            v[i] = get<float>(in, i * 64 + T % 64);
        asm volatile("" ::: "memory");
        for (int i = 0; i < 176; ++i)
            put<float>(out, (175 - i) * 256 + T - 128, v[i]);
    }
    __syncthreads(); // registers of threads that ended would be free too
}

TEST(wgmma_previous_first) {
    next_may_begin();
    late();
    put<uint32_t>(out, T, get<uint32_t>(in, T));
    if (T == 0)
        put<uint64_t>(out, 256, now());
}

TEST(wgmma_previous) {
    if (T == 0)
        put<uint64_t>(out, 257, now());
    previous_done();
    put<uint32_t>(out, 256 + T, ((volatile uint32_t *)out)[T]);
}

TEST(wmma_word_copy) {
    fill();
    word_copy((Element *)shared + 8 * T, (const Element *)in + 8 * T, T % 11 - 1);
    copies_commit();
    copies_wait<0>();
    put<uint4>(out, T, ((uint4 *)shared)[T]);
}

TEST(wmma_elements_copy) {
    fill();
    elements_copy((Element *)shared + 8 * T, (const Element *)in + 8 * T + 1, T % 11 - 1);
    put<uint4>(out, T, ((uint4 *)shared)[T]);
}

TEST(wmma_tiles) {
    fill();
    copy(in, 1536);
    SumTile sum;
    TileA a;
    TileB b;
    wmma::fill_fragment(sum, 7.f);
    wmma::fill_fragment(a, Element(0.f));
    wmma::fill_fragment(b, Element(0.f));
    sum_clear(sum);
    tile_a(a, (const Element *)shared, 24);
    tile_b(b, (const Element *)(shared + 768), 24);
    tile_multiply(sum, a, b);
    sum_spread((float *)(shared + 2048), sum, 20);
    dump(out, shared + 2048, 1280);
}

TEST(wmma_value) { put<float>(out, T, value(get<Element>(in, T))); }

TEST(wmma_pair_aligned) { put<int>(out, T, pair_aligned((const Element *)in + T)); }

TEST(wmma_floats_aligned) { put<int>(out, T, floats_aligned((const float *)in + T, 2)); }

TEST(wmma_float_pair_put) {
    float_pair_put((float *)out + 4 * T, get<float>(in, 2 * T), get<float>(in, 2 * T + 1), T & 1,
                   T & 2);
}

TEST(wmma_pair_put) {
    pair_put((Element *)out + 4 * T, get<float>(in, 2 * T), get<float>(in, 2 * T + 1), T & 1,
             T & 2);
}

TEST(mma_word_copy) {
    fill();
    word_copy((Element *)shared + 8 * T, (const Element *)in + 8 * T, T % 11 - 1);
    copies_commit();
    copies_wait<0>();
    put<uint4>(out, T, ((uint4 *)shared)[T]);
}

TEST(mma_whole_copy) {
    fill();
    whole_copy((Element *)shared + 8 * T, (const Element *)in + 8 * T);
    copies_commit();
    copies_wait<0>();
    put<uint4>(out, T, ((uint4 *)shared)[T]);
}

TEST(mma_elements_copy) {
    fill();
    elements_copy((Element *)shared + 8 * T, (const Element *)in + 8 * T + 1, T % 11 - 1);
    put<uint4>(out, T, ((uint4 *)shared)[T]);
}

TEST(mma_pair_copy) {
    fill();
    pair_copy((Element *)shared + 2 * T, (const Element *)in + 2 * T, T % 5 - 1);
    copies_commit();
    copies_wait<0>();
    put<uint32_t>(out, T, ((uint32_t *)shared)[T]);
}

TEST(mma_near) {
    fill();
    Near near = {};
    near_read(near, (const Element *)in + 9 * T, T % 11 - 1);
    near_put((Element *)shared + 8 * T, near);
    put<uint4>(out, T, ((uint4 *)shared)[T]);
}

TEST(mma_value) { put<float>(out, T, value(get<Element>(in, T))); }

TEST(mma_float_pair_put) {
    float_pair_put((float *)out + 4 * T, get<float>(in, 2 * T), get<float>(in, 2 * T + 1), T & 1,
                   T & 2);
}

TEST(mma_page_of) {
    const Pages pages = {(const int *)in, 160, 3};
    Page page;
    page_of(page, &pages, T, T % 5 ? 64 : T);
    put(out, T, page.number);
}

TEST(mma_page_copy) {
    fill();
    const Pages pages = {(const int *)in, 160, 3};
    page_copy((Element *)shared + 8 * T, (const Element *)in + 64, &pages, {pages.table[T / 8]},
              T & ~3, T & 3, 8, 16, T % 11 - 1, T % 2);
    copies_commit();
    copies_wait<0>();
    put<uint4>(out, T, ((uint4 *)shared)[T]);
}

TEST(mma_pair_put) {
    pair_put((Element *)out + 4 * T, get<float>(in, 2 * T), get<float>(in, 2 * T + 1), T & 1,
             T & 2);
}

TEST(mma_row_pairs_put) {
    const float s[4] = {get<float>(in, 4 * T), get<float>(in, 4 * T + 1), get<float>(in, 4 * T + 2),
                        get<float>(in, 4 * T + 3)};
    row_pairs_put((Element *)out + 1 + T / 4 * 19 + T % 4 * 2, s, T / 4 < 7 ? 13 - T % 4 * 2 : 0,
                  false);
}

TEST(mma_tile_a) {
    copy(in, 768);
    TileA tile = {7, 7, 7, 7};
    tile_a(tile, (const Element *)shared, 24);
    leave<4>(out, tile.r);
}

TEST(mma_tile_a_turned) {
    copy(in, 768);
    TileA tile = {7, 7, 7, 7};
    tile_a_turned(tile, (const Element *)shared, 24);
    leave<4>(out, tile.r);
}

TEST(mma_tile_b) {
    copy(in, 768);
    TileB tile = {7, 7, 7, 7};
    tile_b(tile, (const Element *)shared, 24);
    leave<4>(out, tile.r);
}

TEST(mma_tile_b_turned) {
    copy(in, 768);
    TileB tile = {7, 7, 7, 7};
    tile_b_turned(tile, (const Element *)shared, 24);
    leave<4>(out, tile.r);
}

TEST(mma_tile_multiply) {
    copy(in, 1536);
    SumTile sum;
    TileA a;
    TileB b;
    take<8>(sum.v, in, 384);
    tile_a(a, (const Element *)shared, 24);
    tile_b(b, (const Element *)(shared + 768), 24);
    tile_multiply(sum, a, b);
    leave<8>(out, sum.v);
}

TEST(mma_sum_clear) {
    SumTile sum;
    take<8>(sum.v, in, 0);
    sum_clear(sum);
    leave<8>(out, sum.v);
}

TEST(mma_sum_negated) {
    SumTile sum;
    take<8>(sum.v, in, 0);
    sum_negated(sum);
    leave<8>(out, sum.v);
}

TEST(mma_sum_masked) {
    SumTile sum;
    take<8>(sum.v, in, 0);
    sum_masked(sum, 80, 2, 42, -5, 4, 50);
    leave<8>(out, sum.v);
}

TEST(mma_sum_exp2) {
    SumTile sum;
    Rows shift;
    take<8>(sum.v, in, 0);
    take<2>(shift.v, in, 1024);
    sum_exp2(sum, 2, shift);
    leave<8>(out, sum.v);
}

TEST(mma_sum_by_rows) {
    SumTile sum;
    Rows by;
    take<8>(sum.v, in, 0);
    take<2>(by.v, in, 2048);
    sum_by_rows(sum, by);
    leave<8>(out, sum.v);
}

TEST(mma_sum_as_a) {
    SumTile sum;
    TileA tile = {7, 7, 7, 7};
    take<8>(sum.v, in, 0);
    sum_as_a(tile, sum);
    leave<4>(out, tile.r);
}

TEST(mma_sum_value) {
    SumTile sum;
    take<8>(sum.v, in, 0);
    put<float>(out, T, sum_value(sum, 5));
}

TEST(mma_rows_set) {
    Rows rows;
    take<2>(rows.v, in, 0);
    rows_set(rows, 2.5f);
    leave<2>(out, rows.v);
}

TEST(mma_rows_lowest) {
    Rows rows;
    take<2>(rows.v, in, 0);
    rows_lowest(rows);
    leave<2>(out, rows.v);
}

TEST(mma_rows_raised) {
    SumTile sum;
    Rows rows;
    take<8>(sum.v, in, 0);
    take<2>(rows.v, in, 1024);
    rows_raised(rows, sum);
    leave<2>(out, rows.v);
}

TEST(mma_rows_added) {
    SumTile sum;
    Rows rows;
    take<8>(sum.v, in, 0);
    take<2>(rows.v, in, 2048);
    rows_added(rows, sum);
    leave<2>(out, rows.v);
}

TEST(mma_rows_most) {
    Rows rows;
    take<2>(rows.v, in, 1024);
    rows_most(rows);
    leave<2>(out, rows.v);
}

TEST(mma_rows_total) {
    Rows rows;
    take<2>(rows.v, in, 2048);
    rows_total(rows);
    leave<2>(out, rows.v);
}

TEST(mma_rows_shifted) {
    Rows shift, most, factor = {7, 7};
    take<2>(shift.v, in, 1024);
    take<2>(most.v, in, 1536);
    rows_shifted(shift, factor, most, 2);
    leave<2>(out, shift.v);
    leave<2>(out + 256, factor.v);
}

TEST(mma_rows_times) {
    Rows rows, by;
    take<2>(rows.v, in, 2048);
    take<2>(by.v, in, 0);
    rows_times(rows, by);
    leave<2>(out, rows.v);
}

TEST(mma_rows_inverted) {
    Rows rows;
    take<2>(rows.v, in, 2048);
    rows_inverted(rows);
    leave<2>(out, rows.v);
}

TEST(mma_rows_logarithm) {
    Rows rows, shift;
    take<2>(rows.v, in, 2560);
    take<2>(shift.v, in, 2048);
    rows_logarithm(rows, shift);
    leave<2>(out, rows.v);
}

TEST(mma_rows_value) {
    Rows rows;
    take<2>(rows.v, in, 0);
    put<float>(out, T, rows_value(rows, 1));
}

TEST(fma_word_copy) {
    fill();
    word_copy((float *)shared + 4 * T, (const float *)in + 4 * T, T % 7 - 1);
    copies_commit();
    copies_wait<0>();
    put<uint4>(out, T, ((uint4 *)shared)[T]);
}

TEST(fma_float_copy) {
    fill();
    float_copy((float *)shared + T, (const float *)in + T, T % 7 - 1);
    copies_commit();
    copies_wait<0>();
    put<uint32_t>(out, T, ((uint32_t *)shared)[T]);
}

TEST(fma_floats_at) {
    copy(in, 1024);
    put<float4>(out, T, floats_at((const float *)shared + T * 5 % 64 * 4));
}

TEST(fma_word_read) { put<float4>(out, T, word_read((const float *)in + 4 * T, T % 7 - 1)); }

TEST(fma_floats_read) {
    put<float4>(out, T, floats_read((const float *)in + 1 + 4 * T, T % 7 - 1));
}

TEST(fma_floats_put) {
    const float4 v = get<float4>(in, T);
    floats_put((float *)out + 4 * T, v.x, v.y, v.z, v.w, T % 7 - 1, T % 2 == 0);
}

TEST(tf32_parts) {
    uint32_t r[8] = {};
    for (int i = 0; i < 4; ++i)
        r[i] = get<uint32_t>(in, 4 * T + i);
    parts(r, r + 4);
    leave<8>(out, r);
}

TEST(tf32_rows_of_a) {
    copy(in, 2304);
    TileA a = {};
    rows_of_a(a, (const float *)shared, 24);
    leave<4>(out, a.r);
}

TEST(tf32_columns_of_a) {
    copy(in, 2304);
    TileA a = {};
    columns_of_a(a, (const float *)shared, 24);
    leave<4>(out, a.r);
}

TEST(tf32_rows_of_b) {
    copy(in, 2304);
    TileB b = {};
    rows_of_b(b, (const float *)shared, 24);
    leave<4>(out, b.r);
}

TEST(tf32_columns_of_b) {
    copy(in, 2304);
    TileB b = {};
    columns_of_b(b, (const float *)shared, 24);
    leave<4>(out, b.r);
}

TEST(tf32_tiles_multiply) {
    TileA a;
    TileB b;
    SumTile sum;
    for (int i = 0; i < 4; ++i) {
        a.r[i] = get<uint32_t>(in, 8 * T + i), a.low[i] = get<uint32_t>(in, 8 * T + 4 + i);
        b.r[i] = get<uint32_t>(in, 256 + 8 * T + i), b.low[i] = get<uint32_t>(in, 260 + 8 * T + i);
    }
    take<8>(sum.v, in, 512);
    tiles_multiply(sum, a, b);
    leave<8>(out, sum.v);
}

TEST(tf32_product) {
    uint32_t a[4], b[4];
    SumTile sum;
    for (int i = 0; i < 4; ++i)
        a[i] = get<uint32_t>(in, 8 * T + i), b[i] = get<uint32_t>(in, 256 + 8 * T + i);
    take<8>(sum.v, in, 512);
    product(sum, a, b);
    leave<8>(out, sum.v);
}

TEST(tf32_sum_clear) {
    SumTile sum;
    take<8>(sum.v, in, 0);
    sum_clear(sum);
    leave<8>(out, sum.v);
}

TEST(tf32_sum_value) {
    SumTile sum;
    take<8>(sum.v, in, 0);
    put<float>(out, T, sum_value(sum, 5));
}

TEST(tf32_float_pair_put) {
    float_pair_put((float *)out + 4 * T, get<float>(in, 2 * T), get<float>(in, 2 * T + 1), T & 1,
                   T & 2);
}

TEST(tf32_wgmma_barrier) {
    uint32_t *words = (uint32_t *)shared;
    float *const b = (float *)shared + 8192;
    if (T < 64)
        words[T] = 0;
    if (T == 0)
        barrier_init(b, 32);
    __syncthreads();
    for (int phase = 0; phase < 2; ++phase)
        if (T < 32) {
            late();
            ((volatile uint32_t *)words)[32 * phase + T] = get<uint32_t>(in, 32 * phase + T);
            barrier_arrive(b);
        } else {
            barrier_wait(b, phase);
            put<uint32_t>(out, 32 * phase + T - 32,
                          ((volatile uint32_t *)words)[32 * phase + T - 32]);
        }
}

TEST(tf32_wgmma_word_read) {
    Word word = {};
    word_read(word, (const float *)in + 4 * T, T % 7 - 1);
    leave<4>(out, word.v);
}

TEST(tf32_wgmma_floats_read) {
    Word word = {};
    floats_read(word, (const float *)in + 1 + 4 * T, T % 7 - 1);
    leave<4>(out, word.v);
}

TEST(tf32_wgmma_words_turned) {
    Word w[4];
    for (int i = 0; i < 4; ++i)
        for (int e = 0; e < 4; ++e)
            w[i].v[e] = get<float>(in, 16 * T + 4 * i + e);
    words_turned(w[0], w[1], w[2], w[3]);
    for (int i = 0; i < 4; ++i)
        for (int e = 0; e < 4; ++e)
            put<float>(out, 16 * T + 4 * i + e, w[i].v[e]);
}

TEST(tf32_wgmma_parts_put) {
    fill();
    Word word;
    take<4>(word.v, in, 0);
    parts_put((float *)out + 4 * T, (float *)out + 256 + 4 * T, word);
}

TEST(tf32_wgmma_products) {
    TileA a[4], other;
    float sum[32];
    for (int i = 0; i < 20; ++i)
        (i < 16 ? a[i / 4].r[i % 4] : other.low[i % 4]) = get<uint32_t>(in, 20 * T + i);
    copy(in + 10240, 18688);
    shared_written();
    __syncthreads();
    const float *const b = (const float *)shared;
    take<32>(sum, in, 7232);
    products_begin();
    group_multiply_low(sum, other, b, 0, 0);
    for (int step = 0; step < 3; ++step)
        group_multiply(sum, a[step], b, step, 1);
    group_product(sum, a[3].r, b, 3, 1);
    group_multiply_rest(sum, a[2], b + 2336, 2);
    products_wait();
    leave<32>(out, sum);
}

TEST(fma_row_in_warp) { put<int>(out, T, row_in_warp(T, 3)); }

TEST(fma_column_in_warp) { put<int>(out, T, column_in_warp(T, 4)); }
