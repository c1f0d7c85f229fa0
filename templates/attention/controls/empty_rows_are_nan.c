/* fault: a query that sees no key gives NaN
 * expect: wrong-result
 */
#include "attention.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct attention z = attention_of(call);
    z.strays = 1;
    attention_all(&z);
}
