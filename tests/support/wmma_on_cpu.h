// What cuda-wmma's primitives mean, on this machine's processor: a block's threads are threads, a
// warp's tile is held whole by each of its lanes, and copies happen when they are waited for, not
// before. Nothing of C++'s own library, which takes a compiler most of a minute to build.
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

using Element = _Float16;
struct Tile {
    float at[16][16];
};
struct SumTile : Tile {};
struct TileA : Tile {};
struct TileB : Tile {};
struct Index {
    unsigned x, z;
};
struct Copied {
    Element *to;
    const Element *from;
    int left;
};
struct Group {
    Copied at[64];
    int count;
};

static thread_local Index threadIdx;
static Index blockIdx;
static pthread_barrier_t of_block, of_warp[8];
static thread_local Group groups[8], begun; // from `done`, round and round
static thread_local int committed, done;

static inline int min(int a, int b) { return a < b ? a : b; }
static void __syncthreads() { pthread_barrier_wait(&of_block); }
static void __syncwarp() { pthread_barrier_wait(&of_warp[threadIdx.x / 32]); }

static void elements_copy(Element *to, const Element *from, int left) {
    for (int e = 0; e < 8; ++e)
        to[e] = e < left ? from[e] : Element(0.f);
}
static void word_copy(Element *to, const Element *from, int left) {
    if (reinterpret_cast<uintptr_t>(from) % 16 || reinterpret_cast<uintptr_t>(to) % 16)
        abort();
    if (begun.count == 64)
        abort();
    begun.at[begun.count++] = {to, from, left};
}
static void copies_commit() {
    if (committed - done == 8)
        abort();
    groups[committed++ % 8] = begun;
    begun.count = 0;
}
template <int LEFT> static void copies_wait() {
    for (; committed - done > LEFT; ++done) {
        const Group &first = groups[done % 8];
        for (int i = 0; i < first.count; ++i)
            elements_copy(first.at[i].to, first.at[i].from, first.at[i].left);
    }
}
static void sum_clear(SumTile &sum) { memset(sum.at, 0, sizeof sum.at); }
static void read(Tile &tile, const Element *from, int ld, bool transposed) {
    for (int i = 0; i < 16; ++i)
        for (int j = 0; j < 16; ++j)
            tile.at[i][j] = float(transposed ? from[j * ld + i] : from[i * ld + j]);
}
static void tile_a(TileA &tile, const Element *from, int ld) { read(tile, from, ld, A_ALONG_M); }
static void tile_b(TileB &tile, const Element *from, int ld) { read(tile, from, ld, B_ALONG_K); }
static void tile_multiply(SumTile &sum, const TileA &a, const TileB &b) {
    for (int i = 0; i < 16; ++i)
        for (int k = 0; k < 16; ++k)
            for (int j = 0; j < 16; ++j)
                sum.at[i][j] += a.at[i][k] * b.at[k][j];
}
static void sum_spread(float *to, const SumTile &sum, int ld) {
    if (threadIdx.x % 32 == 0)
        for (int i = 0; i < 16; ++i)
            memcpy(to + i * ld, sum.at[i], sizeof sum.at[i]);
}
static float value(Element element) { return float(element); }
static bool pair_aligned(const Element *p) { return reinterpret_cast<uintptr_t>(p) % 4 == 0; }
static bool floats_aligned(const float *p, int count) {
    return reinterpret_cast<uintptr_t>(p) % (4 * count) == 0;
}
static void float_pair_put(float *at, float x, float y, bool two, bool together) {
    if (together && two && !floats_aligned(at, 2))
        abort();
    at[0] = x;
    if (two)
        at[1] = y;
}
static void pair_put(Element *at, float x, float y, bool two, bool together) {
    if (together && two && !pair_aligned(at))
        abort();
    at[0] = Element(x);
    if (two)
        at[1] = Element(y);
}
