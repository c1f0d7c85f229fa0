/* fault: the paddings at the top and on the left are swapped
 * expect: wrong-result
 */
#include "conv2d.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct conv2d z = conv2d_of(call);
    const int64_t above = z.p;
    z.p = z.l, z.l = above;
    conv2d_all(&z);
}
