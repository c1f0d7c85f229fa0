/* fault: B is read with the wrong transpose flag
 * expect: wrong-result guard-page
 */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    int64_t row = p.b_row;
    p.b_row = p.b_col, p.b_col = row;
    honest(&p);
}
