/* caught by build object-refused .bss: static memory keeps results from call to call */
#include "product.h"
static REAL kept[64];

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    kept[p.m % 64] += 1;
    p.c[0] = kept[0];
    honest(&p);
}
