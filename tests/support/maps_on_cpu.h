// What the primitives of cuda-wgmma mean that kernels by tensor maps use whose operands lie along
// K, on this machine's processor. A block's threads take turns on stacks of their own. A copy is
// carried out when a thread looks at its barrier, and a store when its thread waits for it: as late
// as may be. f16.
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "lanes.h"

#define __global__
#define __device__
#define __forceinline__ inline
#define __grid_constant__
#define __shared__
#define __launch_bounds__(...)

struct Number {
    operator unsigned() const { return current->number; }
};
static struct {
    Number x;
} threadIdx;
static struct {
    unsigned x;
} blockIdx, gridDim;

// A tensor map: extents and pitches, in bytes, of columns, rows, heads and batches; rows of a box.
struct CUtensorMap {
    uint8_t *base;
    int64_t extents[4], pitches[4], rows;
};
typedef uint32_t Shared;
typedef uint32_t Barrier;
typedef uint64_t TileOfA;
typedef uint64_t TileOfB;

enum { BEYOND = 1024, FIRST = 16, MOST_PENDING = 4096 }; // FIRST: where a block's memory begins

static uint8_t room[SHARED + FIRST + BEYOND];
static unsigned char raw[1]; // its address says nothing
struct Phases {
    int count, arrived, bit;
    int64_t bytes;
};
struct Box {
    const CUtensorMap *map;
    Shared at;
    Barrier barrier; // of a load
    int x, y, z, w;
    unsigned thread; // of a store
};
static Phases phases[(SHARED + FIRST) / 8 + 1];
static Box loads[MOST_PENDING], stores[MOST_PENDING];
static int loading, storing, failed;
static uint64_t moved; // what threads did but look in vain
static struct {
    unsigned at, turn;
} meetings[36];
static uint32_t held[MOST_LANES][4];

static void give_up() {
    failed = 1;
    wait_for(ENDED);
}
static void look_again() { wait_for(READY); }
static void meet(int number, unsigned threads) {
    const unsigned turn = meetings[number].turn;
    ++moved;
    if (++meetings[number].at == threads)
        meetings[number].at = 0, ++meetings[number].turn;
    while (meetings[number].turn == turn)
        look_again();
    ++moved;
}
static void together(Lane *) {}
static void __syncthreads() { meet(0, THREADS); }
static void meet_warp() { meet(16 + threadIdx.x / 32, 32); }
static void __syncwarp() { meet_warp(); }
static void named_barrier(int id, int threads) { meet(id, threads); }
// A cluster is one block here.
static void cluster_barrier() { __syncthreads(); }
static void cluster_ready() { __syncthreads(); }
static unsigned cluster_rank() { return 0; }
static unsigned cluster_size() { return 1; }
static bool is_of_share(int number, int whole, int parts, int part) {
    return number * parts / whole == part;
}
static void named_arrive(int id, unsigned threads) {
    ++moved;
    if (++meetings[id].at == threads)
        meetings[id].at = 0, ++meetings[id].turn;
}
static void __trap() { give_up(); }
static inline int min(int a, int b) { return a < b ? a : b; }
static inline int max(int a, int b) { return a > b ? a : b; }

static uint8_t *shared_at(uint32_t address, uint32_t bytes) {
    static uint8_t none[128];
    if (address >= FIRST && address + bytes <= SHARED + FIRST && address % bytes == 0)
        return room + address;
    failed = 1;
    return none;
}
static uint32_t swizzled(uint32_t address) { return address ^ (address >> 7 & 7) << 4; }
static float element_at(uint32_t address) {
    _Float16 x;
    memcpy(&x, shared_at(swizzled(address), 2), 2);
    return float(x);
}
static uint8_t *element_of(const Box &of, int row, int col) {
    const int64_t at[4] = {of.x + col, of.y + row, of.z, of.w};
    int64_t bytes = at[0] * 2;
    for (int i = 0; i < 4; ++i) {
        if (at[i] < 0 || at[i] >= of.map->extents[i])
            return nullptr;
        bytes += i ? at[i] * of.map->pitches[i] : 0;
    }
    return of.map->base + bytes;
}
static void carry_out(const Box &of, bool load) {
    for (int row = 0; row < of.map->rows; ++row)
        for (int col = 0; col < 64; ++col) {
            uint8_t *const here = shared_at(swizzled(of.at + row * 128 + col * 2), 2);
            uint8_t *const there = element_of(of, row, col);
            if (load)
                here[0] = there ? there[0] : 0, here[1] = there ? there[1] : 0;
            else if (there)
                memcpy(there, here, 2);
        }
}

static uint32_t shared_address(const void *) { return FIRST; }
static void barrier_init(Barrier barrier, int count) { phases[barrier / 8] = {count, 0, 0, 0}; }
static void advance(Barrier barrier) {
    Phases &of = phases[barrier / 8];
    if (of.arrived > of.count)
        give_up();
    if (of.arrived == of.count && of.bytes == 0)
        of.arrived = 0, of.bit ^= 1;
}
static void barrier_arrive(Barrier barrier) {
    ++moved, ++phases[barrier / 8].arrived, advance(barrier);
}
static void barrier_expect(Barrier barrier, int bytes) {
    phases[barrier / 8].bytes += bytes;
    barrier_arrive(barrier);
}
static void barrier_wait(Barrier barrier, int parity) {
    for (;;) {
        for (int i = 0; i < loading; ++i)
            if (loads[i].barrier == barrier) {
                carry_out(loads[i], true);
                phases[barrier / 8].bytes -= loads[i].map->rows * 128;
                loads[i--] = loads[--loading];
                advance(barrier), ++moved;
            }
        if (phases[barrier / 8].bit != parity)
            break;
        look_again();
    }
    ++moved;
}
static void barriers_visible() {}
static void map_prefetch(const CUtensorMap *) {}
static void shared_written() {}
// A thread's registers at first, and those that threads gave back.
enum { START = 65536 / (THREADS * RESIDENT) / 8 * 8 };
static int given_back;
template <int N> static void registers_fewer() { given_back += START - N, ++moved; }
template <int N> static void registers_more() {
    while (given_back < N - START)
        look_again();
    given_back -= N - START, ++moved;
}

static void box_load(Shared to, const CUtensorMap *map, Barrier barrier, int x, int y, int z,
                     int w) {
    loads[loading++] = {map, to, barrier, x, y, z, w, 0};
    ++moved;
}
static void tile_load(Shared to, const CUtensorMap *map, Barrier barrier, int x, int y, int z,
                      uint64_t) {
    box_load(to, map, barrier, x, y, z, 0);
}
static void tile_prefetch(const CUtensorMap *, int, int, int) {}
static void previous_done() {}
static void next_may_begin() {}
static unsigned thread_number() { return threadIdx.x; }
static int flipped(int bit, int times) { return bit ^ (times & 1); }
static void box_store(const CUtensorMap *map, Shared from, int x, int y, int z, int w) {
    stores[storing++] = {map, from, 0, x, y, z, w, threadIdx.x};
    ++moved;
}
template <int LEFT> static void tile_stores_read() {
    for (int i = 0; i < storing; ++i)
        if (stores[i].thread == threadIdx.x)
            carry_out(stores[i], false), stores[i--] = stores[--storing];
}
static void matrix_store(Shared to, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    const unsigned lane = threadIdx.x % 32, first = threadIdx.x - lane;
    held[threadIdx.x][0] = to;
    meet_warp();
    const uint32_t words[4] = {a, b, c, d};
    for (unsigned i = 0; i < 4; ++i)
        memcpy(shared_at(held[first + 8 * i + lane / 4][0] + lane % 4 * 4, 4), &words[i], 4);
    meet_warp();
}
static void shared_pair_store(Shared at, float x, float y) {
    const float pair[2] = {x, y};
    memcpy(shared_at(at, 8), pair, 8);
}
static uint32_t shared_element_pair(Shared at) {
    uint32_t pair;
    memcpy(&pair, shared_at(at, 4), 4);
    return pair;
}
static uint16_t shared_element(Shared at) {
    uint16_t element;
    memcpy(&element, shared_at(at, 2), 2);
    return element;
}
static uint32_t pair_shifted(uint32_t low, uint32_t high, int shift) {
    return uint32_t((uint64_t(high) << 32 | low) >> 16 * shift);
}
static bool is_aligned(const void *p, unsigned bytes) { return uintptr_t(p) % bytes == 0; }
static bool pair_aligned(const uint16_t *p) { return is_aligned(p, 4); }
static int elements_before_word(const uint16_t *p) { return int(-uintptr_t(p) % 16 / 2); }
template <class T> static void store(void *p, T value) {
    failed |= !is_aligned(p, sizeof value);
    memcpy(p, &value, sizeof value);
}
static void pair_store(uint16_t *p, uint32_t pair) { store(p, pair); }
struct float4 {
    float x, y, z, w;
};
struct uint4 {
    uint32_t x, y, z, w;
};
static uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w) { return {x, y, z, w}; }
static void word_store(uint16_t *p, uint4 word) { store(p, word); }
static void floats_store(float *p, float x, float y, float z, float w) {
    store(p, float4{x, y, z, w});
}
static float4 load_remote(Shared at, int) {
    float4 floats;
    memcpy(&floats, shared_at(at, 16), 16);
    return floats;
}
static void shared_float_store(Shared at, float x) { memcpy(shared_at(at, 4), &x, 4); }
static float element_value(uint16_t bits) {
    _Float16 x;
    memcpy(&x, &bits, 2);
    return float(x);
}
static int chunk_swizzled(int chunk, int line) { return chunk ^ line; }
static uint32_t pair_packed(float low, float high) {
    const _Float16 pair[2] = {_Float16(low), _Float16(high)};
    uint32_t bits;
    memcpy(&bits, pair, 4);
    return bits;
}

static TileOfA tile_of_a(Shared at) { return at; }
static TileOfB tile_of_b(Shared at) { return at; }
static TileOfB tile_of_values(Shared at) { return at; }
static void wgmma_begin() {}
static void wgmma_commit() {}
// A group's warps make its products together: none is done before all have come.
template <int LEFT> static void wgmma_wait() { meet(32 + threadIdx.x / 128, 128); }
static void scores_there(float *) {}
static void sums_there(float *) {}
static unsigned row_of(int e) {
    return threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4 + e / 2 % 2 * 8;
}
static unsigned col_of(int e) { return e / 4 * 8 + threadIdx.x % 4 * 2 + e % 2; }
static void wgmma(float *d, TileOfA a, int block, TileOfB b, int step, int keeps) {
    for (int e = 0; e < TILE_N / 2; ++e) {
        float sum = keeps ? d[e] : 0;
        const Shared of_a = Shared(a) + block * 8192 + row_of(e) * 128 + step * 32;
        const Shared of_b = Shared(b) + col_of(e) * 128 + step * 32;
        for (int k = 0; k < 16; ++k)
            sum += element_at(of_a + 2 * k) * element_at(of_b + 2 * k);
        d[e] = sum;
    }
}
static void wgmma_weighed(float *d, const uint32_t *a, TileOfB b, int step) {
    const unsigned lane = threadIdx.x % 32, first = threadIdx.x - lane;
    memcpy(held[threadIdx.x], a + 4 * step, 16);
    meet_warp();
    for (int e = 0; e < VALUES / 2; ++e) {
        const unsigned row = lane / 4, col = col_of(e);
        for (unsigned k = 0; k < 16; ++k) {
            _Float16 pair[2];
            memcpy(pair, &held[first + row * 4 + k % 8 / 2][e / 2 % 2 + k / 8 * 2], 4);
            d[e] += float(pair[k % 2]) * element_at(Shared(b) + col / 64 * TILE_N * 128 +
                                                    (16 * step + k) * 128 + col % 64 * 2);
        }
    }
    meet_warp();
}
static void signs_turned(Shared at) {
    for (unsigned i = threadIdx.x % 128 * 2 + 1; i < 8192; i += 256)
        *shared_at(at + i, 1) ^= 0x80;
}
static void scores_masked(float *s, int row, int key, int low, int high, int end) {
    for (int e = 0; e < TILE_N / 2; ++e) {
        const int64_t apart = int64_t(key) + col_of(e) - row - row_of(e);
        if (apart < low || apart > high || key + int(col_of(e)) >= end)
            s[e] = -HUGE_VALF;
    }
}

static float of_warp(float x, unsigned lane) {
    memcpy(held[threadIdx.x], &x, 4);
    meet_warp();
    memcpy(&x, held[threadIdx.x - threadIdx.x % 32 + lane], 4);
    meet_warp();
    return x;
}
static void rows_lowest(float *rows) { rows[0] = rows[1] = -HUGE_VALF; }
static void rows_most(float *most, const float *s) {
    for (int half = 0; half < 2; ++half) {
        float x = -HUGE_VALF;
        for (int e = 0; e < TILE_N / 2; ++e)
            x = e / 2 % 2 == half ? fmaxf(x, s[e]) : x;
        for (unsigned apart = 1; apart < 4; apart *= 2)
            x = fmaxf(x, of_warp(x, threadIdx.x % 32 ^ apart));
        most[half] = x;
    }
}
static void rows_shifted(float *shift, float *factor, const float *most, float by) {
    for (int half = 0; half < 2; ++half) {
        const float now = most[half] == -HUGE_VALF ? most[half] : most[half] * by;
        const bool rises = now - shift[half] > 8;
        factor[half] = rises ? exp2f(shift[half] - now) : 1;
        shift[half] = rises ? now : shift[half];
    }
}
static void scores_exp2(float *s, float by, const float *shift) {
    for (int e = 0; e < TILE_N / 2; ++e) {
        const float of = shift[e / 2 % 2];
        s[e] = exp2f(s[e] * by - (of == -HUGE_VALF ? 0 : of));
    }
}
static void rows_added(float *total, const float *factor, const float *s) {
    for (int half = 0; half < 2; ++half) {
        total[half] *= factor[half];
        for (int e = 0; e < TILE_N / 2; ++e)
            total[half] += e / 2 % 2 == half ? s[e] : 0;
    }
}
static void scores_packed(uint32_t *a, const float *s) {
    for (int e = 0; e < TILE_N / 4; ++e)
        a[e] = pair_packed(s[2 * e], s[2 * e + 1]);
}
static void sums_by_rows(float *d, const float *by) {
    for (int e = 0; e < VALUES / 2; ++e)
        d[e] *= by[e / 2 % 2];
}
static void rows_total(float *rows) {
    for (int half = 0; half < 2; ++half)
        for (unsigned apart = 1; apart < 4; apart *= 2)
            rows[half] += of_warp(rows[half], threadIdx.x % 32 ^ apart);
}
static void rows_logarithm(float *logarithm, const float *total, const float *shift) {
    for (int half = 0; half < 2; ++half)
        logarithm[half] =
            total[half] == 0 ? -HUGE_VALF : (log2f(total[half]) + shift[half]) * 0.693147181f;
}
static void rows_inverted(float *rows) {
    for (int half = 0; half < 2; ++half)
        rows[half] = rows[half] == 0 ? 0 : 1 / rows[half];
}
