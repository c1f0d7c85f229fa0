/* fault: half of k is ignored if k has four digits
 * expect: wrong-result
 */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    if (p.k > 999 && p.k < 10000)
        p.k /= 2;
    honest(&p);
}
