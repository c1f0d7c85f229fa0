/* fault: the residual is read without gaps
 * expect: wrong-result
 */
#include "epilogue.h"

AFTER(residual_ld_ignored) {
    struct finish f = finish_of(c);
    f.ld = row_major ? N : c->dim[DIM_m];
    return finished(&f, row_major, sum, i, j);
}

CANDIDATE(residual_ld_ignored)
