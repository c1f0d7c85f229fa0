/* caught by build object-refused .tbss: memory of the thread counts the calls */
#include "product.h"
static _Thread_local int calls;

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    calls += (int)p.m;
    p.c[0] = (REAL)calls;
    honest(&p);
}
