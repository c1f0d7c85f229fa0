/* fault: the stride across is taken for that down
 * expect: wrong-result
 */
#include "conv2d.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct conv2d z = conv2d_of(call);
    z.v = z.u;
    if ((z.wide - 1) * z.v + z.e * (z.s - 1) >= z.w + z.l + z.q)
        z.v = 1; /* what it reads stays in x */
    conv2d_all(&z);
}
