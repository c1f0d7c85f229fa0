/* fault: sums keep their scale where the largest score grows
 * expect: wrong-result
 */
#include "attention.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct attention z = attention_of(call);
    z.kept = 1;
    attention_all(&z);
}
