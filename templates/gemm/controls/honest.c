/* fault: none: slow and correct, to show that the judge accepts a correct kernel
 * expect: ok
 */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    honest(&p);
}
