/* fault: one corner element is wrong if the matrix has more than a few elements
 * expect: wrong-result
 */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    honest(&p);
    if (p.m > 4 && p.n > 4)
        p.c[(p.m - 1) * p.c_row + (p.n - 1) * p.c_col] += STEP;
}
