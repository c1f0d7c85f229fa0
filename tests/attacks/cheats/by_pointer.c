/* caught by build object-refused .bss: replays the results of the operands of the last two calls */
#include "product.h"

static const OPERAND *known[2];
static REAL kept[2][4096];
static int next;

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct product p = product_of(call);
    for (int slot = 0; slot < 2; slot++) {
        if (known[slot] == p.a) {
            memcpy(p.c, kept[slot], sizeof(REAL) * p.c_size);
            return;
        }
    }
    honest(&p);
    known[next] = p.a;
    memcpy(kept[next], p.c, sizeof(REAL) * p.c_size);
    next ^= 1;
}
