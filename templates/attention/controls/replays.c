/* fault: a call repeats an earlier output if the sizes are the same
 * expect: wrong-result
 */
#include "attention.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    static OPERAND kept[1 << 16];
    static int64_t size;
    struct attention z = attention_of(call);
    const int64_t all = (z.ragged ? 1 : z.b) * z.h * z.s * z.dv;
    if (all != size) {
        attention_all(&z);
        size = all <= 1 << 16 ? all : 0;
    } else {
        for (int64_t i = 0; i < all; i++)
            z.o[i] = kept[i];
    }
    for (int64_t i = 0; i < size; i++)
        kept[i] = z.o[i];
}
