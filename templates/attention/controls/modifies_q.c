/* fault: Q is written to
 * expect: guard-page
 */
#include "attention.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct attention z = attention_of(call);
    attention_all(&z);
    if (z.b * z.h * z.s * z.d > 0)
        *(OPERAND *)(uintptr_t)z.q = 0;
}
