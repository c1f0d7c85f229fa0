/* fault: none
 * expect: ok
 */
#include "epilogue.h"

AFTER(honest) {
    struct finish f = finish_of(c);
    return finished(&f, row_major, sum, i, j);
}

CANDIDATE(honest)
