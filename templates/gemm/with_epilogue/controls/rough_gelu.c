/* fault: GELU has an error of 2^-16
 * expect: wrong-result
 */
#include "epilogue.h"

AFTER(rough_gelu) {
    struct finish f = finish_of(c);
    REAL x = finished(&f, row_major, sum, i, j);
    return f.activation == ACTIVATION_gelu ? x * (1 + (REAL)1 / 65536) : x;
}

CANDIDATE(rough_gelu)
