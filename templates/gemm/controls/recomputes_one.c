/* fault: if one element of C is already correct, the others are not computed
 * expect: wrong-result
 */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    if (p.beta == 0 && p.c_size && p.c[0] == p.alpha * dot(&p, 0, 0, p.k))
        return;
    honest(&p);
}
