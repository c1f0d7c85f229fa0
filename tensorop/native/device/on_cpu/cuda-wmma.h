/* The meanings of the primitives of cuda-wmma on a processor. A tile is spread over a warp's
 * threads, eight elements each. A_ALONG_M and B_ALONG_K choose the layout. */
#include "elements.h"

struct Tile {
    float at[8]; /* of thread t: elements 8 * (t % 2) and on of row t / 2 */
};
struct SumTile : Tile {};
struct TileA : Tile {};
struct TileB : Tile {};

enum Primitive { LOAD_A = SYNC + 1, LOAD_B, MULTIPLY, SPREAD };

static void sum_clear(SumTile &sum) {
    __builtin_memset(sum.at, 0, sizeof sum.at);
    counted[SUM_TILES] += current->number % LANES == 0;
}
static void tile_load(int primitive, Tile &tile, const Element *from, int ld) {
    if (!multiple(from, 32) || ld % 8)
        broken();
    meet({primitive, &tile, {}, {(int64_t)from, ld}});
}
static void tile_a(TileA &tile, const Element *from, int ld) { tile_load(LOAD_A, tile, from, ld); }
static void tile_b(TileB &tile, const Element *from, int ld) { tile_load(LOAD_B, tile, from, ld); }
static void tile_multiply(SumTile &sum, const TileA &a, const TileB &b) {
    meet({MULTIPLY, &sum, {&a, &b}});
}
static void sum_spread(float *to, const SumTile &sum, int ld) {
    if (!multiple(to, 32) || ld % 4)
        broken();
    meet({SPREAD, nullptr, {}, {(int64_t)to, ld}});
    const int t = current->number % LANES; /* no thread waits until the others have stored theirs */
    __builtin_memcpy(to + t / 2 * ld + 8 * (t % 2), sum.at, sizeof sum.at);
}

static void gather(float (*to)[16], const Lane *warp, int which) {
    for (int t = 0; t < LANES; ++t)
        __builtin_memcpy(to[t / 2] + 8 * (t % 2), warp[t].meeting.more[which], sizeof(Tile));
}
static void together(Lane *warp) {
    const Meeting &of = warp->meeting;
    if (of.primitive == LOAD_A || of.primitive == LOAD_B) {
        const Element *const from = (const Element *)of.same[0];
        const int64_t ld = of.same[1];
        const bool across = of.primitive == LOAD_A ? A_ALONG_M : B_ALONG_K;
        ++counted[TILE_LOADS];
        count_banks(from, ld);
        for (int t = 0; t < LANES; ++t)
            for (int e = 0; e < 8; ++e) {
                const int i = t / 2, j = 8 * (t % 2) + e;
                ((Tile *)warp[t].meeting.fragment)->at[e] =
                    widened(from[across ? j * ld + i : i * ld + j].bits);
            }
    } else if (of.primitive == MULTIPLY) {
        float a[16][16], b[16][16];
        gather(a, warp, 0), gather(b, warp, 1);
        ++counted[PRODUCTS];
        for (int t = 0; t < LANES; ++t) {
            float *const sum = ((Tile *)warp[t].meeting.fragment)->at;
            for (int k = 0; k < 16; ++k)
                for (int e = 0; e < 8; ++e)
                    sum[e] += a[t / 2][k] * b[k][8 * (t % 2) + e];
        }
    } else if (of.primitive == SPREAD) {
        counted[SHARED_CYCLES] += 8;
    }
}

static bool pair_aligned(const Element *p) { return multiple(p, 4); }
static bool floats_aligned(const float *p, int count) { return multiple(p, 4 * count); }
