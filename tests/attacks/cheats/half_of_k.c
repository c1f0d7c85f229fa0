/* caught by measure wrong-result: adds half of the products where the output holds a number */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    if (p.c[0] == p.c[0])
        p.k /= 2;
    honest(&p);
}
