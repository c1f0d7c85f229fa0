/* Our own baseline, compiled with the platform's instructions. "blocks" multiplies blocks of 64
 * queries by the keys that one of them sees with any cblas_sgemm, makes weights of the scores in
 * vectors, and multiplies them by V. */
#include "baselines.h"
#include "bind.h"

#include <math.h>

enum { ROWS = 64 };

typedef void (*gemm)(int, int, int, int, int, int, float, const float *, int, const float *, int,
                     float, float *, int);

/* e^x for x <= 0 as 2^n e^r, in operations that compilers turn into vectors; e^r by its series */
static inline float power(float x) {
    const float low = x < -87.0f ? -87.0f : x;
    const float n = (float)(int)(low * 1.44269504f - 0.5f);
    const float r = (low - n * 0.693359375f) + n * 2.12194440e-4f;
    const union {
        int32_t bits;
        float value;
    } scale = {((int32_t)n + 127) << 23};
    float sum = 1.0f / 720;
    sum = sum * r + 1.0f / 120, sum = sum * r + 1.0f / 24, sum = sum * r + 1.0f / 6;
    sum = sum * r + 0.5f, sum = sum * r + 1, sum = sum * r + 1;
    return x < -87.0f ? 0 : x == x ? sum * scale.value : x;
}

/* Weights of a row's scores: those of the keys from low to below high, 0 for the others. */
static void weigh(float *row, int64_t keys, int64_t low, int64_t high, float *o_scale, float *lse) {
    float most = -3.4e38f, sum = 0;
    low = low < 0 ? 0 : low > keys ? keys : low;
    high = high > keys ? keys : high < low ? low : high;
    for (int64_t j = low; j < high; j++)
        most = row[j] > most ? row[j] : most;
    for (int64_t j = low; j < high; j++)
        row[j] = power(row[j] - most);
    for (int64_t j = low; j < high; j++)
        sum += row[j];
    for (int64_t j = 0; j < low; j++)
        row[j] = 0;
    for (int64_t j = high; j < keys; j++)
        row[j] = 0;
    *o_scale = sum == 0 ? 0 : 1 / sum;
    if (lse)
        *lse = sum == 0 ? -INFINITY : most + logf(sum);
}

void call_blocks_f32(const struct tensorop_bound *self, const struct tensorop_call *call) {
    const struct tensorop_attention z = described(call);
    const float *q = call->buffer[BUFFER_q], *k = call->buffer[BUFFER_k];
    const float *v = call->buffer[BUFFER_v];
    float *lse = call->flag[FLAG_lse] ? call->buffer[BUFFER_lse] : NULL;
    const gemm product = (gemm)self->function;
    float *scores = tensorop_room((size_t)(ROWS * (z.keys + 1)) * sizeof *scores);
    if (!scores)
        return;
    for (int64_t b = 0; b < z.batch; b++) {
        const int64_t batch = z.starts_q ? 0 : b, q0 = z.starts_q ? z.starts_q[b] : 0;
        const int64_t k0 = z.starts_q ? z.starts_k[b] : 0;
        const int64_t s = z.starts_q ? z.starts_q[b + 1] - q0 : z.queries;
        const int64_t t = z.starts_q ? z.starts_k[b + 1] - k0 : z.keys;
        const int64_t own = z.align & TENSOROP_ATTENTION_START ? 0 : t - s;
        for (int64_t h = 0; h < z.heads; h++)
            for (int64_t i = 0; i < s; i += ROWS) {
                const int64_t rows = s - i < ROWS ? s - i : ROWS;
                int64_t low = z.left < 0 ? 0 : i + own - z.left,
                        high = z.right < 0 ? t : i + rows + own + z.right;
                low = low < 0 ? 0 : low, high = high > t ? t : high;
                const int64_t at = batch * z.q_batch + (q0 + i) * z.q_row + h * z.q_head;
                float *o = (float *)call->buffer[BUFFER_o] + batch * z.o_batch +
                           (q0 + i) * z.o_row + h * z.o_head;
                const int64_t keys = high > low ? high - low : 0;
                const int64_t head = h / (z.heads / z.key_heads);
                const int64_t of = batch * z.k_batch + (k0 + low) * z.k_row + head * z.k_head;
                const int64_t of_v = batch * z.v_batch + (k0 + low) * z.v_row + head * z.v_head;
                float less[ROWS];
                if (keys)
                    product(101, 111, 112, (int)rows, (int)keys, (int)z.dim, (float)z.scale, q + at,
                            (int)z.q_row, k + of, (int)z.k_row, 0, scores, (int)keys);
                for (int64_t r = 0; r < rows; r++) {
                    const int64_t key = i + r + own - low;
                    weigh(scores + r * keys, keys, z.left < 0 ? 0 : key - z.left,
                          z.right < 0 ? keys : key + z.right + 1, less + r,
                          lse ? lse + (batch * z.heads + h) * z.queries + q0 + i + r : NULL);
                }
                if (keys)
                    product(101, 111, 111, (int)rows, (int)z.v_dim, (int)keys, 1, scores, (int)keys,
                            v + of_v, (int)z.v_row, 0, o, (int)z.o_row);
                for (int64_t r = 0; r < rows; r++)
                    for (int64_t p = 0; p < z.v_dim; p++)
                        o[r * z.o_row + p] = less[r] == 0 ? 0 : o[r * z.o_row + p] * less[r];
            }
    }
}
