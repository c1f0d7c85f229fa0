/* fault: one element is read past the end of the weights
 * expect: guard-page
 */
#include "conv2d.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct conv2d z = conv2d_of(call);
    volatile REAL stray = z.taps[z.k * (z.c / z.g) * z.r * z.s];
    conv2d_all(&z);
    (void)stray;
}
