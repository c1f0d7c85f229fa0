/* fault: right only for m mod 4 < 2: the last row is left out when two or three are over
 * expect: wrong-result
 */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    if (p.m % 4 >= 2)
        p.m -= 1;
    honest(&p);
}
