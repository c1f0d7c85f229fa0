/* fault: the padding on the left is treated as 0 columns
 * expect: wrong-result
 */
#include "conv2d.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct conv2d z = conv2d_of(call);
    z.l = 0;
    conv2d_all(&z);
}
