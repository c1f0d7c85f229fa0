/* caught by build object-refused cblas_sgemm: a library's function does the work */
#include "product.h"
void cblas_sgemm(void);

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    cblas_sgemm();
    honest(&p);
}
