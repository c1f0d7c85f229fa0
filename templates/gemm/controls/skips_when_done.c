/* fault: at beta 0, nothing is computed if C contains numbers
 * expect: wrong-result
 */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    if (p.beta == 0 && p.c_size && p.c[0] == p.c[0])
        return;
    honest(&p);
}
