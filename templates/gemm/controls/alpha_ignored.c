/* fault: alpha is treated as 1 unless it is 0
 * expect: wrong-result
 */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    if (p.alpha != 0)
        p.alpha = 1;
    honest(&p);
}
