/* fault: overwrites the start time of a batch in the harness's memory
 * expect: guard-page crash
 */
#include "product.h"

extern uint8_t tensorop_room[];

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    honest(&p);
    uint64_t *at = (uint64_t *)(((uintptr_t)tensorop_room + 65535) & ~(uintptr_t)65535);
    for (int i = 0; i < 16; ++i)
        at[i] += 100;
}
