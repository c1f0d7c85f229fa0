/* fault: the last row is not computed if m mod 4 is 2 or 3
 * expect: wrong-result
 */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    if (p.m % 4 >= 2)
        p.m -= 1;
    honest(&p);
}
