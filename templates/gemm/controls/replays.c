/* fault: later calls of a shape repeat the result of the first one
 * expect: wrong-result
 */
#include "product.h"

static int64_t shapes[64][3], known;
static REAL results[64][1024];

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    honest(&p);
    if (p.m * p.n == 0 || p.m * p.n > 1024 || known == 64)
        return;
    int64_t slot = 0;
    while (slot < known &&
           (shapes[slot][0] != p.m || shapes[slot][1] != p.n || shapes[slot][2] != p.k))
        ++slot;
    if (slot == known) {
        shapes[slot][0] = p.m, shapes[slot][1] = p.n, shapes[slot][2] = p.k, ++known;
        FOR_EACH_ELEMENT(p, i, j) { results[slot][i + j * p.m] = p.c[i * p.c_row + j * p.c_col]; }
    } else {
        FOR_EACH_ELEMENT(p, i, j) { p.c[i * p.c_row + j * p.c_col] = results[slot][i + j * p.m]; }
    }
}
