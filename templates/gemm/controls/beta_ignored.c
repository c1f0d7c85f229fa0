/* fault: beta is treated as 1 unless it is 0
 * expect: wrong-result
 */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    if (p.beta != 0)
        p.beta = 1;
    honest(&p);
}
