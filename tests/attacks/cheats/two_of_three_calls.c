/* caught by measure wrong-result: computes in every third call */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    static int calls;
    if (calls++ % 3 && p.c[0] == p.c[0])
        return;
    honest(&p);
}
