/* fault: nothing is computed: C stays unchanged
 * expect: wrong-result
 */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    (void)p;
}
