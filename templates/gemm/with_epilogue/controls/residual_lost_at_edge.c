/* fault: the last column gets no residual
 * expect: wrong-result
 */
#include "epilogue.h"

AFTER(residual_lost_at_edge) {
    struct finish f = finish_of(c);
    if (j + 1 == N)
        f.residual = 0;
    return finished(&f, row_major, sum, i, j);
}

CANDIDATE(residual_lost_at_edge)
