/* fault: heads take turns at K and V
 * expect: wrong-result
 */
#include "attention.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct attention z = attention_of(call);
    z.swapped = 1;
    attention_all(&z);
}
