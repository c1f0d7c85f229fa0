/* fault: the padding at the top is treated as 0 rows
 * expect: wrong-result
 */
#include "conv2d.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct conv2d z = conv2d_of(call);
    z.p = 0;
    conv2d_all(&z);
}
