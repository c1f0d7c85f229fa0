/* Shared code of the controls: attention in plain C, by blocks of 8 keys with running sums. OPERAND
 * is the stored type of numbers. The build defines TENSOROP_DTYPE_<dtype>. */
#include "call.h"
#include "slots.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { BLOCK = 8 };

#if defined TENSOROP_DTYPE_bf16
#define OPERAND uint16_t
static inline float value_of(OPERAND x) {
    const union {
        uint32_t bits;
        float value;
    } to = {(uint32_t)x << 16};
    return to.value;
}
static inline OPERAND stored(float x) {
    const union {
        float value;
        uint32_t bits;
    } from = {x};
    const uint32_t even = from.bits >> 16 & 1;
    return (OPERAND)(x != x ? 0x7fc0 : (from.bits + 0x7fff + even) >> 16);
}
#elif defined TENSOROP_DTYPE_f16
#define OPERAND _Float16
#else
#define OPERAND float
#endif
#if !defined TENSOROP_DTYPE_bf16
static inline float value_of(OPERAND x) { return (float)x; }
static inline OPERAND stored(float x) { return (OPERAND)x; }
#endif

struct attention {
    int64_t b, h, g, s, t, d, dv, left, right;
    int bhsd, start, ragged;
    float scale;
    int kept, lost, halved, strays, swapped, whole; /* faults: sums and O keep their scale where the
        largest score grows; the second block of keys is skipped; sums are in half precision; empty
        rows are NaN; head i reads K and V of head i % g; a ragged batch is one sequence */
    const OPERAND *q, *k, *v;
    const int32_t *starts_q, *starts_k;
    OPERAND *o;
    float *lse;
};

static inline struct attention attention_of(const struct tensorop_call *call) {
    const int64_t *flag = call->flag;
    void *const *at = call->buffer;
    struct attention z = {.scale = (float)call->scalar[SCALAR_scale], .q = at[BUFFER_q]};
    memcpy(&z, call->dim, 7 * sizeof *call->dim); /* b to dv */
    z.left = flag[FLAG_left], z.right = flag[FLAG_right];
    z.bhsd = flag[FLAG_layout] == LAYOUT_bhsd, z.start = flag[FLAG_align] == ALIGN_start;
    z.ragged = (int)flag[FLAG_ragged];
    z.k = at[BUFFER_k], z.v = at[BUFFER_v], z.o = at[BUFFER_o];
    z.starts_q = at[BUFFER_starts_q], z.starts_k = at[BUFFER_starts_k];
    z.lse = flag[FLAG_lse] ? at[BUFFER_lse] : NULL;
    return z;
}

/* e^x, by 2^n e^r with |r| <= ln 2 / 2 and e^r by its series */
static inline double power(double x) {
    if (x != x)
        return x;
    if (x < -700)
        return 0;
    if (x > 700)
        return 1.0 / 0.0;
    const int64_t n = (int64_t)(x * 1.4426950408889634 + (x < 0 ? -0.5 : 0.5));
    const double r = x - (double)n * 0.6931471805599453;
    union {
        uint64_t bits;
        double value;
    } scale = {(uint64_t)(n + 1023) << 52};
    double sum = 1;
    for (int i = 14; i > 0; i--)
        sum = 1 + sum * r / i;
    return sum * scale.value;
}

/* ln x = y by Newton's steps y += x e^-y - 1 */
static inline double logarithm(double x) {
    double y = 0;
    for (double m = x; m > 1 && m < 1e300; m /= 2.718281828459045)
        y += 1;
    for (int i = 0; i < 8; i++)
        y += x * power(-y) - 1;
    return y;
}

/* 16 bits: for f32 those of f16 */
static inline float rounded(const struct attention *z, double x) {
#if defined TENSOROP_DTYPE_bf16
    return z->halved ? value_of(stored((float)x)) : (float)x;
#else
    return z->halved && x == x && x < 60000 && x > -60000 ? (float)(_Float16)x : (float)x;
#endif
}

/* One row of Q: `own` is the key that it is aligned to. k and v: rows `row` and `v_row` apart. */
static inline void attention_row(const struct attention *z, int64_t own, int64_t t,
                                 const OPERAND *q, const OPERAND *k, const OPERAND *v, int64_t row,
                                 int64_t v_row, OPERAND *o, float *lse) {
    double most = -1e300, sum = 0, out[512] = {0}, scores[BLOCK];
    for (int64_t from = 0; from < t; from += BLOCK) {
        const int64_t keys = t - from < BLOCK ? t - from : BLOCK;
        double now = most;
        if (z->lost && from == BLOCK)
            continue;
        for (int64_t j = 0; j < keys; j++) {
            const int64_t key = from + j;
            double score = 0;
            for (int64_t p = 0; p < z->d; p++)
                score += (double)value_of(q[p]) * value_of(k[key * row + p]);
            const int hidden =
                (z->left >= 0 && key < own - z->left) || (z->right >= 0 && key > own + z->right);
            scores[j] = hidden ? -1.0 / 0.0 : score * z->scale;
            now = scores[j] > now ? scores[j] : now;
        }
        const double less = z->kept ? 1 : power(most - now);
        sum = rounded(z, sum * less);
        for (int64_t p = 0; p < z->dv; p++)
            out[p] = rounded(z, out[p] * less);
        for (int64_t j = 0; j < keys; j++) {
            const double weight = power(scores[j] - now);
            sum = rounded(z, sum + weight);
            for (int64_t p = 0; p < z->dv; p++)
                if (weight != 0)
                    out[p] = rounded(z, out[p] + weight * value_of(v[(from + j) * v_row + p]));
        }
        most = now;
    }
    for (int64_t p = 0; p < z->dv; p++)
        o[p] = stored(sum == 0 && !z->strays ? 0 : (float)(out[p] / sum));
    if (lse)
        *lse = sum == 0 ? -1.0f / 0.0f : (float)(most + logarithm(sum));
}

static inline void attention_all(const struct attention *z) {
    const int64_t d = z->d, q_row = z->bhsd ? d : z->h * d, q_head = z->bhsd ? z->s * d : d;
    const int64_t k_row = z->bhsd ? d : z->g * d, k_head = z->bhsd ? z->t * d : d, dv = z->dv;
    const int64_t v_row = z->bhsd ? dv : z->g * dv, v_head = z->bhsd ? z->t * dv : dv;
    const int64_t o_row = z->bhsd ? dv : z->h * dv, o_head = z->bhsd ? z->s * dv : dv;
    const int ragged = z->ragged && !z->whole;
    for (int64_t b = 0; b < (z->ragged && z->whole ? 1 : z->b); b++) {
        const int64_t batch = z->ragged ? 0 : b, q0 = ragged ? z->starts_q[b] : 0,
                      k0 = ragged ? z->starts_k[b] : 0, s = ragged ? z->starts_q[b + 1] - q0 : z->s,
                      t = ragged ? z->starts_k[b + 1] - k0 : z->t;
        for (int64_t h = 0; h < z->h; h++)
            for (int64_t i = 0; i < s; i++) {
                const int64_t head = z->swapped ? h % z->g : h / (z->h / z->g);
                const int64_t at = batch * z->s * z->h * d + (q0 + i) * q_row + h * q_head;
                const int64_t of = batch * z->t * z->g * d + k0 * k_row + head * k_head;
                const int64_t of_v = batch * z->t * z->g * dv + k0 * v_row + head * v_head;
                const int64_t to = batch * z->s * z->h * dv + (q0 + i) * o_row + h * o_head;
                attention_row(z, z->start ? i : i + t - s, t, z->q + at, z->k + of, z->v + of_v,
                              k_row, v_row, z->o + to,
                              z->lse ? z->lse + (batch * z->h + h) * z->s + q0 + i : NULL);
            }
    }
}
