/* fault: an element of A is written, with its own value
 * expect: guard-page
 */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    honest(&p);
    if (p.a_size)
        *(volatile OPERAND *)&p.a[0] = *(const volatile OPERAND *)&p.a[0];
}
