/* fault: one element is written past the end of O
 * expect: guard-page wrong-result
 */
#include "attention.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct attention z = attention_of(call);
    attention_all(&z);
    z.o[(z.ragged ? 1 : z.b) * z.h * z.s * z.dv] = 0;
}
