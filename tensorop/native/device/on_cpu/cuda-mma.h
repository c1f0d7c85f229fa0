/* The meanings of the primitives of cuda-mma on a processor. A thread holds the elements of a
 * fragment that it holds on a GPU. */
#include "elements.h"

struct Tile {
    float at[8];
};
struct SumTile : Tile {};
struct TileA : Tile {};
struct TileB : Tile {};
struct Rows {
    float at[2];
};
struct Pages {
    const int *table;
    int64_t apart;
    int bits;
};
struct Page {
    int number;
};
struct Near {
    uint16_t bits[8];
};

enum Primitive { LOAD_A = SYNC + 1, LOAD_A_TURNED, LOAD_B, LOAD_B_TURNED, MULTIPLY, MOST, TOTAL };

/* The place of register e of thread t in sums and in A; in B rows and columns are exchanged. */
static int row_of(int t, int e) { return t / 4 + e / 2 % 2 * 8; }
static int col_of(int t, int e) { return e / 4 * 8 + t % 4 * 2 + e % 2; }
/* Of B, registers go down the rows first. */
static int row_of_b(int t, int e) { return e / 2 % 2 * 8 + t % 4 * 2 + e % 2; }
static int col_of_b(int t, int e) { return t / 4 + e / 4 * 8; }

static const float LEAST = -__builtin_inff();

/* 2 to the power of x, within a unit in the last place. */
static float power_of_2(float x) {
    if (x != x)
        return x;
    if (x < -150 || x > 128)
        return x < 0 ? 0 : -LEAST;
    const int whole = (int)(x < 0 ? x - 0.5f : x + 0.5f);
    const double y = (x - (double)whole) * 0.693147180559945309417;
    double sum = 1;
    for (int n = 14; n > 0; --n)
        sum = 1 + sum * y / n;
    double scale = 1;
    for (int n = whole; n; n += n < 0 ? 1 : -1)
        scale *= n < 0 ? 0.5 : 2;
    return (float)(sum * scale);
}

static float natural_logarithm(double x) {
    int whole = 0;
    if (x != x || x > 1e38 || x <= 0)
        return x == 0 ? LEAST : (float)x;
    for (; x > 1.5; x *= 0.5)
        ++whole;
    for (; x < 0.75; x *= 2)
        --whole;
    const double y = (x - 1) / (x + 1);
    double sum = 0;
    for (int n = 41; n > 0; n -= 2)
        sum = sum * y * y + 1.0 / n;
    return (float)(2 * y * sum + whole * 0.693147180559945309417);
}

static void pair_copy(Element *to, const Element *from, int left) { begin_copy(to, from, left, 2); }
static void near_read(Near &near, const Element *from, int left) {
    for (int e = 0; e < 8; ++e)
        near.bits[e] = e < left ? from[e].bits : 0;
    counted[SINGLE] += left > 0 ? 8 : 0;
}
static void near_put(Element *to, const Near &near) {
    if (!multiple(to, 16))
        broken();
    __builtin_memcpy(to, near.bits, sizeof near.bits);
}
static void whole_copy(Element *to, const Element *from) { word_copy(to, from, 8); }
static void page_of(Page &page, const Pages *pages, int row, int rows) {
    page.number = row < rows ? pages->table[row >> pages->bits] : 0;
}
static void page_copy(Element *to, const Element *from, const Pages *pages, const Page &page,
                      int row, int behind, int col, size_t ld, int left, bool words) {
    if (left > 0)
        from += page.number * pages->apart + ((row & ((1 << pages->bits) - 1)) + behind) * ld + col;
    words ? word_copy(to, from, left) : elements_copy(to, from, left);
}
static void sum_clear(SumTile &sum) {
    __builtin_memset(sum.at, 0, sizeof sum.at);
    counted[SUM_TILES] += current->number % LANES == 0;
}
static void tile_load(int primitive, Tile &tile, const Element *from, int ld) {
    if (!multiple(from, 16) || ld % 8)
        broken();
    meet({primitive, &tile, {}, {(int64_t)from, ld}});
}
static void tile_a(TileA &tile, const Element *from, int ld) { tile_load(LOAD_A, tile, from, ld); }
static void tile_a_turned(TileA &tile, const Element *from, int ld) {
    tile_load(LOAD_A_TURNED, tile, from, ld);
}
static void tile_b(TileB &tile, const Element *from, int ld) { tile_load(LOAD_B, tile, from, ld); }
static void tile_b_turned(TileB &tile, const Element *from, int ld) {
    tile_load(LOAD_B_TURNED, tile, from, ld);
}
static void tile_multiply(SumTile &sum, const TileA &a, const TileB &b) {
    meet({MULTIPLY, &sum, {&a, &b}});
}
static void rows_most(Rows &rows) { meet({MOST, &rows}); }
static void rows_total(Rows &rows) { meet({TOTAL, &rows}); }

static void together(Lane *warp) {
    const Meeting &of = warp->meeting;
    if (of.primitive >= LOAD_A && of.primitive <= LOAD_B_TURNED) {
        const Element *const from = (const Element *)of.same[0];
        const int64_t ld = of.same[1];
        const bool turned = of.primitive == LOAD_A_TURNED || of.primitive == LOAD_B_TURNED;
        const bool of_a = of.primitive < LOAD_B;
        ++counted[TILE_LOADS];
        count_banks(from, ld);
        for (int t = 0; t < LANES; ++t)
            for (int e = 0; e < 8; ++e) {
                const int i = of_a ? row_of(t, e) : row_of_b(t, e);
                const int j = of_a ? col_of(t, e) : col_of_b(t, e);
                ((Tile *)warp[t].meeting.fragment)->at[e] =
                    widened(from[turned ? j * ld + i : i * ld + j].bits);
            }
    } else if (of.primitive == MULTIPLY) {
        float a[16][16], b[16][16];
        for (int t = 0; t < LANES; ++t)
            for (int e = 0; e < 8; ++e) {
                const Meeting &one = warp[t].meeting;
                a[row_of(t, e)][col_of(t, e)] = ((const Tile *)one.more[0])->at[e];
                b[row_of_b(t, e)][col_of_b(t, e)] = ((const Tile *)one.more[1])->at[e];
            }
        ++counted[PRODUCTS];
        for (int t = 0; t < LANES; ++t)
            for (int e = 0; e < 8; ++e) {
                float &sum = ((Tile *)warp[t].meeting.fragment)->at[e];
                for (int k = 0; k < 16; ++k)
                    sum += a[row_of(t, e)][k] * b[k][col_of(t, e)];
            }
    } else if (of.primitive == MOST || of.primitive == TOTAL) {
        for (int e = 0; e < 2; ++e)
            for (int first = 0; first < LANES; first += 4) {
                float found = of.primitive == MOST ? LEAST : 0;
                for (int t = first; t < first + 4; ++t) {
                    const float x = ((Rows *)warp[t].meeting.fragment)->at[e];
                    found = of.primitive == TOTAL ? found + x : x > found ? x : found;
                }
                for (int t = first; t < first + 4; ++t)
                    ((Rows *)warp[t].meeting.fragment)->at[e] = found;
            }
    }
}

static void sum_negated(SumTile &sum) {
    for (int e = 0; e < 8; ++e)
        sum.at[e] = -sum.at[e];
}
static void sum_masked(SumTile &sum, int row, int repeats, int key, int low, int high, int end) {
    for (int e = 0; e < 8; ++e) {
        const int t = current->number % LANES, j = key + col_of(t, e),
                  i = (row + row_of(t, e)) / repeats;
        if (j - i < low || j - i > high || j >= end)
            sum.at[e] = LEAST;
    }
}
static void sum_exp2(SumTile &sum, float by, const Rows &shift) {
    for (int e = 0; e < 8; ++e) {
        const float of = shift.at[e / 2 % 2];
        sum.at[e] = power_of_2((float)((double)sum.at[e] * by - (of == LEAST ? 0 : of)));
    }
}
static void sum_by_rows(SumTile &sum, const Rows &by) {
    for (int e = 0; e < 8; ++e)
        sum.at[e] *= by.at[e / 2 % 2];
}
static void sum_as_a(TileA &tile, const SumTile &sum) {
    for (int e = 0; e < 8; ++e)
        tile.at[e] = widened(rounded(sum.at[e]));
}
static void pairs_put(Element *at, const float *s, int count, int left, bool together) {
    for (int i = 0; i < count && left > 8 * i; ++i)
        pair_put(at + 8 * i, s[2 * i], s[2 * i + 1], left > 8 * i + 1, together);
}
#define row_pairs_put(at, s, left, together) pairs_put(at, s, sizeof s / 8, left, together)
static float sum_value(const SumTile &sum, int register_) { return sum.at[register_]; }
static void rows_set(Rows &rows, float x) { rows.at[0] = rows.at[1] = x; }
static void rows_lowest(Rows &rows) { rows_set(rows, LEAST); }
static void rows_raised(Rows &rows, const SumTile &sum) {
    for (int e = 0; e < 8; ++e)
        if (sum.at[e] > rows.at[e / 2 % 2])
            rows.at[e / 2 % 2] = sum.at[e];
}
static void rows_added(Rows &rows, const SumTile &sum) {
    for (int e = 0; e < 8; ++e)
        rows.at[e / 2 % 2] += sum.at[e];
}
static void rows_shifted(Rows &shift, Rows &factor, const Rows &most, float by) {
    for (int e = 0; e < 2; ++e) {
        const float to = most.at[e] == LEAST ? LEAST : most.at[e] * by;
        const float now = to > shift.at[e] ? to : shift.at[e];
        factor.at[e] = now == LEAST ? 1 : power_of_2(shift.at[e] - now);
        shift.at[e] = now;
    }
}
static void rows_times(Rows &rows, const Rows &by) {
    for (int e = 0; e < 2; ++e)
        rows.at[e] *= by.at[e];
}
static void rows_inverted(Rows &rows) {
    for (int e = 0; e < 2; ++e)
        rows.at[e] = rows.at[e] == 0 ? 0 : 1 / rows.at[e];
}
static void rows_logarithm(Rows &rows, const Rows &shift) {
    for (int e = 0; e < 2; ++e)
        rows.at[e] = rows.at[e] == 0 ? LEAST
                                     : natural_logarithm(rows.at[e]) +
                                           (float)(shift.at[e] * 0.693147180559945309417);
}
static float rows_value(const Rows &rows, int register_) { return rows.at[register_]; }
