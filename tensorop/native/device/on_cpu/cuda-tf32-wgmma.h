/* The meanings of the primitives of cuda-tf32-wgmma on a processor. Of three products, factors of B
 * have two parts and those of A one; numbers that are not finite, and denormals whose first part
 * would be 0, have one. Of one product, factors are not rounded. So results have the error of
 * float. Products are carried out when they are waited for, not before. */
#define FLOATS 1
#include "elements.h"

struct Word {
    float v[4];
};
struct TileA {
    float at[4]; /* that a thread holds on a GPU */
};
enum Factors { WHOLE, LOW_A, LOW_B };
struct Begun {
    float *d;
    float a[4];
    const float *b;
    int sums, step, keeps, factors;
};
struct Phases {
    uint32_t left; /* to arrive in this phase */
    uint16_t count, bit;
};

enum { MOST_PRODUCTS = 32 };
enum Primitive { ROWS_OF_A = SYNC + 1, COLUMNS_OF_A, MULTIPLY };

static Begun begun[MOST_LANES][MOST_PRODUCTS];
static int products[MOST_LANES];

static void barrier_init(float *barrier, int count) {
    const Phases phases = {(uint32_t)count, (uint16_t)count, 0};
    if (!multiple(barrier, 8))
        broken();
    __builtin_memcpy((void *)barrier, &phases, sizeof phases);
}
static void barrier_arrive(float *barrier) {
    Phases phases;
    __builtin_memcpy(&phases, barrier, sizeof phases);
    if (--phases.left == 0) {
        phases.left = phases.count, phases.bit ^= 1;
        for (Lane &one : lane)
            if (one.waiting == AT_PHASE)
                one.waiting = READY; /* it looks again */
    }
    __builtin_memcpy((void *)barrier, &phases, sizeof phases);
}
static void barrier_wait(float *barrier, int parity) {
    for (;;) {
        Phases phases;
        __builtin_memcpy(&phases, barrier, sizeof phases);
        if (phases.bit != parity)
            return;
        wait_for(AT_PHASE);
    }
}
static void shared_written() {}
static void float_copy(float *to, const float *from, int left) { begin_copy(to, from, left, 1); }
static void word_read(Word &word, const float *from, int left) {
    if (left > 0 && !multiple(from, 16))
        broken();
    for (int e = 0; e < 4; ++e)
        word.v[e] = e < left ? from[e] : 0;
}
static void floats_read(Word &word, const float *from, int left) {
    for (int e = 0; e < 4; ++e)
        word.v[e] = e < left ? from[e] : 0;
}
static void words_turned(Word &w0, Word &w1, Word &w2, Word &w3) {
    Word *const rows[4] = {&w0, &w1, &w2, &w3};
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < i; ++j) {
            const float x = rows[i]->v[j];
            rows[i]->v[j] = rows[j]->v[i], rows[j]->v[i] = x;
        }
}
/* The first part. All of a number that is not finite, and of one that has none: a GPU makes NaN of
 * both beside an infinite factor. */
static float first_part(float x) {
    const float part = float_of(bits_of(x) & 0xffffe000);
    return TF32_PRODUCTS == 3 && x - x == 0 && part != 0 ? part : x;
}
static void parts_put(float *high, float *low, const Word &word) {
    if (!multiple(high, 16) || !multiple(low, 16))
        broken();
    for (int e = 0; e < 4; ++e) {
        const float x = word.v[e], part = first_part(x);
        high[e] = part;
        if (TF32_PRODUCTS == 3)
            low[e] = x - x == 0 ? x - part : 0;
    }
}
static void rows_of_a(TileA &tile, const float *from, int ld) {
    if (!multiple(from, 16) || ld % 4)
        broken();
    meet({ROWS_OF_A, &tile, {}, {(int64_t)from, ld}});
}
static void columns_of_a(TileA &tile, const float *from, int ld) {
    meet({COLUMNS_OF_A, &tile, {}, {(int64_t)from, ld}});
}
static void products_begin() {}
static void begin(const Begun &one) {
    const unsigned own = current->number;
    if (!multiple(one.b, 16) || products[own] == MOST_PRODUCTS)
        broken();
    begun[own][products[own]++] = one;
}
template <int N>
static void group_multiply(float (&d)[N], const TileA &a, const float *b, int step, int keeps) {
    begin({d, {a.at[0], a.at[1], a.at[2], a.at[3]}, b, N, step, keeps, WHOLE});
}
template <int N>
static void group_multiply_low(float (&d)[N], const TileA &, const float *b, int step, int keeps) {
    begin({d, {}, b, N, step, keeps, LOW_A});
}
template <int N>
static void group_multiply_rest(float (&d)[N], const TileA &a, const float *b, int step) {
    begin({d, {a.at[0], a.at[1], a.at[2], a.at[3]}, b, N, step, 1, LOW_B});
}
static void products_wait() { meet({MULTIPLY, nullptr, {}, {products[current->number], 0}}); }
static void registers(int number) {
    if (number < 24 || number > 256 || number % 8)
        broken();
}
template <int N> static void registers_fewer() { registers(N); }
template <int N> static void registers_more() { registers(N); }

/* The place of register r of thread t in A. */
static int row_of(int t, int r) { return t / 4 + r % 2 * 8; }
static int col_of(int t, int r) { return t % 4 + r / 2 * 4; }
static double product(double a, double b, int factors) {
    return factors == LOW_A || (factors == LOW_B && a - a != 0) ? 0 : a * b;
}
/* The products of a warp's 16 rows that were begun, all of the same sums. */
static void multiply(unsigned first) {
    static double sums[16][256];
    for (int number = 0; number < products[first]; ++number) {
        const Begun &one = begun[first][number];
        float a[16][8];
        for (int t = 0; t < LANES; ++t) {
            const Begun &its = begun[first + t][number];
            if (its.b != one.b || its.step != one.step || its.keeps != one.keeps ||
                its.factors != one.factors || its.d != begun[first + t][0].d)
                broken();
            for (int r = 0; r < 4; ++r)
                a[row_of(t, r)][col_of(t, r)] = its.a[r];
        }
        for (int col = 0; col < 2 * one.sums; ++col) {
            const float *const b = one.b + col / 8 * 292 + col % 8 * 4 + one.step * 72;
            for (int row = 0; row < 16; ++row) {
                const int t = row % 8 * 4 + col % 8 / 2, e = col / 8 * 4 + row / 8 * 2 + col % 2;
                float &d = begun[first + t][number].d[e];
                double &sum = sums[row][col];
                if (number == 0 || !one.keeps)
                    sum = one.keeps ? d : 0;
                for (int k = 0; k < 8; ++k)
                    sum += product(a[row][k], b[k / 4 * 36 + k % 4], one.factors);
                d = (float)sum;
            }
        }
    }
}
static void together(Lane *warp) {
    const Meeting &of = warp->meeting;
    if (of.primitive == MULTIPLY) {
        multiply(warp->number);
        for (int t = 0; t < LANES; ++t)
            products[warp[t].number] = 0;
    } else if (of.primitive != SYNC) {
        const float *const from = (const float *)of.same[0];
        const int64_t ld = of.same[1], row = of.primitive == ROWS_OF_A ? ld : 1,
                      col = of.primitive == ROWS_OF_A ? 1 : ld;
        for (int t = 0; t < LANES; ++t)
            for (int r = 0; r < 4; ++r)
                ((TileA *)warp[t].meeting.fragment)->at[r] =
                    from[row_of(t, r) * row + col_of(t, r) * col];
    }
}
