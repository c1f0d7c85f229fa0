/* caught by build object-refused getenv: the environment might hold the seed */
#include "product.h"
char *getenv(const char *);

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    getenv("SEED");
    honest(&p);
}
