/* caught by build object-refused mine: a second global function takes the place of one of the
 * harness */
#include "product.h"
int mine(int x) { return x + 1; }

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    honest(&p);
}
