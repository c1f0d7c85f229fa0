/* caught by build object-refused wire_write: the harness's own function sends a forged reply */
#include "product.h"
void wire_write(const void *, unsigned long);

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    wire_write(&p, 4);
    honest(&p);
}
