/* fault: one element is read past the end of x
 * expect: guard-page
 */
#include "conv2d.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct conv2d z = conv2d_of(call);
    volatile REAL stray = z.x[z.n * z.c * z.h * z.w];
    conv2d_all(&z);
    (void)stray;
}
