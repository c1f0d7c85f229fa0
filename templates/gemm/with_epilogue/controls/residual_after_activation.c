/* fault: the residual is added behind the activation
 * expect: wrong-result
 */
#include "epilogue.h"

AFTER(residual_after_activation) {
    struct finish f = finish_of(c);
    REAL more = f.residual ? f.residual[row_major ? i * f.ld + j : i + j * f.ld] : 0;
    f.residual = 0;
    return finished(&f, row_major, sum, i, j) + more;
}

CANDIDATE(residual_after_activation)
