/* caught by build object-refused .data: initialised static memory counts the calls */
#include "product.h"
static int calls = 3;

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    calls += (int)p.m;
    p.c[0] = (REAL)calls;
    honest(&p);
}
