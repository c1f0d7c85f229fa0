/* fault: correct only for VLEN 128: each strip of 16 bytes takes one register
 * expect: wrong-result
 * needs: rvv vlens
 */
#include "product.h"

#include <riscv_vector.h>

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    const int64_t strip = 16 / (int64_t)sizeof(REAL);
    int64_t lanes = (int64_t)(__riscv_vsetvlmax_e8m1() / sizeof(REAL));
    for (int64_t j = 0; j < p.n; ++j)
        for (int64_t first = 0; first < p.m; first += strip)
            for (int64_t i = first; i < p.m && i < first + lanes; ++i)
                update(&p, i, j, dot(&p, i, j, p.k));
}
