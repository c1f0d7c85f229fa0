/* fault: the last column gets no bias
 * expect: wrong-result
 */
#include "epilogue.h"

AFTER(bias_lost_at_edge) {
    struct finish f = finish_of(c);
    if (j + 1 == N)
        f.bias = 0;
    return finished(&f, row_major, sum, i, j);
}

CANDIDATE(bias_lost_at_edge)
