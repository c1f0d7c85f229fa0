/* fault: y is set to zero
 * expect: wrong-result
 */
#include "conv2d.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct conv2d z = conv2d_of(call);
    for (int64_t i = 0; i < z.n * z.k * z.high * z.wide; i++)
        z.y[i] = 0;
}
