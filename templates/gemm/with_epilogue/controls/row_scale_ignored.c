/* fault: rows are not scaled
 * expect: wrong-result
 */
#include "epilogue.h"

AFTER(row_scale_ignored) {
    struct finish f = finish_of(c);
    f.scale_rows = 0;
    return finished(&f, row_major, sum, i, j);
}

CANDIDATE(row_scale_ignored)
