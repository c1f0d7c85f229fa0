/* fault: full tiles sum only the first half of k if k and ldc are at least 100
 * expect: wrong-result
 */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    int64_t whole_m = p.m / 8 * 8, whole_n = p.n / 4 * 4;
    FOR_EACH_ELEMENT(p, i, j) {
        int tile = p.k >= 100 && p.ldc >= 100 && i < whole_m && j < whole_n;
        update(&p, i, j, dot(&p, i, j, tile ? p.k / 2 : p.k));
    }
}
