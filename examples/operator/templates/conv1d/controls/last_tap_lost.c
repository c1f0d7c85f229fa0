/* fault: the last tap is left out
 * expect: wrong-result
 */
#include "conv1d.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    CONV1D(call)
    taps -= 1;
    conv1d(b, c, h, taps, width, u, p, n, alpha, relu, x, w, y);
    (void)stray;
}
