/* caught by build object-refused pthread_create: another thread works on after the kernel has
 * returned */
#include "product.h"
int pthread_create(void *, const void *, void *, void *);

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    pthread_create(0, 0, 0, 0);
    honest(&p);
}
