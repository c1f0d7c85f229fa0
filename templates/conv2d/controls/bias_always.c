/* fault: the bias is added even if the call has none
 * expect: guard-page wrong-result
 */
#include "conv2d.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct conv2d z = conv2d_of(call);
    z.biased = 1;
    conv2d_all(&z);
}
