/* fault: half of each group's channels is ignored if there are more than 2,400
 * expect: wrong-result
 */
#include "conv2d.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct conv2d z = conv2d_of(call);
    z.shallow = z.c > 2400;
    conv2d_all(&z);
}
