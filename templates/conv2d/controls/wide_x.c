/* fault: of an input wider than 2,400 all beyond the 1,200th column is taken for zeros
 * expect: wrong-result
 */
#include "conv2d.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct conv2d z = conv2d_of(call);
    z.narrow = z.w > 2400;
    conv2d_all(&z);
}
