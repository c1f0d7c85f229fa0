/* fault: the log-sum-exp is not written
 * expect: wrong-result
 */
#include "attention.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct attention z = attention_of(call);
    z.lse = NULL;
    attention_all(&z);
}
