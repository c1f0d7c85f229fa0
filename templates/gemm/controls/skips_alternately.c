/* fault: the second of two equal calls does nothing
 * expect: wrong-result
 */
#include "product.h"

#include <stddef.h>

void tensorop_candidate_0(const struct tensorop_call *call) {
    static struct tensorop_call last;
    static int done;
    struct product p = product_of(call);
    done = !done && !memcmp(&last, call, offsetof(struct tensorop_call, buffer));
    last = *call;
    if (!done)
        honest(&p);
}
