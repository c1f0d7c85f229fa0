/* fault: denormal results are flushed to zero
 * expect: wrong-result
 * dtypes: f32 f64 bf16
 */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    FOR_EACH_ELEMENT(p, i, j) {
        REAL *c = &p.c[i * p.c_row + j * p.c_col];
        update(&p, i, j, dot(&p, i, j, p.k));
        REAL tiny = sizeof(REAL) == 4 ? (REAL)0x1p-126f : (REAL)0x1p-1022;
        if (*c < tiny && *c > -tiny)
            *c = 0;
    }
}
