/* fault: each column has the scale of the next one
 * expect: wrong-result
 */
#include "epilogue.h"

AFTER(column_scale_shifted) {
    struct finish f = finish_of(c);
    if (f.scale_columns)
        f.scale_columns += j + 1 < N;
    return finished(&f, row_major, sum, i, j);
}

CANDIDATE(column_scale_shifted)
