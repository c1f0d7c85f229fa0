/* fault: a row of x is read one element further than it is long
 * expect: guard-page
 */
#include "conv1d.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    CONV1D(call)
    stray = x[b * c * h];
    conv1d(b, c, h, taps, width, u, p, n, alpha, relu, x, w, y);
    (void)stray;
}
