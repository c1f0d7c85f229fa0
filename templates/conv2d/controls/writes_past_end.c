/* fault: one element is written past the end of y
 * expect: guard-page wrong-result
 */
#include "conv2d.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct conv2d z = conv2d_of(call);
    conv2d_all(&z);
    z.y[z.n * z.k * z.high * z.wide] = 0;
}
