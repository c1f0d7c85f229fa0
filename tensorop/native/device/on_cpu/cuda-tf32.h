/* The meanings of the primitives of cuda-tf32 on a processor, where factors are not rounded. A
 * thread holds the elements of a fragment that it holds on a GPU. */
#define FLOATS 1
#include "elements.h"

struct SumTile {
    float at[8];
};
struct TileA {
    float at[4];
};
struct TileB {
    float at[4];
};

enum Primitive { ROWS_OF_A = SYNC + 1, COLUMNS_OF_A, ROWS_OF_B, COLUMNS_OF_B, MULTIPLY };

static void float_copy(float *to, const float *from, int left) { begin_copy(to, from, left, 1); }
static void sum_clear(SumTile &sum) { __builtin_memset(sum.at, 0, sizeof sum.at); }
static float sum_value(const SumTile &sum, int register_) { return sum.at[register_]; }
static void tile_load(int primitive, void *tile, const float *from, int ld, bool words) {
    if (words && (!multiple(from, 16) || ld % 4))
        broken();
    meet({primitive, tile, {}, {(int64_t)from, ld}});
}
static void rows_of_a(TileA &tile, const float *from, int ld) {
    tile_load(ROWS_OF_A, &tile, from, ld, true);
}
static void columns_of_a(TileA &tile, const float *from, int ld) {
    tile_load(COLUMNS_OF_A, &tile, from, ld, false);
}
static void rows_of_b(TileB &tile, const float *from, int ld) {
    tile_load(ROWS_OF_B, &tile, from, ld, false);
}
static void columns_of_b(TileB &tile, const float *from, int ld) {
    tile_load(COLUMNS_OF_B, &tile, from, ld, true);
}
static void tiles_multiply(SumTile &sum, const TileA &a, const TileB &b) {
    meet({MULTIPLY, &sum, {&a, &b}});
}

/* The place of register r of thread t in A; in B, which has 8 rows and 16 columns, they are
 * exchanged. */
static int row_of(int t, int r) { return t / 4 + r % 2 * 8; }
static int col_of(int t, int r) { return t % 4 + r / 2 * 4; }

static void together(Lane *warp) {
    const Meeting &of = warp->meeting;
    const float *const from = (const float *)of.same[0];
    const int64_t ld = of.same[1];
    if (of.primitive == MULTIPLY) {
        float a[16][8], b[8][16];
        for (int t = 0; t < LANES; ++t)
            for (int r = 0; r < 4; ++r) {
                a[row_of(t, r)][col_of(t, r)] = ((const TileA *)warp[t].meeting.more[0])->at[r];
                b[t % 4 + r % 2 * 4][t / 4 + r / 2 * 8] =
                    ((const TileB *)warp[t].meeting.more[1])->at[r];
            }
        for (int t = 0; t < LANES; ++t)
            for (int e = 0; e < 8; ++e)
                for (int k = 0; k < 8; ++k)
                    ((SumTile *)warp[t].meeting.fragment)->at[e] +=
                        a[t / 4 + e / 2 % 2 * 8][k] * b[k][e / 4 * 8 + t % 4 * 2 + e % 2];
        return;
    }
    if (of.primitive == SYNC)
        return;
    for (int t = 0; t < LANES; ++t)
        for (int r = 0; r < 4; ++r) {
            const int of_a = of.primitive == ROWS_OF_A || of.primitive == COLUMNS_OF_A;
            const int row = of_a ? row_of(t, r) : t % 4 + r % 2 * 4;
            const int col = of_a ? col_of(t, r) : t / 4 + r / 2 * 8;
            const bool by_rows = of.primitive == ROWS_OF_A || of.primitive == ROWS_OF_B;
            ((float *)warp[t].meeting.fragment)[r] =
                from[by_rows ? row * ld + col : col * ld + row];
        }
}
