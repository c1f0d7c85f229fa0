/* fault: the last column or row of C is not computed if its leading dimension is above 5,000
 * expect: wrong-result
 */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    if (p.ldc > 5000)
        *(p.c_row == p.ldc ? &p.m : &p.n) -= 1;
    honest(&p);
}
