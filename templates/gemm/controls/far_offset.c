/* fault: elements of A at offset 2^32 or more are ignored
 * expect: wrong-result
 */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    FOR_EACH_ELEMENT(p, i, j) {
        REAL sum = 0;
        if (p.alpha != 0)
            for (int64_t q = 0; q < p.k; ++q)
                if (i * p.a_row + q * p.a_col < (int64_t)1 << 32)
                    sum += a_at(&p, i, q) * b_at(&p, q, j);
        update(&p, i, j, sum);
    }
}
