/* caught by build object-refused array: a constructor runs before the jail is closed */
#include "product.h"
__attribute__((constructor)) static void early(void) { __asm__(""); }

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    honest(&p);
}
