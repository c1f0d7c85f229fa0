/* fault: one element is written past the end of C
 * expect: guard-page
 */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    honest(&p);
    if (p.c_size)
        *(volatile REAL *)&p.c[p.c_size] = 0;
}
