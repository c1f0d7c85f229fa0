/* fault: nothing is computed: C stays as it was
 * expect: wrong-result
 */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    (void)p;
}
