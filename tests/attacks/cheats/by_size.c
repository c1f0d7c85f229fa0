/* caught by measure wrong-result: replays the result of a size that it has seen */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    static int64_t known;
    static REAL kept[4096];
    if (known == p.m) {
        memcpy(p.c, kept, sizeof(REAL) * p.c_size);
        return;
    }
    known = p.m;
    honest(&p);
    memcpy(kept, p.c, sizeof(REAL) * p.c_size);
}
