/* fault: beta above 1 is treated as 1
 * expect: wrong-result
 * dtypes: f32 f64 bf16 f16
 */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    if (p.beta > 1)
        p.beta = 1;
    honest(&p);
}
