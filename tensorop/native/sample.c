/* The smallest candidate: y = 2 x. */
#include "call.h"

void tensorop_candidate_0(const struct tensorop_call *c) {
    const float *x = c->buffer[0];
    float *y = c->buffer[1];
    for (int64_t i = 0; i < c->dim[0]; i++)
        y[i] = 2 * x[i];
}
