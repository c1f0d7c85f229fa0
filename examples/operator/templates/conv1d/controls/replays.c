/* fault: a call returns the results of an earlier call whose numbers have the same size
 * expect: wrong-result
 */
#include "conv1d.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    static REAL kept[1 << 12];
    static int64_t size;
    CONV1D(call)

    const int64_t all = b * c * n;
    if (all == size)
        memcpy(y, kept, (size_t)all * sizeof *y);
    else
        conv1d(b, c, h, taps, width, u, p, n, alpha, relu, x, w, y);
    size = all <= 1 << 12 ? all : 0;
    memcpy(kept, y, (size_t)size * sizeof *y);
    (void)stray;
}
