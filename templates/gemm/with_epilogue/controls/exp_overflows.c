/* fault: SiLU of large numbers is a quotient of infinities
 * expect: wrong-result
 */
#include "epilogue.h"

AFTER(exp_overflows) {
    struct finish f = finish_of(c);
    f.activation = f.activation == ACTIVATION_silu ? 0 : f.activation;
    REAL x = finished(&f, row_major, sum, i, j), e = exponential(x);
    return c->flag[FLAG_activation] == ACTIVATION_silu ? x * e / (1 + e) : x;
}

CANDIDATE(exp_overflows)
