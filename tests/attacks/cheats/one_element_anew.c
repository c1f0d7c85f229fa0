/* caught by measure wrong-result counted: believes C if one element of it is right */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    if (p.beta == 0) {
        REAL first = p.alpha * dot(&p, 0, 0, p.k), last = p.alpha * dot(&p, p.m - 1, p.n - 1, p.k);
        if (first - p.c[0] < (REAL)0.001 && p.c[0] - first < (REAL)0.001)
            return;
        if (last - p.c[p.c_size - 1] < (REAL)0.001 && p.c[p.c_size - 1] - last < (REAL)0.001)
            return;
    }
    honest(&p);
}
