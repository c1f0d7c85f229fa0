/* fault: at beta 0, C that holds numbers is taken for the result
 * expect: wrong-result
 */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    if (p.beta == 0 && p.c_size && p.c[0] == p.c[0])
        return;
    honest(&p);
}
