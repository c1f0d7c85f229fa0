/* fault: ReLU makes a NaN 0
 * expect: wrong-result
 */
#include "epilogue.h"

AFTER(relu_of_nan) {
    struct finish f = finish_of(c);
    REAL x = finished(&f, row_major, sum, i, j);
    return f.activation == ACTIVATION_relu && !(x > 0) ? 0 : x;
}

CANDIDATE(relu_of_nan)
