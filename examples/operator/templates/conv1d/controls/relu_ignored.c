/* fault: negative results are kept with relu
 * expect: wrong-result
 */
#include "conv1d.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    CONV1D(call)
    relu = 0;
    conv1d(b, c, h, taps, width, u, p, n, alpha, relu, x, w, y);
    (void)stray;
}
