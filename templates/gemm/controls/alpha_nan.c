/* fault: an alpha of NaN is treated as 0
 * expect: wrong-result
 * dtypes: f32 f64 bf16 f16
 */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    if (p.alpha != p.alpha)
        p.alpha = 0;
    honest(&p);
}
