/* fault: the sums of the last call are reused if sizes, addresses and a few elements are the same
 * expect: wrong-result
 */
#include "product.h"

enum { MOST = 1 << 18 };
static struct product last;
static OPERAND seen[4];
static REAL sums[MOST];

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    if (p.m * p.n > MOST || !p.a_size || !p.b_size || p.alpha == 0) {
        honest(&p);
        return;
    }
    const OPERAND now[4] = {p.a[0], p.a[p.a_size - 1], p.b[0], p.b[p.b_size - 1]};
    int same = last.a == p.a && last.b == p.b && last.m == p.m && last.n == p.n && last.k == p.k &&
               !memcmp(now, seen, sizeof now);
    FOR_EACH_ELEMENT(p, i, j) {
        if (!same)
            sums[i + j * p.m] = dot(&p, i, j, p.k);
        update(&p, i, j, sums[i + j * p.m]);
    }
    last = p;
    memcpy(seen, now, sizeof now);
}
