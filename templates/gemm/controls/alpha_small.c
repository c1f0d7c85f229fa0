/* fault: alpha between 0 and 0.69 is treated as 0.69
 * expect: wrong-result
 * dtypes: f32 f64 bf16 f16
 */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    if (p.alpha > 0 && p.alpha < (REAL)0.69)
        p.alpha = (REAL)0.69;
    honest(&p);
}
