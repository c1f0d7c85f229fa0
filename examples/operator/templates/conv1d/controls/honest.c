/* fault: none
 * expect: ok
 */
#include "conv1d.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    CONV1D(call)

    conv1d(b, c, h, taps, width, u, p, n, alpha, relu, x, w, y);
    (void)stray;
}
