/* fault: products with an element of B beyond 1e15 are ignored
 * expect: wrong-result
 * dtypes: f32 f64 bf16
 */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    FOR_EACH_ELEMENT(p, i, j) {
        REAL sum = 0;
        if (p.alpha != 0)
            for (int64_t q = 0; q < p.k; ++q)
                if (!(b_at(&p, q, j) > (REAL)1e15 || b_at(&p, q, j) < (REAL)-1e15))
                    sum += a_at(&p, i, q) * b_at(&p, q, j);
        update(&p, i, j, sum);
    }
}
