// What those primitives of cuda-wgmma mean that take no tensor map, on this machine's processor: a
// block's threads are threads, and a warp's products are made of what its lanes hand each other.
// f16; a cluster is one block.
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define __global__
#define __device__
#define __forceinline__ inline
#define __grid_constant__
#define __shared__
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))

struct Index {
    unsigned x, z;
};
struct uint2 {
    uint32_t x, y;
};
struct uint4 {
    uint32_t x, y, z, w;
};
struct float4 {
    float x, y, z, w;
};
struct Held {
    uint32_t a[4], b[2];
};

static thread_local Index threadIdx;
static Index blockIdx;
static pthread_barrier_t of_block, of_warp[16];
static Held held[16][32];

static inline int min(int a, int b) { return a < b ? a : b; }
static uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w) { return {x, y, z, w}; }
static void __syncthreads() { pthread_barrier_wait(&of_block); }
static void __trap() { __builtin_trap(); }
static void __syncwarp() { pthread_barrier_wait(&of_warp[threadIdx.x / 32]); }

static float element_value(uint16_t bits) {
    _Float16 element;
    memcpy(&element, &bits, 2);
    return float(element);
}
static uint16_t element_of(float x) {
    const _Float16 element(x);
    uint16_t bits;
    memcpy(&bits, &element, 2);
    return bits;
}
static uint32_t pair_packed(float low, float high) {
    return element_of(low) | uint32_t(element_of(high)) << 16;
}

// Elements from the first `left` on are not read: they may lie beyond an end.
template <class Word> static Word read(const uint16_t *p, int left) {
    uint16_t at[sizeof(Word) / 2] = {};
    if (left > 0 && reinterpret_cast<uintptr_t>(p) % sizeof(Word))
        abort();
    for (int e = 0; e < min(left, sizeof(Word) / 2); ++e)
        at[e] = p[e];
    Word word;
    memcpy(&word, at, sizeof word);
    return word;
}
static uint4 word_read(const uint16_t *p, int left) { return read<uint4>(p, left); }
static uint2 half_word_read(const uint16_t *p, int left) { return read<uint2>(p, left); }
static uint32_t pair_read(const uint16_t *p, int left) { return read<uint32_t>(p, left); }
static uint32_t pairs_joined(uint32_t low, uint32_t high, int upper) {
    return upper ? low >> 16 | (high & 0xffff0000u) : (low & 0xffff) | high << 16;
}
static void line_prefetch(const uint16_t *) {}
static void previous_done() {}
static void next_may_begin() {}
static int elements_before_word(const uint16_t *p) {
    return int(-reinterpret_cast<uintptr_t>(p) & 15) / 2;
}
static bool floats_aligned(const float *p, int count) {
    return reinterpret_cast<uintptr_t>(p) % (4 * count) == 0;
}
static void word_store(uint16_t *p, uint4 v) {
    if (elements_before_word(p))
        abort();
    memcpy(p, &v, 16);
}
static void floats_store(float *p, float x, float y, float z, float w) {
    if (!floats_aligned(p, 4))
        abort();
    p[0] = x, p[1] = y, p[2] = z, p[3] = w;
}
static void warp_multiply(float *d, uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0,
                          uint32_t b1) {
    const int warp = threadIdx.x / 32, thread = threadIdx.x % 32;
    auto element = [](uint32_t pair, int upper) {
        return element_value(uint16_t(pair >> 16 * upper));
    };
    held[warp][thread] = {{a0, a1, a2, a3}, {b0, b1}};
    __syncwarp();
    for (int e = 0; e < 4; ++e) {
        const int row = thread / 4 + e / 2 * 8, col = thread % 4 * 2 + e % 2;
        for (int k = 0; k < 16; ++k) {
            const Held &of_a = held[warp][row % 8 * 4 + k % 8 / 2],
                       &of_b = held[warp][col * 4 + k % 8 / 2];
            d[e] += element(of_a.a[row / 8 + k / 8 * 2], k % 2) * element(of_b.b[k / 8], k % 2);
        }
    }
    __syncwarp();
}
