/* fault: the padding at the beginning is ignored
 * expect: wrong-result
 */
#include "conv1d.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    CONV1D(call)
    p = 0;
    conv1d(b, c, h, taps, width, u, p, n, alpha, relu, x, w, y);
    (void)stray;
}
