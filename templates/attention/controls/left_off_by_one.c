/* fault: a query sees one key less before its own
 * expect: wrong-result
 */
#include "attention.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct attention z = attention_of(call);
    z.left -= z.left > 0;
    attention_all(&z);
}
