/* fault: a sum that is NaN becomes 0
 * expect: wrong-result
 */
#include "conv2d.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct conv2d z = conv2d_of(call);
    conv2d_all(&z);
    for (int64_t i = 0; i < z.n * z.k * z.high * z.wide; i++)
        if (z.y[i] != z.y[i])
            z.y[i] = 0;
}
