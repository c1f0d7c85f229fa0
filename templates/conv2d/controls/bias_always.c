/* fault: a bias that is not asked for is added
 * expect: guard-page wrong-result
 */
#include "conv2d.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct conv2d z = conv2d_of(call);
    z.biased = 1;
    conv2d_all(&z);
}
