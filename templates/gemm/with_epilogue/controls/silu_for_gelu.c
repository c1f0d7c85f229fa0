/* fault: GELU is SiLU
 * expect: wrong-result
 */
#include "epilogue.h"

AFTER(silu_for_gelu) {
    struct finish f = finish_of(c);
    f.activation = f.activation == ACTIVATION_gelu ? ACTIVATION_silu : f.activation;
    return finished(&f, row_major, sum, i, j);
}

CANDIDATE(silu_for_gelu)
