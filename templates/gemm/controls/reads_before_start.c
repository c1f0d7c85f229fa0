/* fault: one element is read before the start of B
 * expect: guard-page
 */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    honest(&p);
    if (p.b_size && p.alpha != 0)
        (void)*(const volatile OPERAND *)&p.b[-1];
}
