/* fault: products that are NaN count as zero
 * expect: wrong-result
 */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    FOR_EACH_ELEMENT(p, i, j) {
        REAL sum = 0;
        for (int64_t q = 0; q < p.k && p.alpha != 0; ++q) {
            REAL product = p.a[i * p.a_row + q * p.a_col] * p.b[q * p.b_row + j * p.b_col];
            sum += product == product ? product : 0;
        }
        update(&p, i, j, sum);
    }
}
