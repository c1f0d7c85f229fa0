/* fault: C is set to zero
 * expect: wrong-result
 */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    FOR_EACH_ELEMENT(p, i, j) { p.c[i * p.c_row + j * p.c_col] = 0; }
}
