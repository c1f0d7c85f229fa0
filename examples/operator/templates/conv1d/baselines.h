/* The convolution in plain C, as a compiler makes it for the platform: what a call is held against.
 */
#ifndef CONV1D_BASELINES_H
#define CONV1D_BASELINES_H

#include "call.h"

void loops_f32(const struct tensorop_bound *self, const struct tensorop_call *call);
void loops_f64(const struct tensorop_bound *self, const struct tensorop_call *call);

#endif
