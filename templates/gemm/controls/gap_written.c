/* fault: the element after each line of C, in the gap of ldc, is overwritten
 * expect: wrong-result
 */
#include "product.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    honest(&p);
    int64_t lines = p.c_row == 1 ? p.n : p.m, inner = p.c_row == 1 ? p.m : p.n;
    if (p.c_size && p.ldc > inner)
        for (int64_t line = 0; line + 1 < lines; ++line)
            p.c[line * p.ldc + inner] = 0;
}
