/* fault: one element is read before the start of x
 * expect: guard-page
 */
#include "conv2d.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct conv2d z = conv2d_of(call);
    volatile REAL stray = z.x[-1];
    conv2d_all(&z);
    (void)stray;
}
