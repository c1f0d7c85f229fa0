/* fault: A's leading dimension is rounded down to a multiple of 4
 * expect: wrong-result
 */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    int64_t step = p.lda > 4 ? p.lda - p.lda % 4 : p.lda;
    if (p.a_row == p.lda)
        p.a_row = step;
    if (p.a_col == p.lda)
        p.a_col = step;
    honest(&p);
}
