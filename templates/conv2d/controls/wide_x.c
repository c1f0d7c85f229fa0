/* fault: columns beyond the 1,200th are treated as 0 if the input is wider than 2,400
 * expect: wrong-result
 */
#include "conv2d.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct conv2d z = conv2d_of(call);
    z.narrow = z.w > 2400;
    conv2d_all(&z);
}
