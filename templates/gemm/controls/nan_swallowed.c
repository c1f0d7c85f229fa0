/* fault: products that are NaN are treated as 0
 * expect: wrong-result
 * dtypes: f32 f64 bf16 f16
 */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    FOR_EACH_ELEMENT(p, i, j) {
        REAL sum = 0;
        for (int64_t q = 0; q < p.k && p.alpha != 0; ++q) {
            REAL product = a_at(&p, i, q) * b_at(&p, q, j);
            sum += product == product ? product : 0;
        }
        update(&p, i, j, sum);
    }
}
