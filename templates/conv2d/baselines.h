/* The convolution as its caller would have it without a library of convolutions: what a call is
 * held against. */
#ifndef CONV2D_BASELINES_H
#define CONV2D_BASELINES_H

#include "call.h"

void call_im2col_f32(const struct tensorop_bound *self, const struct tensorop_call *call);
void call_im2col_f64(const struct tensorop_bound *self, const struct tensorop_call *call);
void call_direct_f32(const struct tensorop_bound *self, const struct tensorop_call *call);
void call_direct_f64(const struct tensorop_bound *self, const struct tensorop_call *call);

#endif
