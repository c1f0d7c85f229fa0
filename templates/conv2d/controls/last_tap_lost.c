/* fault: the last tap of the last channel is ignored
 * expect: wrong-result
 */
#include "conv2d.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct conv2d z = conv2d_of(call);
    z.lost = 1;
    conv2d_all(&z);
}
