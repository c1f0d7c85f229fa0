/* fault: none; slow and right, so that the judge is known to accept something
 * expect: ok
 */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    honest(&p);
}
