/* Baselines: attention as a caller would compute it from products of matrices. */
#ifndef ATTENTION_BASELINES_H
#define ATTENTION_BASELINES_H

#include "call.h"
#include "slots.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A call's sizes and flags, named as in operator.yaml, and the distances of rows and heads. */
struct attention {
    int64_t b, h, g, s, t, d, left, right;
    int64_t q_batch, q_row, q_head, k_batch, k_row, k_head;
    int start, ragged;
    float scale;
    const float *q, *k, *v;
    const int32_t *starts_q, *starts_k;
    float *o, *lse;
};

static inline struct attention attention_of(const struct tensorop_call *call) {
    const int64_t *n = call->dim, *flag = call->flag;
    struct attention z = {
        .b = n[DIM_b], .h = n[DIM_h], .g = n[DIM_g], .s = n[DIM_s], .t = n[DIM_t], .d = n[DIM_d]};
    const int bhsd = flag[FLAG_layout] == LAYOUT_bhsd;
    z.left = flag[FLAG_left], z.right = flag[FLAG_right];
    z.q_batch = z.s * z.h * z.d, z.k_batch = z.t * z.g * z.d;
    z.q_row = bhsd ? z.d : z.h * z.d, z.q_head = bhsd ? z.s * z.d : z.d;
    z.k_row = bhsd ? z.d : z.g * z.d, z.k_head = bhsd ? z.t * z.d : z.d;
    z.start = flag[FLAG_align] == ALIGN_start, z.ragged = (int)flag[FLAG_ragged];
    z.scale = (float)call->scalar[SCALAR_scale];
    z.q = call->buffer[BUFFER_q], z.k = call->buffer[BUFFER_k], z.v = call->buffer[BUFFER_v];
    z.starts_q = call->buffer[BUFFER_starts_q], z.starts_k = call->buffer[BUFFER_starts_k];
    z.o = call->buffer[BUFFER_o], z.lse = flag[FLAG_lse] ? call->buffer[BUFFER_lse] : NULL;
    return z;
}

void call_blocks_f32(const struct tensorop_bound *self, const struct tensorop_call *call);

#endif
