/* fault: the bias is added before the scales
 * expect: wrong-result
 */
#include "epilogue.h"

AFTER(bias_scaled) {
    struct finish f = finish_of(c);
    if (f.bias)
        sum += f.bias[j];
    f.bias = 0;
    return finished(&f, row_major, sum, i, j);
}

CANDIDATE(bias_scaled)
