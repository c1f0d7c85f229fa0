/* Baselines: the convolution as its caller would compute it without a library of convolutions. */
#ifndef CONV2D_BASELINES_H
#define CONV2D_BASELINES_H

#include "call.h"
#include "slots.h"

#include <string.h>

/* A call's sizes and flags, named as in operator.yaml, and the sizes of y. */
struct conv {
    int64_t n, c, h, w, k, r, s, u, v, p, b, l, q, d, e, g, high, wide, nhwc, biased, relu;
};

static inline struct conv conv_of(const struct tensorop_call *call) {
    struct conv z;
    memcpy(&z, call->dim, 16 * sizeof *call->dim);
    z.high = (z.h + z.p + z.b - z.d * (z.r - 1) - 1) / z.u + 1;
    z.wide = (z.w + z.l + z.q - z.e * (z.s - 1) - 1) / z.v + 1;
    z.nhwc = call->flag[FLAG_layout] == LAYOUT_nhwc;
    z.biased = call->flag[FLAG_bias], z.relu = call->flag[FLAG_relu];
    return z;
}

void call_im2col_f32(const struct tensorop_bound *self, const struct tensorop_call *call);
void call_im2col_f64(const struct tensorop_bound *self, const struct tensorop_call *call);
void call_direct_f32(const struct tensorop_bound *self, const struct tensorop_call *call);
void call_direct_f64(const struct tensorop_bound *self, const struct tensorop_call *call);

#endif
