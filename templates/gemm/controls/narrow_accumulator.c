/* fault: sums are rounded to a narrower type: f64 to float, f32 to 16 bits of significand
 * expect: wrong-result
 */
#include "product.h"

#include <string.h>

static REAL narrow(REAL x) {
    float single = (float)x;
    if (sizeof(REAL) == sizeof(float)) {
        uint32_t bits;
        memcpy(&bits, &single, sizeof bits);
        bits &= 0xffffff00u;
        memcpy(&single, &bits, sizeof bits);
    }
    return (REAL)single;
}

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    FOR_EACH_ELEMENT(p, i, j) {
        REAL sum = 0;
        for (int64_t q = 0; q < p.k && p.alpha != 0; ++q)
            sum = narrow(sum + p.a[i * p.a_row + q * p.a_col] * p.b[q * p.b_row + j * p.b_col]);
        update(&p, i, j, sum);
    }
}
