/* fault: x is written to
 * expect: guard-page
 */
#include "conv2d.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct conv2d z = conv2d_of(call);
    conv2d_all(&z);
    *(REAL *)(uintptr_t)z.x = 0;
}
