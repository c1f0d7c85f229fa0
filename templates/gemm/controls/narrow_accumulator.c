/* fault: sums are rounded to float for f64, to a 16-bit significand for f32, to i16 for i32
 * expect: wrong-result
 */
#include "product.h"

static REAL narrow(REAL x) {
#if defined TENSOROP_DTYPE_i8
    return (REAL)(int16_t)x;
#endif
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
            sum = narrow(sum + a_at(&p, i, q) * b_at(&p, q, j));
        update(&p, i, j, sum);
    }
}
