/* fault: the vertical stride is also used as the horizontal one
 * expect: wrong-result
 */
#include "conv2d.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct conv2d z = conv2d_of(call);
    z.v = z.u;
    if ((z.wide - 1) * z.v + z.e * (z.s - 1) >= z.w + z.l + z.q)
        z.v = 1; /* reads stay inside x */
    conv2d_all(&z);
}
