/* fault: one element is read past the end of A
 * expect: guard-page
 */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    honest(&p);
    if (p.a_size && p.alpha != 0)
        (void)*(const volatile OPERAND *)&p.a[p.a_size];
}
