/* fault: none
 * expect: ok
 */
#include "attention.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct attention z = attention_of(call);
    attention_all(&z);
}
