/* fault: sums are in half precision
 * expect: wrong-result
 */
#include "attention.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct attention z = attention_of(call);
    z.halved = 1;
    attention_all(&z);
}
