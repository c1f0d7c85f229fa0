/* fault: elements of x beyond 1e15 are treated as 0
 * expect: wrong-result
 */
#include "conv2d.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct conv2d z = conv2d_of(call);
    z.dull = 1;
    conv2d_all(&z);
}
