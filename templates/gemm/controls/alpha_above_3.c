/* fault: alpha above 3 is treated as 3
 * expect: wrong-result
 * dtypes: f32 f64 bf16 f16
 */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    if (p.alpha > 3)
        p.alpha = 3;
    honest(&p);
}
