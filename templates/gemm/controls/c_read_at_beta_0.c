/* fault: C is read when beta is 0, so that NaN in it survives
 * expect: wrong-result
 * dtypes: f32 f64 bf16 f16
 */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    FOR_EACH_ELEMENT(p, i, j) {
        REAL *c = &p.c[i * p.c_row + j * p.c_col];
        *c = p.alpha * dot(&p, i, j, p.k) + p.beta * *c;
    }
}
