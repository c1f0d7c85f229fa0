/* fault: one element is read past the end of K
 * expect: guard-page
 */
#include "attention.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct attention z = attention_of(call);
    attention_all(&z);
    volatile OPERAND stray = z.k[(z.ragged ? 1 : z.b) * z.t * z.g * z.d];
    (void)stray;
}
