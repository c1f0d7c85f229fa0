/* fault: steps of k beyond the 2,400th are ignored
 * expect: wrong-result
 */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    if (p.k > 2400)
        p.k = 2400;
    honest(&p);
}
