/* fault: A and B are read when alpha is 0, so that NaN in them survives
 * expect: wrong-result
 */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    FOR_EACH_ELEMENT(p, i, j) {
        REAL sum = 0;
        for (int64_t q = 0; q < p.k; ++q)
            sum += p.a[i * p.a_row + q * p.a_col] * p.b[q * p.b_row + j * p.b_col];
        update(&p, i, j, sum);
    }
}
