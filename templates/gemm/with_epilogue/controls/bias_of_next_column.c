/* fault: each column has the bias of the next one
 * expect: wrong-result
 */
#include "epilogue.h"

AFTER(bias_of_next_column) {
    struct finish f = finish_of(c);
    if (f.bias)
        f.bias += j + 1 < N;
    return finished(&f, row_major, sum, i, j);
}

CANDIDATE(bias_of_next_column)
