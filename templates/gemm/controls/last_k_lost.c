/* fault: the last step of k is ignored
 * expect: wrong-result
 */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    FOR_EACH_ELEMENT(p, i, j) { update(&p, i, j, dot(&p, i, j, p.k > 1 ? p.k - 1 : p.k)); }
}
