/* fault: an output that is NaN becomes 0
 * expect: wrong-result
 */
#include "attention.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct attention z = attention_of(call);
    attention_all(&z);
    for (int64_t i = 0; i < (z.ragged ? 1 : z.b) * z.h * z.s * z.dv; i++)
        if (value_of(z.o[i]) != value_of(z.o[i]))
            z.o[i] = 0;
}
