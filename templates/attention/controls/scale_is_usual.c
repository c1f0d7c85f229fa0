/* fault: the scale is 1 / sqrt(d) whatever the call says
 * expect: wrong-result
 */
#include "attention.h"

void tensorop_candidate_0(const struct tensorop_call *call) {
    struct attention z = attention_of(call);
    double root = 1;
    for (int i = 0; i < 40; i++)
        root = (root + (double)z.d / root) / 2;
    z.scale = (float)(1 / root);
    attention_all(&z);
}
