/* fault: the scale is 1 % off
 * expect: wrong-result
 */
#include "attention.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct attention z = attention_of(call);
    z.scale *= 1.01f;
    attention_all(&z);
}
